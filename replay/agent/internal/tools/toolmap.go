package tools

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"unwire/replay/agent/turn"
)

// A Map maps the server's built-in tools to tools of the client. It is JSON:
//
//	{
//	  "v": 1,
//	  "tools": [
//	    {"exec": ["shell", "shell_stream"], "tool": "bash",
//	     "arguments": {"command": "${command}", "workdir": "${working_directory}"},
//	     "optional": {"description": "Run a command"}},
//	    {"exec": ["grep"], "when": ["glob"], "unless": ["pattern"], "tool": "glob",
//	     "arguments": {"pattern": "${glob}", "path": "${path}"}}
//	  ]
//	}
//
// The first matching row is used. A row matches if exec lists the request, all fields of when and
// none of unless are set, the client offers the tool, and the tool's schema accepts the arguments.
// In texts, ${field} is a field of the request, ${field|sh} is its value quoted for a POSIX shell,
// and ${field|text} is the empty string if the field is not set. A member whose text is exactly
// ${field} has the field's type, and is left out if the field is not set. Members of optional are
// left out if the schema lacks them; if the schema lacks one of arguments, the row does not match.
type Map struct {
	// rows are tried in order; the first that matches is used.
	rows []row
}

// A row of a tool map maps some kinds of server requests to calls of one client tool.
type row struct {
	// Exec are the kinds of requests to which the row applies, such as "read".
	Exec []string `json:"exec"`

	// When are fields that must be set in the request.
	When []string `json:"when"`

	// Unless are fields that must not be set in the request.
	Unless []string `json:"unless"`

	// Tool is the name of the client's tool.
	Tool string `json:"tool"`

	// Arguments are templates for the arguments of the tool call, by name. If the tool's schema lacks
	// one, the row does not match.
	Arguments map[string]any `json:"arguments"`

	// Optional are templates for further arguments, which are left out if the tool's schema lacks them.
	Optional map[string]any `json:"optional"`
}

// maxMap limits the size of a Map's JSON in bytes.
const maxMap = 1 << 20

// builtinTable is the JSON of the built-in Map.
//
//go:embed toolmap.json
var builtinTable []byte

// BuiltinJSON returns the JSON of the built-in Map.
func BuiltinJSON() []byte { return bytes.Clone(builtinTable) }

// Builtin returns the built-in mapping of server requests to client tools.
func Builtin() *Map {
	m, err := parse(builtinTable)
	// the table is part of the program, and tested
	if err != nil {
		panic("agent: " + err.Error())
	}
	return m
}

// ParseMap parses a Map from JSON. Its rows are tried before those of the built-in Map.
//
// Limits: 1 MB.
// Errors: malformed JSON, and unknown names of requests or fields.
func ParseMap(data []byte) (*Map, error) {
	if len(data) > maxMap {
		return nil, fmt.Errorf("the tool map is larger than %d MB", maxMap>>20)
	}
	m, err := parse(data)
	if err != nil {
		return nil, err
	}
	m.rows = append(m.rows, Builtin().rows...)
	return m, nil
}

// parse parses and checks the JSON of a Map.
func parse(data []byte) (*Map, error) {
	var file struct {
		V     int   `json:"v"`
		Tools []row `json:"tools"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("the tool map cannot be read: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("the tool map has text after its JSON document")
	}
	if file.V != 1 {
		return nil, fmt.Errorf("the tool map has format version %d, but unwire supports only version 1", file.V)
	}
	for i := range file.Tools {
		if err := file.Tools[i].check(); err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
	}
	return &Map{rows: file.Tools}, nil
}

// mappable are the kinds of server requests that a Map may mention, each with the names of its argument
// fields.
var mappable = map[string][]string{
	"shell":         {"command", "working_directory", "timeout", "description"},
	"shell_stream":  {"command", "working_directory", "timeout", "description"},
	"read":          {"path", "offset", "limit"},
	"redacted_read": {"path", "offset", "limit"},
	"ls":            {"path", "ignore"},
	"grep": {
		"pattern", "path", "glob", "output_mode", "context_before", "context_after", "context",
		"case_insensitive", "type", "head_limit", "multiline", "offset",
	},
	"write":  {"path", "file_text", "file_bytes"},
	"delete": {"path"},
	"fetch":  {"url"},
}

// check returns an error if the row names a request or field that mappable lacks, or if it is
// incomplete.
func (r *row) check() error {
	if r.Tool == "" || len(r.Exec) == 0 {
		return fmt.Errorf("the members tool and exec are required")
	}
	names := slices.Concat(r.When, r.Unless)
	for _, v := range []any{r.Arguments, r.Optional} {
		names = append(names, fieldsIn(v)...)
	}
	for _, exec := range r.Exec {
		fields, ok := mappable[exec]
		if !ok {
			return fmt.Errorf("the member exec must be the name of a request that can be mapped to a tool, not %q", exec)
		}
		for _, name := range names {
			if !slices.Contains(fields, name) {
				return fmt.Errorf("the request %s has no field %q", exec, name)
			}
		}
	}
	return nil
}

// call returns the tool call that does what request e asks for, by the first row that matches. If no
// offered tool can do it, it returns nil and the reason.
func (m *Map) call(s *Set, e *Exec) (*turn.Call, string) {
	const none = "This client does not have that tool. Use one of the tools that it announced."
	exec := strings.TrimSuffix(e.Kind, "_args")
	if _, ok := mappable[exec]; !ok || e.Kind == "" {
		return nil, none
	}
	reason := none
	for i := range m.rows {
		r := &m.rows[i]
		if !slices.Contains(r.Exec, exec) || !r.applies(e) || s.byName[r.Tool] == nil {
			continue
		}
		arguments, err := s.fit(r, e)
		if err == nil {
			return &turn.Call{Name: r.Tool, Arguments: arguments}, ""
		}
		reason = fmt.Sprintf("The client's tool %q cannot do this: %v. Use one of the tools that it announced.", r.Tool, err)
	}
	return nil, reason
}

// applies reports whether the row's conditions When and Unless are met by the arguments of e.
func (r *row) applies(e *Exec) bool {
	set := func(name string) bool { return e.Args.Has(name) }
	return !slices.ContainsFunc(r.When, func(name string) bool { return !set(name) }) && !slices.ContainsFunc(r.Unless, set)
}

// fit returns the arguments of the tool call that row r makes of request e, validated against the
// tool's schema.
func (s *Set) fit(r *row, e *Exec) (json.RawMessage, error) {
	schema, err := s.schema(r.Tool)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	for name, template := range r.Arguments {
		v, ok := expand(template, e.Args)
		if !ok {
			continue
		}
		if !schema.knows(name) {
			return nil, fmt.Errorf("the tool has no parameter %q", name)
		}
		object[name] = v
	}
	for name, template := range r.Optional {
		if v, ok := expand(template, e.Args); ok && schema.declares(name) {
			object[name] = v
		}
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return data, schema.validate(data)
}
