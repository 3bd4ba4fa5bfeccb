package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"unwire/cmd/internal/mcp/answer"
)

// A tool is one MCP tool: its name, description, arguments and handler.
type tool struct {
	// name is the name by which clients call the tool.
	name string

	// title is its name for people.
	title string

	// about is its description.
	about string

	// schema is the JSON Schema of the arguments.
	schema *jsonschema.Schema

	// writes means that the tool changes files.
	writes bool

	// sends means that the tool sends requests to servers.
	sends bool

	// prepare parses the arguments of a call. It returns the requested page, and a function that adds the
	// items of the answer.
	prepare func(arguments json.RawMessage) (answer.Request, func(*call) error, error)
}

// A request is the type of the arguments of a tool.
type request interface {
	// Paging returns the arguments that limit the size of the answer.
	Paging() answer.Request
}

// paging has the arguments about size and page that all tools share.
type paging struct {
	// Request limits the size of the answer, and selects the page by the cursor of the previous one.
	answer.Request
}

// Paging returns these arguments.
func (p paging) Paging() answer.Request { return p.Request }

// define returns a tool with the arguments In, a struct from which the JSON Schema is derived. do
// implements the tool.
func define[In request](name, title, about string, do func(*call, In) error) tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // of the type, which is part of the program
	}
	for _, property := range schema.Properties {
		// A list that is null is the same as none, but some clients know only one type.
		if slices.Contains(property.Types, "array") {
			property.Type, property.Types = "array", nil
		}
	}
	return tool{
		name: name, title: title, about: about, schema: schema,
		prepare: func(arguments json.RawMessage) (answer.Request, func(*call) error, error) {
			var in In
			if err := readArguments(arguments, schema, &in); err != nil {
				return answer.Request{}, nil, err
			}
			return in.Paging(), func(c *call) error { return do(c, in) }, nil
		},
	}
}

// describe returns the tool's description in the form that MCP clients read.
func (t *tool) describe() *sdk.Tool {
	no := false
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: t.schema, OutputSchema: outputSchema,
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: !t.writes && !t.sends, DestructiveHint: &no, IdempotentHint: !t.sends, OpenWorldHint: &t.sends},
	}
}

// outputSchema describes an answer.Answer. It is short, since clients give it to models once for
// each tool.
var outputSchema = json.RawMessage(`{"type":"object","required":["items","left_out"],"properties":{"items":{"type":"array","items":{"type":"object","required":["object"],"properties":{"address":{"type":"string"},"object":{"type":"object"}}}},"left_out":{"type":"array"},"cursor":{"type":"string"}}}`)

// An argumentError reports invalid arguments of a tool call.
type argumentError struct {
	// text is the message for the client.
	text string
}

// Error returns the text.
func (e *argumentError) Error() string { return e.text }

// readArguments decodes the arguments of a tool into a struct. It reports arguments that are unknown,
// missing, or of the wrong type.
func readArguments(arguments json.RawMessage, schema *jsonschema.Schema, in any) error {
	if len(bytes.TrimSpace(arguments)) == 0 || bytes.Equal(bytes.TrimSpace(arguments), []byte("null")) {
		arguments = []byte("{}")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil {
		return &argumentError{"the arguments must be a JSON object"}
	}
	known := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			return &argumentError{fmt.Sprintf("there is no argument %q; the arguments are %s", name, strings.Join(known, ", "))}
		}
	}
	for _, name := range schema.Required {
		if _, ok := members[name]; !ok {
			return &argumentError{fmt.Sprintf("the argument %q is missing", name)}
		}
	}

	arguments, err := quoteNumbers(arguments, members, schema)
	if err != nil {
		return &argumentError{err.Error()}
	}
	return decodeInto(arguments, in)
}

// wholeNumber is a JSON number that is the same as a text.
var wholeNumber = regexp.MustCompile(`^[0-9]{1,18}$`)

// quoteNumbers converts whole numbers to strings where the schema requires strings, because some
// clients send the address 7 as a number. Numbers with a fraction are refused: the path 7.10 can no
// longer be distinguished from 7.1.
func quoteNumbers(arguments json.RawMessage, members map[string]json.RawMessage, schema *jsonschema.Schema) (json.RawMessage, error) {
	quoted := false
	for name, value := range members {
		if schema.Properties[name].Type == "string" && wholeNumber.Match(value) {
			members[name] = json.RawMessage(strconv.Quote(string(value)))
			quoted = true
		}
	}
	if !quoted {
		return arguments, nil
	}
	return json.Marshal(members)
}

// decodeInto decodes JSON arguments into a struct.
func decodeInto(arguments json.RawMessage, in any) error {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields() // also in nested objects
	err := d.Decode(in)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return &argumentError{fmt.Sprintf("the argument %q must be %s, not %s", wrong.Field, kindOf(wrong.Type), wrong.Value)}
	}
	if err != nil {
		return &argumentError{strings.TrimPrefix(err.Error(), "json: ")}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &argumentError{"the arguments must be one JSON object"}
	}
	return nil
}

// kindOf returns the JSON name of a Go type, such as "string" or "array".
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a string"
}

// pagingArguments choose the page of an answer, and not what is on all pages.
var pagingArguments = []string{"cursor", "max_bytes"}

// withoutPaging returns the arguments of a call, sorted by name, without those that select the page.
// Two calls for pages of the same answer thus get the same text.
func withoutPaging(arguments json.RawMessage) []byte {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil {
		return nil // there are none
	}
	for _, name := range pagingArguments {
		delete(members, name)
	}
	out, err := json.Marshal(members)
	if err != nil {
		return nil // it was decoded from JSON
	}
	return out
}
