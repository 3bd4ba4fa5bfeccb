package align

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Bounds of a JSON document.
const (
	maxDepth  = 100
	maxValues = 1 << 20
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// A value is a JSON value. Numbers keep their digits.
type value struct {
	kind  kind
	text  string // of a number or a string
	truth bool
	elems []*value // of an array, and of an object's members
	names []string // of an object's members, in order, each once
}

// member returns the member of an object, or nil.
func (v *value) member(name string) *value {
	if i := slices.Index(v.names, name); i >= 0 {
		return v.elems[i]
	}
	return nil
}

// without is an object less one member.
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

// isDefault reports whether a value is what a field has that is not set.
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

// parseJSON reads one document, token by token: reading ends at the first name that
// occurs twice and at a bound, and errors name the token that it got to.
//
// Errors: what is no JSON, has a name twice, or exceeds a bound.
func parseJSON(data []byte) (*value, error) {
	p := jsonParser{dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("JSON at %d: %w", p.dec.InputOffset(), err)
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("JSON at %d: more than one value", p.dec.InputOffset())
	}
	return v, nil
}

type jsonParser struct {
	dec    *json.Decoder
	values int
}

func (p *jsonParser) value(depth int) (*value, error) {
	t, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if p.values++; p.values > maxValues || depth > maxDepth {
		return nil, fmt.Errorf("more than %d values, or %d deep", maxValues, maxDepth)
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

func (p *jsonParser) object(depth int) (*value, error) {
	v := &value{kind: object}
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if seen[name] {
			return nil, errors.New("a name stands twice in an object")
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
