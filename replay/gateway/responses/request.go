package responses

import (
	"encoding/json"
	"fmt"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/openai"
)

// A request is the parsed body of POST /v1/responses.
type request struct {
	// turn is the request in the form for the gateway's core.
	turn turn.Request

	// stream asks for a streamed response.
	stream bool

	// notes are the parameters that had no effect, for a response header.
	notes openai.Notes
	// transcript are the messages of the turn without the instructions, which do not apply to a later
	// response that continues this one.
	transcript []turn.Message

	// store means that the transcript may be kept in memory.
	store bool
	// tools are the client's tools by their names for the upstream server.
	tools map[string]tool

	// echoTools and the fields below are repeated in the response, as the API requires.
	echoTools []any

	// toolChoice is "auto" or "none".
	toolChoice string

	// parallel is the parameter parallel_tool_calls.
	parallel bool

	// instructions is the parameter of that name; nil if it is absent.
	instructions *string

	// previous is the id of the earlier response that the request continues; nil for none.
	previous *string

	// metadata is the parameter of that name.
	metadata map[string]string

	// maxTokens is the largest number of output tokens; nil for no limit.
	maxTokens *int64
}

// A finder returns the stored transcript of the response with this id; false if there is none.
type finder func(id string) ([]turn.Message, bool)

// parse reads the parameters of a request body, given as its JSON members. find finds the earlier
// response that the request may continue.
//
// Errors: kind Invalid, with the path of the parameter.
func parse(body map[string]json.RawMessage, find finder) (*request, *turn.Error) {
	req := &request{store: true, parallel: true, metadata: map[string]string{}, echoTools: []any{}}
	o := openai.Object{Members: body}
	if err := req.notes.Check(Params, o, ""); err != nil {
		return nil, err
	}
	for _, read := range []func(openai.Object) *turn.Error{req.readOptions, req.readText, req.readTools} {
		if err := read(o); err != nil {
			return nil, err
		}
	}
	if err := req.readTranscript(o, find); err != nil {
		return nil, err
	}
	return req, nil
}

// readOptions reads the simple parameters, such as model and stream.
func (req *request) readOptions(o openai.Object) (err *turn.Error) {
	if req.turn.Model, err = o.Need("model"); err != nil {
		return err
	}
	for _, member := range []struct {
		name string
		to   any
	}{
		{"stream", &req.stream},
		{"store", &req.store},
		{"parallel_tool_calls", &req.parallel},
		{"metadata", &req.metadata},
		{"instructions", &req.instructions},
		{"previous_response_id", &req.previous},
	} {
		if err := o.Read(member.name, member.to); err != nil {
			return err
		}
	}

	// The limit is reported back in the response.
	if req.turn.MaxTokens, err = openai.MaxTokens(o, "max_output_tokens"); err != nil {
		return err
	}
	if req.turn.MaxTokens > 0 {
		req.maxTokens = &req.turn.MaxTokens
	}
	options, err := o.Child("stream_options")
	if err != nil {
		return err
	}
	return req.notes.Check(streamOptionsParams, options, "stream_options")
}

// readText reads the parameter text. It refuses output formats, because the upstream cannot be forced
// to use one.
func (req *request) readText(o openai.Object) *turn.Error {
	text, err := o.Child("text")
	if err != nil {
		return err
	}
	if err := req.notes.Check(textParams, text, "text"); err != nil {
		return err
	}
	if !text.Has("format") {
		return nil
	}
	format, err := text.Child("format")
	if err != nil {
		return err
	}
	typ, err := format.Need("type")
	if err == nil && typ != "text" {
		err = format.Invalid("type", "unsupported_value", fmt.Sprintf("cannot be %.40q: the upstream cannot enforce a format; use text and ask for JSON in the prompt", typ))
	}
	return err
}

// readTranscript builds the transcript from the instructions, the transcript of the earlier response
// and the input.
func (req *request) readTranscript(o openai.Object, find finder) *turn.Error {
	var t openai.Transcript
	if req.previous != nil {
		messages, ok := find(*req.previous)
		if !ok {
			return &turn.Error{
				Kind: turn.Invalid, Param: "previous_response_id", Code: "previous_response_not_found",
				Message: fmt.Sprintf("Previous response with id '%.80s' not found.", *req.previous),
			}
		}
		t.Extend(messages)
	}
	if err := req.readInput(o, &t); err != nil {
		return err
	}
	messages, err := t.Messages("input")
	if err != nil {
		return err
	}
	req.transcript, req.turn.Messages = messages, messages
	if req.instructions != nil && *req.instructions != "" {
		system := turn.Message{Role: turn.System, Parts: []turn.Part{{Text: *req.instructions}}}
		req.turn.Messages = append([]turn.Message{system}, messages...)
	}
	return nil
}
