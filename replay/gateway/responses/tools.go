package responses

import (
	"encoding/json"
	"fmt"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/openai"
)

// hosted are the types of tools that OpenAI runs itself or that its models are trained for. They are
// not offered to the upstream server. Clients list them by default and work without them.
var hosted = map[string]bool{
	"apply_patch": true, "code_interpreter": true, "computer": true, "computer_use_preview": true, "file_search": true,
	"image_generation": true, "local_shell": true, "mcp": true, "programmatic_tool_calling": true, "shell": true,
	"tool_search": true, "web_search": true, "web_search_2025_08_26": true, "web_search_preview": true, "web_search_preview_2025_03_11": true,
}

// A tool is the client's view of a tool that is offered to the upstream server under a single name.
type tool struct {
	// custom means that the tool's input is text instead of JSON.
	custom bool

	// namespace is the namespace of the tool, "" for none, and name its name in it.
	namespace, name string
}

// announced returns the single name under which a tool is offered to the upstream server:
// NAMESPACE__NAME.
func announced(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// inputSchema is the JSON schema that the upstream server gets for a custom tool: an object with the
// text input.
const inputSchema = `{"type":"object","properties":{"input":{"type":"string","description":"the tool's whole input, as text"}},"required":["input"],"additionalProperties":false}`

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
	r := toolReader{req: req}
	for i, raw := range list {
		t, err := openai.ReadObject(raw, openai.Index("tools", i))
		if err == nil {
			err = r.read(t, raw)
		}
		if err != nil {
			return err
		}
	}
	req.toolChoice = "auto"
	if none {
		req.toolChoice = "none"
		return nil
	}
	req.turn.Tools = r.tools.List()
	return nil
}

// A toolReader parses the tools of a request, which may be nested in namespaces.
type toolReader struct {
	// req is the request, which gets notes and tools.
	req *request

	// tools are the tools to offer to the upstream server.
	tools openai.Tools
	// namespace and about are name and description of the namespace that is being parsed; "" outside of
	// one.
	namespace, about string
}

// read parses one element of tools; raw is its JSON.
func (r *toolReader) read(o openai.Object, raw json.RawMessage) *turn.Error {
	typ, err := o.Text("type")
	if err != nil {
		return err
	}
	switch {
	case typ == "function":
		if err := r.req.notes.Check(functionParams, o, "tools[]"); err != nil {
			return err
		}
		return r.function(o)
	case typ == "custom":
		if err := r.req.notes.Check(customParams, o, "tools[]"); err != nil {
			return err
		}
		return r.custom(o, raw)
	case typ == "namespace" && r.namespace == "":
		if err := r.req.notes.Check(namespaceParams, o, "tools[]"); err != nil {
			return err
		}
		return r.readNamespace(o, raw)
	case hosted[typ]:
		r.req.notes.Add("tools[] " + typ + ": the upstream has no such tool")
		return nil
	}
	return o.OneOf("type", typ, "function", "custom", "namespace")
}

// function parses a tool that is a function.
func (r *toolReader) function(o openai.Object) *turn.Error {
	read, err := openai.ReadFunction(o)
	if err != nil {
		return err
	}
	if r.namespace == "" {
		r.echo(newFunctionTool(read))
	}
	return r.add(read, tool{name: read.Name}, o)
}

// custom parses a custom tool, whose input is text; raw is its JSON.
func (r *toolReader) custom(o openai.Object, raw json.RawMessage) *turn.Error {
	name, err := o.Need("name")
	if err != nil {
		return err
	}
	description, err := o.Text("description")
	if err != nil {
		return err
	}
	format, err := o.Child("format")
	if err != nil {
		return err
	}
	definition, err := format.Text("definition")
	if err != nil {
		return err
	}

	// The upstream cannot enforce a grammar, so the model gets it as part of the description.
	if definition != "" {
		syntax, err := format.Text("syntax")
		if err != nil {
			return err
		}
		description = strings.TrimSpace(description + "\n\nThe input must match this " + syntax + " grammar:\n" + definition)
	}
	if r.namespace == "" {
		r.echo(raw)
	}
	return r.add(turn.Tool{Name: name, Description: description, Schema: json.RawMessage(inputSchema)}, tool{custom: true, name: name}, o)
}

// readNamespace parses a namespace and the tools in it; raw is its JSON.
func (r *toolReader) readNamespace(o openai.Object, raw json.RawMessage) (err *turn.Error) {
	if r.namespace, err = o.Need("name"); err != nil {
		return err
	}
	if r.about, err = o.Text("description"); err != nil {
		return err
	}
	list, err := o.List("tools")
	if err != nil {
		return err
	}
	for i, raw := range list {
		t, err := openai.ReadObject(raw, openai.Index(o.At("tools"), i))
		if err == nil {
			err = r.read(t, raw)
		}
		if err != nil {
			return err
		}
	}
	r.namespace, r.about = "", ""
	r.echo(raw)
	return nil
}

// add adds the tool t, which is offered to the upstream server in place of the client's tool known.
func (r *toolReader) add(t turn.Tool, known tool, o openai.Object) *turn.Error {
	known.namespace = r.namespace
	t.Name = announced(r.namespace, t.Name)
	if r.about != "" {
		t.Description = fmt.Sprintf("%s (%s: %s)", t.Description, r.namespace, r.about)
	}
	if r.req.tools == nil {
		r.req.tools = make(map[string]tool)
	}
	r.req.tools[t.Name] = known
	return r.tools.Add(t, o.At("name"))
}

// echo adds a tool definition to the response, which repeats the request's tools.
func (r *toolReader) echo(v any) { r.req.echoTools = append(r.req.echoTools, v) }

// input extracts the text from the JSON arguments with which the upstream server called a custom tool.
func input(arguments json.RawMessage) string {
	var object struct {
		Input *string `json:"input"`
	}
	if json.Unmarshal(arguments, &object) == nil && object.Input != nil {
		return *object.Input
	}
	return string(arguments)
}
