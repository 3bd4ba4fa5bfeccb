package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"unwire/replay/agent/turn"
)

// functionName matches the tool names that the APIs allow.
var functionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`) })

// A Tools collects the tools that a request offers; their names must be unique.
type Tools struct {
	// list are the tools in the order of the request.
	list []turn.Tool

	// names has the names of the tools in list.
	names map[string]bool
}

// List returns the tools in the order in which they were added.
func (t *Tools) List() []turn.Tool { return t.list }

// ReadFunction reads the members name, description and parameters of a tool that is a function.
func ReadFunction(o Object) (tool turn.Tool, err *turn.Error) {
	if tool.Name, err = o.Need("name"); err != nil {
		return tool, err
	}
	if tool.Description, err = o.Text("description"); err != nil {
		return tool, err
	}
	if o.Has("parameters") {
		tool.Schema = o.Members["parameters"]
		if !bytes.HasPrefix(tool.Schema, []byte("{")) {
			return tool, o.Invalid("parameters", "invalid_function_parameters", "must be a JSON Schema object")
		}
	}
	return tool, nil
}

// Add adds a tool. path is the path of its name, for errors.
//
// Errors: kind Invalid for a name that the APIs do not allow, or that another tool has.
func (t *Tools) Add(tool turn.Tool, path string) *turn.Error {
	if !functionName().MatchString(tool.Name) {
		return invalid(path, "invalid_value", fmt.Sprintf("is %.80q; a tool's name has 1 to 128 characters of a-z, A-Z, 0-9, _ and -", tool.Name))
	}
	if t.names[tool.Name] {
		return invalid(path, "invalid_value", fmt.Sprintf("is %q, which another tool of the request has", tool.Name))
	}
	if t.names == nil {
		t.names = make(map[string]bool)
	}
	t.names[tool.Name] = true
	t.list = append(t.list, tool)
	return nil
}

// ToolChoice reads the member tool_choice of a request. none means that the model must not call any
// tool.
//
// Errors: kind Invalid for "required" and for a named tool, because the upstream cannot be forced to
// call a tool.
func ToolChoice(o Object) (none bool, err *turn.Error) {
	const name = "tool_choice"
	if !o.Has(name) {
		return false, nil
	}

	// The choice is a string, or an object with a type.
	var choice string
	if json.Unmarshal(o.Members[name], &choice) == nil {
		switch choice {
		case "auto":
			return false, nil
		case "none":
			return true, nil
		case "required":
			return false, o.Invalid(name, "unsupported_value", "must be auto: the upstream cannot be forced to call a tool")
		}
		return false, o.OneOf(name, choice, "auto", "none")
	}
	object, err := o.Child(name)
	if err != nil {
		return false, err
	}
	typ, err := object.Text("type")
	if err != nil {
		return false, err
	}
	if typ == "auto" || typ == "none" { // how some clients of other APIs write it
		return typ == "none", nil
	}
	return false, o.Invalid(name, "unsupported_value", fmt.Sprintf("cannot be of the type %.40q: the upstream cannot be forced to call certain tools; use auto", typ))
}

// Stop reads the member name, the texts at which an answer ends: a string, or a list of at most 4.
func Stop(o Object, name string) ([]string, *turn.Error) {
	if !o.Has(name) {
		return nil, nil
	}
	var list []string
	var one string
	if json.Unmarshal(o.Members[name], &one) == nil {
		list = []string{one}
	} else if err := o.Read(name, &list); err != nil {
		return nil, err
	}
	if len(list) > 4 {
		return nil, o.Invalid(name, "array_above_max_length", "may have at most 4 strings")
	}
	for i, s := range list {
		if s == "" {
			return nil, invalid(Index(o.At(name), i), "invalid_value", "must not be empty")
		}
	}
	return list, nil
}

// MaxTokens reads the member name, a limit of tokens; 0 if it is absent.
func MaxTokens(o Object, name string) (int64, *turn.Error) {
	if !o.Has(name) {
		return 0, nil
	}
	var n int64
	if err := o.Read(name, &n); err != nil {
		return 0, err
	}
	if n < 1 {
		return 0, o.Invalid(name, "integer_below_min_value", "must be at least 1")
	}
	return n, nil
}
