package agent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// history writes the messages before the action as the conversation's state:
// root_prompt_messages_json, which is what the model reads, as names of blobs that each
// hold one message as JSON, in the form that the AI SDK gives to messages.
//
// Source: RESEARCH.md#agent-v1
func (s *Stream) history(state message.Message, list []turn.Message) error {
	names := toolNames(list)
	for i := range list {
		text, err := json.Marshal(promptMessage(&list[i], names))
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if len(text)+s.blobs.bytes > maxBlobBytes {
			return &turn.Error{Kind: turn.ContextTooLong, Message: fmt.Sprintf("the conversation is larger than %d MB", maxBlobBytes>>20)}
		}
		state.Add("root_prompt_messages_json", s.blobs.put(text))
	}
	return nil
}

// toolNames returns the names of the tools by the ids of their calls.
func toolNames(list []turn.Message) map[string]string {
	names := map[string]string{}
	for i := range list {
		for j := range list[i].Parts {
			if call := list[i].Parts[j].Call; call != nil {
				names[call.ID] = call.Name
			}
		}
	}
	return names
}

// A promptPart is one piece of a message for the model.
type promptPart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text,omitempty"`
	Image      string          `json:"image,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Result     *string         `json:"result,omitempty"`
	// Content has what Result cannot: images.
	Content []promptPart `json:"experimental_content,omitempty"`
	IsError bool         `json:"isError,omitempty"`
}

// A promptText is a message for the model that is text.
type promptText struct {
	Role    turn.Role `json:"role"`
	Content any       `json:"content"`
}

// promptMessage returns what becomes the JSON of a message.
func promptMessage(m *turn.Message, names map[string]string) promptText {
	if m.Role == turn.System {
		return promptText{m.Role, textOf(m)}
	}
	parts := []promptPart{}
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Thinking != "":
			parts = append(parts, promptPart{Type: "reasoning", Text: p.Thinking})
		case p.Image != nil:
			parts = append(parts, imagePart(p.Image))
		case p.Call != nil:
			arguments := p.Call.Arguments
			if !json.Valid(arguments) {
				arguments = json.RawMessage(`{}`)
			}
			parts = append(parts, promptPart{Type: "tool-call", ToolCallID: p.Call.ID, ToolName: p.Call.Name, Args: arguments})
		case p.Result != nil:
			parts = append(parts, resultPart(p.Result, names))
		case p.Text != "":
			parts = append(parts, promptPart{Type: "text", Text: p.Text})
		}
	}
	return promptText{m.Role, parts}
}

func imagePart(image *turn.Image) promptPart {
	return promptPart{Type: "image", Image: base64.StdEncoding.EncodeToString(image.Data), MediaType: image.MIME}
}

func resultPart(r *turn.Result, names map[string]string) promptPart {
	name := names[r.CallID]
	if name == "" {
		name = "unknown"
	}
	text := textOf(&turn.Message{Parts: r.Parts})
	if text == "" && r.Rejected {
		text = "The tool was not run."
	}
	p := promptPart{Type: "tool-result", ToolCallID: r.CallID, ToolName: name, Result: &text, IsError: r.IsError || r.Rejected}
	for i := range r.Parts {
		if image := r.Parts[i].Image; image != nil {
			p.Content = append(p.Content, imagePart(image))
		}
	}
	return p
}
