package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A schemaCheck is the compiled JSON schema of a tool's arguments.
type schemaCheck struct {
	// compiled validates arguments; nil if the tool has no schema.
	compiled *jsonschema.Schema

	// properties are the top-level properties that the schema declares.
	properties map[string]json.RawMessage
	// closed means that the schema allows no additional properties.
	closed bool
}

// schema returns the schema of the named tool's arguments. It is compiled at its first use.
//
// Errors: a schema that is invalid or refers to another file.
func (s *Set) schema(name string) (*schemaCheck, error) {
	if c := s.schemas[name]; c != nil {
		return c, nil
	}
	c, err := compile(s.byName[name].Schema)
	if err != nil {
		return nil, fmt.Errorf("the JSON Schema of the tool is not valid: %w", err)
	}
	s.schemas[name] = c
	return c, nil
}

// A noLoader refuses to load further schemas by reference: those of clients must be self-contained.
type noLoader struct{}

// errRemote reports a schema that refers to another file.
var errRemote = errors.New("the JSON Schema refers to another file")

// Load returns errRemote.
func (noLoader) Load(string) (any, error) { return nil, errRemote }

// compile compiles a JSON schema. An empty text gives a schemaCheck that accepts everything.
func compile(text json.RawMessage) (*schemaCheck, error) {
	if len(text) == 0 {
		return &schemaCheck{}, nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	// The name is absolute: a relative one would be resolved against the working directory, which
	// may not exist.
	const name = "tool:///schema.json"
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}

	// knows and declares need the names of the top-level properties.
	var top struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	return &schemaCheck{compiled: compiled, properties: top.Properties, closed: string(top.AdditionalProperties) == "false"}, nil
}

// declares reports whether the schema declares a top-level property with this name.
func (c *schemaCheck) declares(name string) bool {
	_, ok := c.properties[name]
	return ok
}

// knows reports whether the tool would use an argument with this name. If the schema declares any
// properties, the tool is assumed to ignore others.
func (c *schemaCheck) knows(name string) bool {
	return c.declares(name) || len(c.properties) == 0 && !c.closed
}

// validate checks the JSON arguments of a tool call against the schema.
func (c *schemaCheck) validate(arguments []byte) error {
	if c.compiled == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return err
	}
	if err := c.compiled.Validate(v); err != nil {
		return errors.New("the JSON Schema of the tool does not accept the arguments")
	}
	return nil
}
