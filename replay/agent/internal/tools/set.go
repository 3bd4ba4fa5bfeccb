package tools

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/turn"
)

// Provider is the name of the MCP server under which the client's tools are announced to the agent
// server.
const Provider = "unwire"

// maxArguments limits the JSON arguments of a tool call in bytes.
const maxArguments = 8 << 20

// A Set has the tools that a client offers for one request. It converts between them and the tools that
// the agent server requests.
type Set struct {
	// definitions are the message types of the agent service.
	definitions *message.Definitions

	// tools are the client's tools, in the order of the request.
	tools []turn.Tool

	// byName are the tools by name.
	byName map[string]*turn.Tool

	// table maps the server's built-in tools to tools of the client.
	table *Map

	// schemas are the compiled schemas of the tools that were called, by name.
	schemas map[string]*schemaCheck
}

// NewSet returns the set of a request's tools; table maps the server's built-in tools to them.
//
// Errors: a *turn.Error of kind Invalid if a tool has no name, a duplicate name, or a schema that is
// not a JSON object.
func NewSet(d *message.Definitions, list []turn.Tool, table *Map) (*Set, error) {
	s := &Set{definitions: d, tools: list, byName: map[string]*turn.Tool{}, table: table, schemas: map[string]*schemaCheck{}}
	for i := range list {
		t := &list[i]
		param := fmt.Sprintf("tools.%d", i)
		if t.Name == "" {
			return nil, &turn.Error{Kind: turn.Invalid, Param: param, Message: param + " has no name"}
		}
		if s.byName[t.Name] != nil {
			return nil, &turn.Error{Kind: turn.Invalid, Param: param, Message: fmt.Sprintf("two tools have the name %q", t.Name)}
		}
		var object map[string]json.RawMessage
		if len(t.Schema) > 0 && (json.Unmarshal(t.Schema, &object) != nil || object == nil) {
			return nil, &turn.Error{Kind: turn.Invalid, Param: param, Message: fmt.Sprintf("the schema of the tool %q is not a JSON object", t.Name)}
		}
		s.byName[t.Name] = t
	}
	return s, nil
}

// Announce writes the tools into m, an McpTools message, which announces them to the server.
func (s *Set) Announce(m message.Message) error {
	for i := range s.tools {
		t := &s.tools[i]
		def := m.AddNew("mcp_tools").Set("name", t.Name).Set("description", t.Description).
			Set("provider_identifier", Provider).Set("tool_name", t.Name)
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if err := protojson.Unmarshal(schema, def.At("input_schema").Interface()); err != nil {
			return &turn.Error{Kind: turn.Invalid, Message: fmt.Sprintf("the schema of the tool %q cannot be sent: %v", t.Name, err), Err: err}
		}
	}
	return nil
}

// Call returns the call of a client's tool that does what the server requests with e. If no tool can do
// it, call is nil and refusal has the messages that report this to the server.
func (s *Set) Call(e *Exec) (call *turn.Call, refusal []message.Message) {
	if e.Kind == "mcp_args" {
		return s.callMCP(e)
	}
	call, reason := s.table.call(s, e)
	if call == nil {
		return nil, s.Refuse(e, reason)
	}
	return call, nil
}

// callMCP returns the call of a client's tool for a request that names one of the announced (MCP) tools. If there is no
// such tool, call is nil and refusal has the messages that report this to the server.
func (s *Set) callMCP(e *Exec) (call *turn.Call, refusal []message.Message) {
	name, ok := s.resolve(e.Args.Text("tool_name"), e.Args.Text("name"))
	if !ok {
		return nil, s.notFound(e)
	}
	arguments, err := argumentsOf(e.Args)
	if err != nil {
		return nil, s.Refuse(e, err.Error())
	}
	return &turn.Call{Name: name, Arguments: arguments}, nil
}

// resolve returns the first of names that is a tool of the client, possibly after removing the
// provider's prefix.
func (s *Set) resolve(names ...string) (name string, ok bool) {
	for _, name := range names {
		if s.byName[name] != nil {
			return name, true
		}
		for _, prefix := range []string{"mcp_" + Provider + "_", Provider + "-", Provider + "_"} {
			if bare, cut := strings.CutPrefix(name, prefix); cut && s.byName[bare] != nil {
				return bare, true
			}
		}
	}
	return "", false
}

// argumentsOf converts the arguments in an McpArgs message to a JSON object.
func argumentsOf(args message.Message) (json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	var failed error
	size := 0
	args.Value("args").Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		raw := []byte("null")
		if m := (message.Message{Message: v.Message()}); hasKind(m) {
			if raw, failed = protojson.Marshal(m.Interface()); failed != nil {
				failed = fmt.Errorf("the argument %.40q is not valid: %w", key.String(), failed)
				return false
			}
		}
		if size += len(raw) + len(key.String()); size > maxArguments {
			failed = fmt.Errorf("the arguments are larger than %d MB", maxArguments>>20)
			return false
		}
		object[key.String()] = raw
		return true
	})
	if failed != nil {
		return nil, failed
	}
	return json.Marshal(object)
}

// hasKind reports whether a google.protobuf.Value message has a value, i.e. whether its oneof is set.
func hasKind(m message.Message) bool {
	return m.WhichOneof(m.Descriptor().Oneofs().Get(0)) != nil
}
