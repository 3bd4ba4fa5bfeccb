package messages

import (
	"encoding/json"
	"fmt"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// billing begins a text that Claude Code puts before its system prompt, for Anthropic's accounting. In
// some versions it has a checksum that changes with every request, so it is removed; otherwise every
// transcript would look edited.
const billing = "x-anthropic-billing-header:"

// A transcript parses the system prompt and the messages of a request.
type transcript struct {
	// messages are the messages parsed so far.
	messages []turn.Message

	// note adds a note about a member without effect.
	note func(string)
	// calls are the ids of all tool calls in the messages so far.
	calls map[string]bool
	// loaded are the tools that the conversation has loaded (true) or removed (false) since it began,
	// by name.
	loaded map[string]bool
	// defined are the definitions, as JSON, of tools that content blocks of the messages add, in addition to those in the
	// parameter "tools" of the request.
	defined []json.RawMessage
}

// system reads the parameter system: a text, or a list of text blocks.
func (t *transcript) system(raw json.RawMessage) *turn.Error {
	parts, err := t.content(raw, "system", turn.System)
	if err != nil {
		return err
	}
	if len(parts) > 0 && strings.HasPrefix(parts[0].Text, billing) {
		t.note("system.0: the billing header of Claude Code is not sent to the upstream")
		parts = parts[1:]
	}
	if len(parts) > 0 {
		t.messages = append(t.messages, turn.Message{Role: turn.System, Parts: parts})
	}
	return nil
}

// read reads the parameter messages.
func (t *transcript) read(raw json.RawMessage) *turn.Error {
	entries, err := list[entry](raw, "messages")
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return invalid("messages", "at least one message is required")
	}
	for i := range entries {
		if err := t.message(&entries[i], fmt.Sprintf("messages.%d", i)); err != nil {
			return err
		}
	}

	if len(t.messages) == 0 {
		return invalid("messages", "all messages are empty")
	}
	switch last := t.messages[len(t.messages)-1]; last.Role {
	case turn.User, turn.ToolRole:
		return nil
	case turn.Assistant:
		return invalid("messages", "the last message must be from the user: the upstream cannot continue an answer that has begun")
	default:
		return invalid("messages", "there must be a message from the user")
	}
}

// An entry is one element of the parameter messages.
type entry struct {
	// Role is the author of the message, such as "user" or "assistant".
	Role string `json:"role"`

	// Content is a text or a list of content blocks.
	Content json.RawMessage `json:"content"`
}

// message reads one element of the parameter messages. path names it in errors.
func (t *transcript) message(m *entry, path string) *turn.Error {
	role := turn.Role(m.Role)
	switch role {
	case turn.User, turn.Assistant, turn.System:
	default:
		return invalid(path+".role", "must be user, assistant or system, not %.40q", m.Role)
	}
	if !present(m.Content) {
		return invalid(path+".content", "is required")
	}
	parts, err := t.content(m.Content, path+".content", role)
	if err != nil || len(parts) == 0 {
		return err
	}
	if role == turn.System {
		t.addSystem(parts)
		return nil
	}
	for _, part := range parts {
		if part.Result != nil {
			role = turn.ToolRole
		}
	}
	t.messages = append(t.messages, turn.Message{Role: role, Parts: parts})
	return nil
}

// addSystem adds a system message in the middle of the transcript. It is moved before a preceding
// message of the user, or becomes a text of a preceding message with tool results: Claude Code sends
// such messages last, while the upstream's turn must begin with the user's message or the results. The
// new position depends only on preceding messages, so that a longer transcript still begins with the
// shorter one.
func (t *transcript) addSystem(parts []turn.Part) {
	message := turn.Message{Role: turn.System, Parts: parts}
	last := len(t.messages) - 1
	switch {
	case last >= 0 && t.messages[last].Role == turn.ToolRole:
		for _, part := range parts {
			t.messages[last].Parts = append(t.messages[last].Parts, turn.Part{Text: "<system>\n" + part.Text + "\n</system>"})
		}
	case last >= 0 && t.messages[last].Role == turn.User:
		t.messages = append(t.messages[:last], message, t.messages[last])
	default:
		t.messages = append(t.messages, message)
	}
}

// content reads the content of a message: a text, or a list of blocks. Both forms of the same text give
// the same parts, since Claude Code changes from one to the other. Empty texts are left out. path names
// the message in errors.
func (t *transcript) content(raw json.RawMessage, path string, role turn.Role) ([]turn.Part, *turn.Error) {
	if !present(raw) {
		return nil, nil
	}

	// Content is a string or a list of blocks.
	if raw[0] == '"' {
		var text string
		if err := front.Member(raw, path, &text); err != nil || text == "" {
			return nil, err
		}
		return []turn.Part{{Text: text}}, nil
	}
	if raw[0] != '[' {
		return nil, invalid(path, "must be a text or a list of blocks")
	}
	blocks, err := list[block](raw, path)
	if err != nil {
		return nil, err
	}
	var parts []turn.Part
	for i := range blocks {
		added, err := t.block(&blocks[i], fmt.Sprintf("%s.%d", path, i), role)
		if err != nil {
			return nil, err
		}
		parts = append(parts, added...)
	}
	return parts, nil
}
