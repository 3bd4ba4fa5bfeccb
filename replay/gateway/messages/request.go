package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// A request is the parsed body of POST /v1/messages.
type request struct {
	// turn is the request in the form for the gateway's core.
	turn turn.Request

	// stream asks for a streamed response.
	stream bool

	// thinking is how the model's reasoning appears in the response.
	thinking display
	// notes are the parameters that had no effect, for the response header.
	notes []string
}

// A display is how the model's reasoning ("thinking") appears in a response.
type display int

// The forms in which reasoning appears.
const (
	// hidden: there are no thinking blocks, because the client did not ask for thinking.
	hidden display = iota
	// omitted: there are thinking blocks, but without text.
	omitted

	// shown: there are thinking blocks with text.
	shown
)

// parse reads the parameters of a request body, given as its JSON members.
//
// Errors: kind Invalid, with the path of the value that is wrong.
func parse(body map[string]json.RawMessage) (*request, *turn.Error) {
	r := &request{}
	notes, err := Params.Check(body)
	if err != nil {
		return nil, err
	}
	r.notes = notes
	if err := r.settings(body); err != nil {
		return nil, err
	}

	t := &transcript{note: r.note, calls: map[string]bool{}, loaded: map[string]bool{}}
	if err := t.system(body["system"]); err != nil {
		return nil, err
	}
	if err := t.read(body["messages"]); err != nil {
		return nil, err
	}
	r.turn.Messages = t.messages

	r.turn.Tools, err = tools(body["tools"], t)
	if err != nil {
		return nil, err
	}
	return r, r.toolChoice(body["tool_choice"])
}

// settings reads all parameters except the transcript and the tools.
func (r *request) settings(body map[string]json.RawMessage) *turn.Error {
	if err := required(body, "model", &r.turn.Model); err != nil {
		return err
	}
	if r.turn.Model == "" {
		return invalid("model", "must not be empty")
	}
	if err := required(body, "max_tokens", &r.turn.MaxTokens); err != nil {
		return err
	}
	if r.turn.MaxTokens < 1 {
		return invalid("max_tokens", "must be at least 1")
	}
	if err := front.Member(body["stream"], "stream", &r.stream); err != nil {
		return err
	}
	if err := front.Member(body["stop_sequences"], "stop_sequences", &r.turn.Stop); err != nil {
		return err
	}

	// The API of Anthropic refuses blank stop sequences too.
	for i, stop := range r.turn.Stop {
		if strings.TrimSpace(stop) == "" {
			return invalid(fmt.Sprintf("stop_sequences.%d", i), "must not be only white space")
		}
	}

	// The upstream cannot enforce an output format.
	var output struct {
		Format json.RawMessage `json:"format"`
	}
	if err := front.Member(body["output_config"], "output_config", &output); err != nil {
		return err
	}
	if present(output.Format) {
		return &turn.Error{Kind: turn.Invalid, Param: "output_config.format", Code: "unsupported_parameter", Message: "output_config.format is not supported, because the upstream cannot enforce a schema; ask for JSON in the prompt, and validate the answer"}
	}
	return r.readThinking(body["thinking"])
}

// readThinking reads the parameter thinking, and sets r.thinking.
func (r *request) readThinking(raw json.RawMessage) *turn.Error {
	var thinking struct {
		Type    string `json:"type"`
		Display string `json:"display"`
	}
	if err := front.Member(raw, "thinking", &thinking); err != nil {
		return err
	}
	switch {
	case !present(raw) || thinking.Type == "disabled":
		r.thinking = hidden
	case thinking.Type != "enabled" && thinking.Type != "adaptive":
		return invalid("thinking.type", "must be enabled, adaptive or disabled, not %.40q", thinking.Type)
	case thinking.Display == "omitted":
		r.thinking = omitted
	default:
		r.thinking = shown
	}
	return nil
}

// toolChoice reads the parameter tool_choice. The value none removes the tools.
func (r *request) toolChoice(raw json.RawMessage) *turn.Error {
	var choice struct {
		Type            string `json:"type"`
		DisableParallel bool   `json:"disable_parallel_tool_use"`
	}
	if err := front.Member(raw, "tool_choice", &choice); err != nil {
		return err
	}
	if choice.DisableParallel {
		r.note("tool_choice.disable_parallel_tool_use: the upstream decides how many tools it calls at once")
	}

	// A forced tool call cannot be emulated.
	switch choice.Type {
	case "auto":
	case "":
		if present(raw) {
			return invalid("tool_choice.type", "is required")
		}
	case "none":
		r.turn.Tools = nil
	case "any", "tool":
		return &turn.Error{
			Kind: turn.Invalid, Param: "tool_choice", Code: "unsupported_parameter",
			Message: fmt.Sprintf("tool_choice: the type %s is not supported: the upstream cannot be forced to call a tool; use auto and ask for the tool in the prompt", choice.Type),
		}
	default:
		return invalid("tool_choice.type", "must be auto or none, not %.40q", choice.Type)
	}
	return nil
}

// note adds a note about a parameter without effect, unless it was added before.
func (r *request) note(text string) {
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// required decodes the member name of the request into v; it must be present.
func required(body map[string]json.RawMessage, name string, v any) *turn.Error {
	if !present(body[name]) {
		return invalid(name, "is required")
	}
	return front.Member(body[name], name, v)
}

// present reports whether a JSON member is present and not null.
func present(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null"
}

// list decodes a JSON array of at most front.MaxMessages values. path names it in errors.
func list[T any](raw json.RawMessage, path string) ([]T, *turn.Error) {
	if !present(raw) {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, invalid(path, "must be a list")
	}
	// A list has at most one entry more than its text has commas.
	var entries []T
	if bytes.Count(raw, []byte{','}) < 10*front.MaxMessages && json.Unmarshal(raw, &entries) == nil && len(entries) <= front.MaxMessages {
		return entries, nil
	}

	// The slow way finds which entry is wrong, and does not read on behind the limit, so
	// that a body of ten million empty entries costs no memory.
	entries = nil
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, invalid(path, "is not valid JSON: %v", err)
	}
	for dec.More() {
		if len(entries) == front.MaxMessages {
			return nil, invalid(path, "has more than %d entries", front.MaxMessages)
		}
		var text json.RawMessage
		if err := dec.Decode(&text); err != nil {
			return nil, invalid(path, "is not valid JSON: %v", err)
		}
		var entry T
		if err := front.Member(text, fmt.Sprintf("%s.%d", path, len(entries)), &entry); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// invalid returns the error for an invalid value at path, with a text formatted as by fmt.Sprintf.
func invalid(path, format string, args ...any) *turn.Error {
	return &turn.Error{Kind: turn.Invalid, Param: path, Message: path + ": " + fmt.Sprintf(format, args...)}
}
