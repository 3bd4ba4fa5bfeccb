package openai

import (
	"fmt"
	"slices"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A Transcript converts the messages of a request to those of a turn. Consecutive messages of the
// assistant are joined, and so are consecutive tool results: the APIs split an answer differently, and
// the same conversation must always give the same messages.
type Transcript struct {
	// messages are the converted messages so far.
	messages []turn.Message

	// calls are the ids of all tool calls so far.
	calls map[string]bool
}

// Add adds parts of a message with this role. Empty texts of the assistant are left out, because
// clients send one with each tool call.
func (t *Transcript) Add(role turn.Role, parts ...turn.Part) {
	if role == turn.Assistant {
		parts = slices.DeleteFunc(slices.Clone(parts), func(p turn.Part) bool { return p == turn.Part{} })
	}
	for _, part := range parts {
		if part.Call == nil {
			continue
		}
		if t.calls == nil {
			t.calls = make(map[string]bool)
		}
		t.calls[part.Call.ID] = true
	}

	last := len(t.messages) - 1
	if last >= 0 && t.messages[last].Role == role && (role == turn.Assistant || role == turn.ToolRole) {
		t.messages[last].Parts = append(t.messages[last].Parts, parts...)
		return
	}
	// Clipped, since messages of an earlier transcript are shared with others.
	t.messages = append(t.messages, turn.Message{Role: role, Parts: slices.Clip(parts)})
}

// Extend appends the messages of an earlier transcript, which this one continues.
func (t *Transcript) Extend(messages []turn.Message) {
	for _, m := range messages {
		t.Add(m.Role, m.Parts...)
	}
}

// Result adds the result of a tool call. path is the path of the call's id, for errors.
//
// Errors: kind Invalid if the transcript has no such call before it.
func (t *Transcript) Result(r turn.Result, path string) *turn.Error {
	if !t.calls[r.CallID] {
		return invalid(path, "unknown_tool_call_id", fmt.Sprintf("is %.80q, but no tool call with this id is in the conversation before it", r.CallID))
	}
	t.Add(turn.ToolRole, turn.Part{Result: &r})
	return nil
}

// Messages returns the converted messages. path is the path of the list of messages, for errors.
//
// Errors: kind Invalid if there are no messages, too many, or none that the model could answer.
func (t *Transcript) Messages(path string) ([]turn.Message, *turn.Error) {
	if len(t.messages) > front.MaxMessages {
		return nil, invalid(path, "too_many_messages", fmt.Sprintf("has more than %d messages", front.MaxMessages))
	}
	// System messages may follow what is to be answered.
	for i := len(t.messages) - 1; i >= 0; i-- {
		switch t.messages[i].Role {
		case turn.System:
			continue
		case turn.Assistant:
			return nil, invalid(path, "invalid_value", "must end with a message of the user or with results of tools; the upstream cannot continue an answer of the assistant")
		}
		return t.messages, nil
	}
	return nil, invalid(path, "missing_required_parameter", "must have a message of the user")
}
