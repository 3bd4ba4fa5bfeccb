package align

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits of a JSON document.
const (
	// maxDepth is the maximum nesting of arrays and objects.
	maxDepth = 100
	// maxValues is the maximum number of values, nested ones included.
	maxValues = 1 << 20
)

// A kind is the type of a JSON value, such as null or array.
type kind uint8

// The kinds of JSON values.
const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// A value is a parsed JSON value. Numbers keep their original digits, so that no precision is lost.
type value struct {
	// kind is the kind of the JSON value.
	kind kind
	// text is the text of a string or the digits of a number.
	text string
	// truth is the value of a boolean.
	truth bool
	// elems are the elements of an array, or the values of an object's members.
	elems []*value
	// names are the member names of a JSON object in their original order.
	names []string
}

// member returns the value of the object's member called name, or nil.
func (v *value) member(name string) *value {
	if i := slices.Index(v.names, name); i >= 0 {
		return v.elems[i]
	}
	return nil
}

// without returns a copy of a JSON object without the member called name.
func (v *value) without(name string) *value {
	i := slices.Index(v.names, name)
	if i < 0 {
		return v
	}
	out := &value{kind: object}
	out.names = append(append(out.names, v.names[:i]...), v.names[i+1:]...)
	out.elems = append(append(out.elems, v.elems[:i]...), v.elems[i+1:]...)
	return out
}

// isDefault reports whether v is the JSON form of a field's default value, such as 0, "" or [].
func (v *value) isDefault() bool {
	switch v.kind {
	case null:
		return true
	case boolean:
		return !v.truth
	case number:
		return v.text == "0" || v.text == "-0" || v.text == "0.0"
	case text:
		return v.text == "" || v.text == "0"
	}
	return len(v.elems) == 0
}

// parseJSON parses one JSON document. It rejects objects with duplicate names, which would make the comparison
// ambiguous.
//
// Errors: malformed JSON, a name that occurs twice, or a limit; the error has the offset.
func parseJSON(data []byte) (*value, error) {
	p := jsonParser{dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("the JSON at offset %d is malformed: %w", p.dec.InputOffset(), err)
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the JSON at offset %d has more than one value", p.dec.InputOffset())
	}
	return v, nil
}

// A jsonParser parses one JSON document.
type jsonParser struct {
	// dec splits the document into tokens.
	dec *json.Decoder
	// values is the number of values parsed so far, for the limit.
	values int
}

// value parses the next JSON value, which is nested in depth others.
func (p *jsonParser) value(depth int) (*value, error) {
	t, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}

	// The limits protect against documents that are small but expensive.
	if p.values++; p.values > maxValues || depth > maxDepth {
		return nil, fmt.Errorf("the JSON has more than %d values, or is nested more than %d deep", maxValues, maxDepth)
	}
	switch t := t.(type) {
	case bool:
		return &value{kind: boolean, truth: t}, nil
	case json.Number:
		return &value{kind: number, text: t.String()}, nil
	case string:
		return &value{kind: text, text: t}, nil
	case json.Delim:
		if t == '[' {
			return p.array(depth)
		}
		return p.object(depth)
	}
	return &value{}, nil
}

// array parses the rest of a JSON array, after its opening bracket.
func (p *jsonParser) array(depth int) (*value, error) {
	v := &value{kind: array}
	for p.dec.More() {
		e, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.elems = append(v.elems, e)
	}
	_, err := p.dec.Token()
	return v, err
}

// object parses the rest of a JSON object, after its opening brace.
func (p *jsonParser) object(depth int) (*value, error) {
	v := &value{kind: object}
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		// Parsers differ in which of two equal names they use.
		if seen[name] {
			return nil, errors.New("a JSON object has the same name twice")
		}
		seen[name] = true
		e, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.names, v.elems = append(v.names, name), append(v.elems, e)
	}
	_, err := p.dec.Token()
	return v, err
}
