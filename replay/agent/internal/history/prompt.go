package history

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// history writes the earlier messages of a conversation into its state. The state has two lists of blob
// names (SHA-256 hashes), whose blobs the server requests over the stream: root_prompt_messages_json
// are the messages for the model, as JSON; turns are the displayed turns, as protobuf messages.
//
// Source: replay/agent/README.md
func (b *builder) history(state message.Message, list []turn.Message) error {
	list = repair(list)
	names := toolNames(list)
	for i := range list {
		text, err := json.Marshal(promptMessage(&list[i], names))
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		id, err := b.blobs.Put(text)
		if err != nil {
			return err
		}
		state.Add("root_prompt_messages_json", id)
	}
	return b.turns(state, list)
}

// repair returns a transcript in which each tool call has a result and each result has a call. The
// client's transcript lacks the result of an interrupted call, and the calls that were removed when it
// was compacted.
func repair(list []turn.Message) []turn.Message {
	results := map[string]bool{}
	for i := range list {
		for j := range list[i].Parts {
			if r := list[i].Parts[j].Result; r != nil {
				results[r.CallID] = true
			}
		}
	}
	asked := map[string]bool{}

	// Add an interrupted result where one is missing, and turn a result without its call into text.
	out := make([]turn.Message, 0, len(list))
	for i := range list {
		m := turn.Message{Role: list[i].Role}
		var missing []turn.Part
		for _, p := range list[i].Parts {
			switch {
			case p.Call != nil && asked[p.Call.ID]:
				// a duplicate: its result would answer both
				continue
			case p.Call != nil:
				asked[p.Call.ID] = true
				if !results[p.Call.ID] {
					missing = append(missing, turn.Part{Result: &turn.Result{CallID: p.Call.ID, Rejected: true, Parts: []turn.Part{{Text: "The call was interrupted: there is no result."}}}})
				}
			case p.Result != nil && !asked[p.Result.CallID]:
				text := textOf(&turn.Message{Parts: p.Result.Parts})
				p = turn.Part{Text: "[Result of a tool whose call is not in this transcript]\n" + text}
			}
			m.Parts = append(m.Parts, p)
		}

		// The server rejects a tool message without results.
		if m.Role == turn.ToolRole && !hasResult(&m) {
			m.Role = turn.User
		}
		out = append(out, m)
		if missing != nil {
			out = append(out, turn.Message{Role: turn.ToolRole, Parts: missing})
		}
	}
	return out
}

// hasResult reports whether a message contains the result of a tool call.
func hasResult(m *turn.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Result != nil {
			return true
		}
	}
	return false
}

// toolNames returns the names of all called tools, by call id.
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

// A promptPart is one piece of a message for the model, in the format of the AI SDK.
type promptPart struct {
	// Type is the kind of the piece, such as "text", "image", "tool-call" or "tool-result"; it
	// determines which of the other fields are set.
	Type string `json:"type"`

	// Text is the text of a piece of type "text" or "reasoning".
	Text string `json:"text,omitempty"`

	// Image is an image in base64.
	Image string `json:"image,omitempty"`

	// MediaType is the media type of the image, such as "image/png".
	MediaType string `json:"mediaType,omitempty"`

	// ToolCallID is the id of the tool call.
	ToolCallID string `json:"toolCallId,omitempty"`

	// ToolName is the name of the called tool.
	ToolName string `json:"toolName,omitempty"`

	// Args are the arguments of the tool call, a JSON object.
	Args json.RawMessage `json:"args,omitempty"`
	// Result is the result of a tool call: a string or, with images, a list of parts.
	Result any `json:"result,omitempty"`

	// IsError means that the tool failed.
	IsError bool `json:"isError,omitempty"`
}

// A promptText is a message for the model, in the format of the AI SDK.
type promptText struct {
	// Role is the author of the message.
	Role turn.Role `json:"role"`

	// Content is a string or a []promptPart.
	Content any `json:"content"`
}

// promptMessage converts a message of the conversation to the JSON form for the model. names are the
// tools' names by call id.
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
			parts = append(parts, promptPart{Type: "tool-call", ToolCallID: p.Call.ID, ToolName: p.Call.Name, Args: objectOf(p.Call.Arguments)})
		case p.Result != nil:
			parts = append(parts, resultPart(p.Result, names))
		case p.Text != "":
			parts = append(parts, promptPart{Type: "text", Text: p.Text})
		}
	}
	return promptText{m.Role, parts}
}

// objectOf returns the arguments of a tool call if they are valid JSON, and otherwise an empty object.
func objectOf(arguments json.RawMessage) json.RawMessage {
	if !json.Valid(arguments) {
		return json.RawMessage(`{}`)
	}
	return arguments
}

// imagePart converts an image to the form for the model.
func imagePart(image *turn.Image) promptPart {
	return promptPart{Type: "image", Image: base64.StdEncoding.EncodeToString(image.Data), MediaType: image.MIME}
}

// resultPart converts the result of a tool call to the form for the model.
func resultPart(r *turn.Result, names map[string]string) promptPart {
	p := promptPart{Type: "tool-result", ToolCallID: r.CallID, ToolName: names[r.CallID], IsError: r.IsError || r.Rejected}
	text := textOf(&turn.Message{Parts: r.Parts})
	if text == "" && r.Rejected {
		text = "The tool was not run."
	}
	p.Result = text
	parts := []promptPart{}
	images := false
	for i := range r.Parts {
		if image := r.Parts[i].Image; image != nil {
			parts = append(parts, imagePart(image))
			images = true
		} else if t := r.Parts[i].Text; t != "" {
			parts = append(parts, promptPart{Type: "text", Text: t})
		}
	}
	if images {
		p.Result = parts
	}
	return p
}
