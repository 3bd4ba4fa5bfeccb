package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A schemaCheck has the schema of a tool's arguments.
type schemaCheck struct {
	compiled   *jsonschema.Schema
	properties map[string]json.RawMessage
	closed     bool // no other properties
}

// schema returns the schema of a tool, which is compiled at its first use.
//
// Errors: a schema that is not valid, or that refers to another file.
func (s *Set) schema(name string) (*schemaCheck, error) {
	if c := s.schemas[name]; c != nil {
		return c, nil
	}
	c, err := compile(s.byName[name].Schema)
	if err != nil {
		return nil, fmt.Errorf("its schema is not valid: %w", err)
	}
	s.schemas[name] = c
	return c, nil
}

// noLoader loads no schema: those of clients must be complete.
type noLoader struct{}

var errRemote = errors.New("it refers to another file")

func (noLoader) Load(string) (any, error) { return nil, errRemote }

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
	// A relative name would be resolved by the working folder, which may be gone.
	const name = "tool:///schema.json"
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	var top struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	return &schemaCheck{compiled: compiled, properties: top.Properties, closed: string(top.AdditionalProperties) == "false"}, nil
}

// declares reports whether the schema names a property.
func (c *schemaCheck) declares(name string) bool {
	_, ok := c.properties[name]
	return ok
}

// knows reports whether a tool with the schema would read a property. One that names
// others is taken to ignore those that it does not name.
func (c *schemaCheck) knows(name string) bool {
	return c.declares(name) || len(c.properties) == 0 && !c.closed
}

// validate checks arguments.
func (c *schemaCheck) validate(arguments []byte) error {
	if c.compiled == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return err
	}
	if err := c.compiled.Validate(v); err != nil {
		return errors.New("its schema does not accept the arguments")
	}
	return nil
}
