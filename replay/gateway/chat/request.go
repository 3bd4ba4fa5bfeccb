package chat

import (
	"encoding/json"
	"fmt"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// parse reads the parameters of a request body, given as its JSON members.
//
// Errors: kind Invalid, with the path of the parameter.
func parse(body map[string]json.RawMessage) (*request, *turn.Error) {
	req := &request{}
	o := openai.Object{Members: body}
	if err := req.notes.Check(Params, o, ""); err != nil {
		return nil, err
	}
	for _, read := range []func(openai.Object) *turn.Error{req.readOptions, req.readLimits, req.readTools, req.readMessages} {
		if err := read(o); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// readOptions reads model, stream and stream_options.
func (req *request) readOptions(o openai.Object) (err *turn.Error) {
	if req.turn.Model, err = o.Need("model"); err != nil {
		return err
	}
	if err := o.Read("stream", &req.stream); err != nil {
		return err
	}

	options, err := o.Child("stream_options")
	if err != nil {
		return err
	}
	if options.Members != nil && !req.stream {
		return o.Invalid("stream_options", "invalid_value", "is only allowed with stream")
	}
	if err := req.notes.Check(streamOptionsParams, options, "stream_options"); err != nil {
		return err
	}
	return options.Read("include_usage", &req.includeUsage)
}

// readLimits reads stop, max_tokens and response_format.
func (req *request) readLimits(o openai.Object) (err *turn.Error) {
	if req.turn.Stop, err = openai.Stop(o, "stop"); err != nil {
		return err
	}

	// max_completion_tokens is the newer name; if both are given, it wins.
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		n, err := openai.MaxTokens(o, name)
		if err != nil {
			return err
		}
		if n > 0 {
			req.turn.MaxTokens = n
		}
	}

	if !o.Has("response_format") {
		return nil
	}
	format, err := o.Child("response_format")
	if err != nil {
		return err
	}
	typ, err := format.Need("type")
	if err != nil {
		return err
	}

	// A format cannot be enforced, and ignoring it would surprise the client.
	if typ != "text" {
		return format.Invalid("type", "unsupported_value", fmt.Sprintf("cannot be %.40q: the upstream cannot enforce a format; use text and ask for JSON in the prompt", typ))
	}
	return req.notes.Check(formatParams, format, "response_format")
}

// readTools reads tools and tool_choice.
func (req *request) readTools(o openai.Object) *turn.Error {
	none, err := openai.ToolChoice(o)
	if err != nil {
		return err
	}
	list, err := o.List("tools")
	if err != nil {
		return err
	}
	var tools openai.Tools
	for i, raw := range list {
		tool, err := openai.ReadObject(raw, openai.Index("tools", i))
		if err != nil {
			return err
		}
		if err := req.readTool(tool, &tools); err != nil {
			return err
		}
	}
	if !none {
		req.turn.Tools = tools.List()
	}
	return nil
}

// readTool reads one element of tools, and adds it to tools.
func (req *request) readTool(o openai.Object, tools *openai.Tools) *turn.Error {
	typ, err := o.Text("type")
	if err != nil {
		return err
	}
	if typ != "function" {
		return o.OneOf("type", typ, "function")
	}
	function, err := o.Child("function")
	if err != nil {
		return err
	}
	if err := req.notes.Check(toolParams, o, "tools[]"); err != nil {
		return err
	}
	if err := req.notes.Check(functionParams, function, "tools[].function"); err != nil {
		return err
	}
	read, err := openai.ReadFunction(function)
	if err != nil {
		return err
	}
	return tools.Add(read, function.At("name"))
}

// readMessages reads messages.
func (req *request) readMessages(o openai.Object) *turn.Error {
	list, err := o.List("messages")
	if err != nil {
		return err
	}
	if len(list) > front.MaxMessages {
		return o.Invalid("messages", "array_above_max_length", fmt.Sprintf("has more than %d messages", front.MaxMessages))
	}
	var t openai.Transcript
	for i, raw := range list {
		m, err := openai.ReadObject(raw, openai.Index("messages", i))
		if err == nil {
			err = req.notes.Check(messageParams, m, "messages[]")
		}
		if err == nil {
			err = req.readMessage(m, &t)
		}
		if err != nil {
			return err
		}
	}
	req.turn.Messages, err = t.Messages("messages")
	return err
}

// readMessage reads one element of messages, and adds it to the transcript t.
func (req *request) readMessage(o openai.Object, t *openai.Transcript) *turn.Error {
	role, err := o.Text("role")
	if err != nil {
		return err
	}
	switch role {
	case "system", "developer":
		return req.addContent(o, t, turn.System, "text")
	case "user":
		return req.addContent(o, t, turn.User, "text", "image_url")
	case "assistant":
		return req.readAssistant(o, t)
	case "tool":
		id, err := o.Need("tool_call_id")
		if err != nil {
			return err
		}
		parts, err := req.content(o, "text", "image_url")
		if err != nil {
			return err
		}
		return t.Result(turn.Result{CallID: id, Parts: parts}, o.At("tool_call_id"))
	}
	return o.OneOf("role", role, "system", "developer", "user", "assistant", "tool")
}

// addContent adds a message with this role, whose content must be present and consist of parts of the
// given types.
func (req *request) addContent(o openai.Object, t *openai.Transcript, role turn.Role, types ...string) *turn.Error {
	parts, err := req.content(o, types...)
	if err != nil {
		return err
	}
	if parts == nil {
		return o.Invalid("content", "missing_required_parameter", "is required")
	}
	t.Add(role, parts...)
	return nil
}

// readAssistant adds a message of the assistant with its reasoning, text and tool calls to the
// transcript t.
func (req *request) readAssistant(o openai.Object, t *openai.Transcript) *turn.Error {
	// Reasoning comes first, because the model produced it first.
	var parts []turn.Part
	thinking, err := o.Text("reasoning_content")
	if err != nil {
		return err
	}
	if thinking != "" {
		parts = append(parts, turn.Part{Thinking: thinking})
	}

	content, err := req.content(o, "text", "refusal")
	if err != nil {
		return err
	}
	parts = append(parts, content...)
	refusal, err := o.Text("refusal")
	if err != nil {
		return err
	}
	if refusal != "" {
		parts = append(parts, turn.Part{Text: refusal})
	}

	// Tool calls follow the text.
	calls, err := o.List("tool_calls")
	if err != nil {
		return err
	}
	for i, raw := range calls {
		call, err := req.readCall(raw, openai.Index(o.At("tool_calls"), i))
		if err != nil {
			return err
		}
		parts = append(parts, turn.Part{Call: call})
	}
	t.Add(turn.Assistant, parts...)
	return nil
}

// readCall reads one tool call of an assistant message. path names it in errors.
func (req *request) readCall(raw json.RawMessage, path string) (*turn.Call, *turn.Error) {
	o, err := openai.ReadObject(raw, path)
	if err != nil {
		return nil, err
	}
	if err := req.notes.Check(callParams, o, "messages[].tool_calls[]"); err != nil {
		return nil, err
	}

	// Custom tools have another shape and are refused.
	if typ, err := o.Text("type"); err != nil || typ != "function" && typ != "" {
		if err == nil {
			err = o.OneOf("type", typ, "function")
		}
		return nil, err
	}
	id, err := o.Need("id")
	if err != nil {
		return nil, err
	}
	function, err := o.Child("function")
	if err != nil {
		return nil, err
	}
	name, err := function.Need("name")
	if err != nil {
		return nil, err
	}
	arguments, err := function.Text("arguments")
	if err != nil {
		return nil, err
	}

	// The arguments are JSON in a string, as the API of OpenAI defines them.
	return &turn.Call{ID: id, Name: name, Arguments: front.Arguments(arguments)}, nil
}

// content returns the content of a message, which is a string or a list of parts of the given types. If
// the content is missing, the result is nil. An empty string gives one empty part, since a tool result
// may be empty.
func (req *request) content(o openai.Object, types ...string) ([]turn.Part, *turn.Error) {
	if !o.Has("content") {
		return nil, nil
	}
	if raw := o.Members["content"]; openai.IsString(raw) {
		text, err := o.Text("content")
		return []turn.Part{{Text: text}}, err
	}
	list, err := o.List("content")
	if err != nil {
		return nil, o.Invalid("content", "invalid_type", "must be a string or a list of parts")
	}
	parts := make([]turn.Part, 0, len(list))
	for i, raw := range list {
		part, err := req.readPart(raw, openai.Index(o.At("content"), i), types)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// readPart reads one part of a message's content, which must have one of the given types. path names it
// in errors.
func (req *request) readPart(raw json.RawMessage, path string, types []string) (part turn.Part, err *turn.Error) {
	o, err := openai.ReadObject(raw, path)
	if err != nil {
		return part, err
	}
	typ, err := o.Text("type")
	if err != nil {
		return part, err
	}

	// Each role allows its own types of parts.
	allowed := false
	for _, t := range types {
		allowed = allowed || t == typ
	}
	if !allowed {
		return part, o.OneOf("type", typ, types...)
	}
	if err := req.notes.Check(partParams, o, "messages[].content[]"); err != nil {
		return part, err
	}

	// All other types hold a text, in a member with the name of the type.
	if typ != "image_url" {
		part.Text, err = o.Text(typ)
		return part, err
	}
	image, err := o.Child("image_url")
	if err != nil {
		return part, err
	}
	if err := req.notes.Check(imageParams, image, "messages[].content[].image_url"); err != nil {
		return part, err
	}
	url, err := image.Need("url")
	if err != nil {
		return part, err
	}
	part.Image, err = front.DataImage(url, image.At("url"))
	return part, err
}
