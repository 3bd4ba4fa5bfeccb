package openai

import (
	"fmt"
	"slices"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A Transcript builds the messages of a turn from those of a request. The APIs split
// an answer differently: consecutive messages of the assistant become one, and so do
// consecutive results, so that the same conversation always gives the same messages.
type Transcript struct {
	messages []turn.Message
	calls    map[string]bool
}

// Add adds parts of a message. Calls among them are known to Result afterwards. Texts
// of the assistant that are empty are left out: clients send one with each call.
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

// Extend appends the messages of an earlier transcript.
func (t *Transcript) Extend(messages []turn.Message) {
	for _, m := range messages {
		t.Add(m.Role, m.Parts...)
	}
}

// Result adds the result of a call. path names the call's id in errors.
//
// Errors: kind Invalid for a call that is not in the transcript before it.
func (t *Transcript) Result(r turn.Result, path string) *turn.Error {
	if !t.calls[r.CallID] {
		return invalid(path, "unknown_tool_call_id", fmt.Sprintf("is %.80q, but no tool call with this id is in the conversation before it", r.CallID))
	}
	t.Add(turn.ToolRole, turn.Part{Result: &r})
	return nil
}

// Messages returns the transcript. path names the list of messages in errors.
//
// Errors: kind Invalid if there is nothing to answer, or too much.
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
