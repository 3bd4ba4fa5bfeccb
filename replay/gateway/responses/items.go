package responses

import (
	"encoding/json"
	"fmt"
	"slices"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/openai"
)

// foreign are the types of input items that belong to OpenAI's own tools. unwire never creates such
// items, but a conversation that began at another server may have some.
var foreign = map[string]bool{
	"apply_patch_call": true, "apply_patch_call_output": true, "code_interpreter_call": true, "computer_call": true,
	"computer_call_output": true, "file_search_call": true, "image_generation_call": true, "local_shell_call": true,
	"local_shell_call_output": true, "mcp_approval_request": true, "mcp_approval_response": true, "mcp_call": true,
	"mcp_list_tools": true, "program": true, "program_output": true, "shell_call": true, "shell_call_output": true,
	"tool_search_call": true, "tool_search_output": true, "web_search_call": true,
}

// readInput reads the parameter input, a string or a list of items, and adds it to the transcript t.
func (req *request) readInput(o openai.Object, t *openai.Transcript) *turn.Error {
	if raw := o.Members["input"]; openai.IsString(raw) {
		text, err := o.Text("input")
		t.Add(turn.User, turn.Part{Text: text})
		return err
	}
	list, err := o.List("input")
	if err != nil {
		return o.Invalid("input", "invalid_type", "must be a string or a list of items")
	}
	if len(list) > front.MaxMessages {
		return o.Invalid("input", "array_above_max_length", fmt.Sprintf("has more than %d items", front.MaxMessages))
	}
	for i, raw := range list {
		item, err := openai.ReadObject(raw, openai.Index("input", i))
		if err == nil {
			err = req.readItem(item, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readItem reads one input item, such as a message or a tool call, and adds it to the transcript t.
func (req *request) readItem(o openai.Object, t *openai.Transcript) *turn.Error {
	typ, err := o.Text("type")
	if err != nil {
		return err
	}
	switch {
	case typ == "reasoning":
		// The upstream keeps its own reasoning.
		return nil
	case foreign[typ]:
		req.notes.Add("input[] " + typ + ": not sent to the upstream, which has no such tool")
		return nil
	case typ == "item_reference":
		return o.Invalid("id", "item_not_found", "refers to an item of an earlier response, and unwire does not store items; send the item itself")
	}

	// Parameters that cannot be forwarded are noted, not refused.
	if err := req.notes.Check(itemParams, o, "input[]"); err != nil {
		return err
	}
	switch typ {
	case "", "message":
		return req.readMessage(o, t)
	case "function_call", "custom_tool_call":
		return req.readCall(o, t, typ == "custom_tool_call")
	case "function_call_output", "custom_tool_call_output":
		id, err := o.Need("call_id")
		if err != nil {
			return err
		}
		parts, err := req.content(o, "output", "input_text", "output_text", "input_image")
		if err != nil {
			return err
		}
		return t.Result(turn.Result{CallID: id, Parts: parts}, o.At("call_id"))
	}
	return o.OneOf("type", typ, "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning")
}

// readMessage reads an input item that is a message, and adds it to the transcript t.
func (req *request) readMessage(o openai.Object, t *openai.Transcript) *turn.Error {
	role, err := o.Text("role")
	if err != nil {
		return err
	}
	var to turn.Role
	types := []string{"input_text", "output_text", "text"}
	switch role {
	case "system", "developer":
		to = turn.System
	case "user":
		to, types = turn.User, append(types, "input_image")
	case "assistant":
		to, types = turn.Assistant, append(types, "refusal")
	default:
		return o.OneOf("role", role, "user", "assistant", "system", "developer")
	}
	parts, err := req.content(o, "content", types...)
	if err != nil {
		return err
	}
	if parts == nil {
		return o.Invalid("content", "missing_required_parameter", "is required")
	}
	t.Add(to, parts...)
	return nil
}

// readCall reads an input item that is a tool call, and adds it to the transcript t under the tool's
// name for the upstream server. custom means that the tool's input is text instead of JSON.
func (req *request) readCall(o openai.Object, t *openai.Transcript, custom bool) *turn.Error {
	id, err := o.Need("call_id")
	if err != nil {
		return err
	}
	name, err := o.Need("name")
	if err != nil {
		return err
	}
	namespace, err := o.Text("namespace")
	if err != nil {
		return err
	}
	call := &turn.Call{ID: id, Name: announced(namespace, name)}

	// A custom tool gets its input as text, other tools as JSON.
	if custom {
		text, err := o.Text("input")
		if err != nil {
			return err
		}
		call.Arguments = openai.Marshal(map[string]string{"input": text})
	} else {
		text, err := o.Text("arguments")
		if err != nil {
			return err
		}
		call.Arguments = front.Arguments(text)
	}
	t.Add(turn.Assistant, turn.Part{Call: call})
	return nil
}

// content returns the content of an item in member name, which is a string or a list of parts of the
// given types. If the member is missing, the result is nil. An empty string gives one empty part, since
// a tool result may be empty.
func (req *request) content(o openai.Object, name string, types ...string) ([]turn.Part, *turn.Error) {
	if !o.Has(name) {
		return nil, nil
	}
	if openai.IsString(o.Members[name]) {
		text, err := o.Text(name)
		return []turn.Part{{Text: text}}, err
	}
	list, err := o.List(name)
	if err != nil {
		return nil, o.Invalid(name, "invalid_type", "must be a string or a list of parts")
	}
	parts := make([]turn.Part, 0, len(list))
	for i, raw := range list {
		part, err := req.readPart(raw, openai.Index(o.At(name), i), types)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// readPart reads one part of an item's content, which must have one of the given types. path names it
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
	if !slices.Contains(types, typ) {
		return part, o.OneOf("type", typ, types...)
	}
	if err := req.notes.Check(partParams, o, "input[].content[]"); err != nil {
		return part, err
	}

	// Each type of part has its content in another member.
	switch typ {
	case "input_image":
		url, err := o.Need("image_url")
		if err != nil {
			return part, err
		}
		part.Image, err = front.DataImage(url, o.At("image_url"))
		return part, err
	case "refusal":
		part.Text, err = o.Text("refusal")
	default:
		part.Text, err = o.Text("text")
	}
	return part, err
}
