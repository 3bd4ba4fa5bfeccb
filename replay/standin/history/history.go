// Package history reads the transcript that a client of the agent API sends with a new
// stream, so that the stand-in can continue a conversation that it has not seen.
//
// A client continues a conversation "cold" when the stream of its earlier turns is
// gone: it sends a Run request whose conversation_state holds the transcript.
//
// # The format
//
// conversation_state.root_prompt_messages_json lists the messages, oldest first. Each
// entry is the SHA-256 (32 bytes) of a blob that the client keeps; the server asks for
// the blobs that it does not have with get_blob_args. An entry that begins with "{" is
// the message itself. Each blob is one JSON object:
//
//	{"role": "system", "content": "From here on, be brief."}
//	{"role": "user", "content": "What is in a.txt?"}
//	{"role": "user", "content": [
//	  {"type": "text", "text": "And what is this?"},
//	  {"type": "image", "image": "<base64>", "mediaType": "image/png"}]}
//	{"role": "assistant", "content": [
//	  {"type": "reasoning", "text": "I should read it."},
//	  {"type": "text", "text": "I read the file."},
//	  {"type": "tool-call", "toolCallId": "c1", "toolName": "read", "args": {"path": "a.txt"}}]}
//	{"role": "tool", "content": [
//	  {"type": "tool-result", "toolCallId": "c1", "toolName": "read", "result": "hello"}]}
//
// Content that is a string is one text. A result is a string, or a list of text and
// image parts; pictures may also be in the list "experimental_content" of the same part.
// "isError": true marks a result of a tool that failed. Members and types of parts that
// are not named here are ignored.
//
// # The action
//
// After history that ends in an answer, the action is a user_message_action with the
// next prompt; that prompt is not part of the history. After history that ends in tool
// results, the turn goes on: the action is a resume_action, or a user_message_action
// whose message has is_simulated_msg set (its text is then ignored). The prompt of the
// turn is the last user message of the history, and the results after it are the
// results of the turn's first calls.
//
// conversation_state.turns is not read for messages. Its length is the number of turns
// so far, with the one that a resume_action continues. The system prompt is in
// custom_system_prompt; system messages of the list are those in the middle.
//
// # How sure it is
//
// That the list holds blob ids, that blobs are JSON messages with role and content, and
// that the service builds its prompt from them, is in several public clients; none
// of it was verified. The parts of calls and results, and both forms of the action after
// tool results, are assumed: RESEARCH.md#cold-continuation.
package history

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// The roles of messages.
const (
	system    = "system"
	user      = "user"
	assistant = "assistant"
	tool      = "tool"
)

// A Message is one message of a transcript.
type Message struct {
	// Role is the author of the message: "system", "user", "assistant" or "tool".
	Role string
	// Parts are the parts of the message's content, in order.
	Parts []Part
}

// A Part is one piece of a message. Its Kind determines which other fields are set.
type Part struct {
	// Kind is "text", "reasoning", "image", "tool-call" or "tool-result".
	Kind string
	// Text is the content of a text or reasoning part.
	Text string
	// Image is an encoded image, and MIME its media type.
	Image []byte

	// MIME is the media type of Image.
	MIME string
	// CallID is the id of a tool call, and Name the name of the tool. Results have both, too.
	CallID, Name string
	// Args are the arguments of a tool call.
	Args json.RawMessage
	// Result is the output of a tool: texts and images.
	Result []Part
	// IsError means that the tool failed.
	IsError bool
}

// A message is the JSON form of Message.
type message struct {
	// Role is the author of the message, such as "user", "assistant" or "tool".
	Role string `json:"role"`

	// Content is a string or a list of parts.
	Content json.RawMessage `json:"content"`
}

// A part is the JSON form of Part, in the format of the AI SDK.
type part struct {
	// Type is the kind of the part, such as "text" or "tool-call".
	Type string `json:"type"`

	// Text is the text of a text or reasoning part.
	Text string `json:"text"`

	// Image is an image in base64.
	Image string `json:"image"`

	// MediaType is the media type of the image.
	MediaType string `json:"mediaType"`

	// MIMEType is used by older clients instead of MediaType.
	MIMEType string `json:"mimeType"`

	// ToolCallID is the id of a tool call or of the call to which a result belongs.
	ToolCallID string `json:"toolCallId"`

	// ToolName is the name of the tool, in a call and in its result.
	ToolName string `json:"toolName"`

	// Args are the arguments of a tool call.
	Args json.RawMessage `json:"args"`

	// Result is the output of a tool.
	Result json.RawMessage `json:"result"`
	// More are further parts of a tool result, such as images.
	More json.RawMessage `json:"experimental_content"`

	// IsError means that the tool failed.
	IsError bool `json:"isError"`
}

// Parse parses the blob of one message.
//
// Errors: an unknown role; content that is neither text nor a list of parts; a call or a result without
// an id.
func Parse(blob []byte) (Message, error) {
	var m message
	if err := json.Unmarshal(blob, &m); err != nil {
		return Message{}, fmt.Errorf("history: %w", err)
	}
	switch m.Role {
	case system, user, assistant, tool:
	default:
		return Message{}, fmt.Errorf("history: role %q is not known (known: system, user, assistant, tool)", m.Role)
	}
	parts, err := parseContent(m.Content)
	if err != nil {
		return Message{}, fmt.Errorf("history: %s: %w", m.Role, err)
	}
	return Message{Role: m.Role, Parts: parts}, nil
}

// parseContent parses message content: a string or a list of parts.
func parseContent(data json.RawMessage) ([]Part, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}

	// Content is a string or a list of parts.
	if data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return nil, err
		}
		return []Part{{Kind: "text", Text: text}}, nil
	}

	var list []part
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	var parts []Part
	for i, p := range list {
		read, known, err := p.read()
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		if known {
			parts = append(parts, read)
		}
	}
	return parts, nil
}

// read converts a part; known is false for a type that is ignored, such as an unknown one.
func (p *part) read() (_ Part, known bool, err error) {
	switch p.Type {
	case "text", "reasoning":
		return Part{Kind: p.Type, Text: p.Text}, true, nil
	case "image":
		data, err := base64.StdEncoding.DecodeString(p.Image)
		if err != nil {
			return Part{}, false, fmt.Errorf("image: %w", err)
		}
		return Part{Kind: p.Type, Image: data, MIME: cmp.Or(p.MediaType, p.MIMEType)}, true, nil
	case "tool-call", "tool-result":
		if p.ToolCallID == "" {
			return Part{}, false, fmt.Errorf("%s without a toolCallId", p.Type)
		}
		out := Part{Kind: p.Type, CallID: p.ToolCallID, Name: p.ToolName, Args: p.Args, IsError: p.IsError}
		if p.Type == "tool-result" {
			out.Result, err = parseResult(p.Result, p.More)
		}
		return out, true, err
	}
	return Part{}, false, nil
}

// parseResult parses the output of a tool, and further parts such as images in more.
func parseResult(result, more json.RawMessage) ([]Part, error) {
	parts, err := parseContent(result)
	if err != nil {
		return nil, err
	}
	besides, err := parseContent(more)
	if err != nil {
		return nil, fmt.Errorf("experimental_%w", err)
	}
	for _, p := range besides {
		if p.Kind != "text" || result == nil {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// Text returns the texts of parts, joined with line feeds.
func Text(parts []Part) string {
	var texts []string
	for _, p := range parts {
		if p.Kind == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// A Call is a tool call in a transcript together with its result.
type Call struct {
	// Name is the name of the called tool.
	Name string
	// Args are the arguments of the call, a JSON object.
	Args json.RawMessage
	// Result is the output of the tool.
	Result []Part
	// IsError means that the tool failed.
	IsError bool
}

// A Turn is an unfinished turn at the end of a transcript, which a new stream continues.
type Turn struct {
	// Prompt is the text of the user's message that began the turn.
	Prompt string
	// Images are the images in the user's message.
	Images []Part
	// Calls are the tool calls that have results, in the order in which they were requested.
	Calls []Call
	// Place is the number of turns before this one.
	Place int
}

// Unfinished returns the last turn of a transcript; nil if it has no user message.
//
// Calls without results are left out, and so are results without calls: a client may have lost either.
func Unfinished(transcript []Message) *Turn {
	last := -1

	// Only the last prompt of the user can be unfinished.
	for i, m := range transcript {
		if m.Role == user {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	t := &Turn{Prompt: Text(transcript[last].Parts), Place: Answered(transcript[:last])}
	for _, p := range transcript[last].Parts {
		if p.Kind == "image" {
			t.Images = append(t.Images, p)
		}
	}

	// Results are looked up by id, because a client may send them in any order.
	results := map[string]Part{}
	for _, m := range transcript[last:] {
		for _, p := range m.Parts {
			if p.Kind == "tool-result" {
				results[p.CallID] = p
			}
		}
	}

	// A call without a result is still running, so it is left out.
	for _, m := range transcript[last:] {
		for _, p := range m.Parts {
			if result, answered := results[p.CallID]; p.Kind == "tool-call" && answered {
				t.Calls = append(t.Calls, Call{Name: p.Name, Args: p.Args, Result: result.Result, IsError: result.IsError})
			}
		}
	}
	return t
}

// Answered returns the number of user messages that are followed by an answer of the assistant.
func Answered(transcript []Message) (n int) {
	open := false
	for _, m := range transcript {
		switch {
		case m.Role == user:
			open = true
		case m.Role == assistant && open:
			n, open = n+1, false
		}
	}
	return n
}
