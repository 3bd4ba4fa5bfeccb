package edit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
)

// A jsonPlace is the position in a JSON text to which a path leads, where a value exists or can be
// inserted.
type jsonPlace struct {
	// value is the value at the position; its Kind is 0 if there is none.
	value jsontree.Value
	// within is the object or array that contains the value, or would contain it.
	within jsontree.Value
	// at is the index of the value in the enclosing array or object.
	at int
	// name is the name of the member, if the position is in an object.
	name string
	// fd is the definition of the field; nil if unknown.
	fd protoreflect.FieldDescriptor
}

// found reports whether there is a value at the position.
func (at jsonPlace) found() bool { return at.value.Kind() != 0 }

// jsonFind returns the position to which a path leads in a JSON document. Every step except the last
// one must lead to an existing value. md is the type of the message; nil if unknown.
func jsonFind(root jsontree.Value, p fieldpath.Path, md protoreflect.MessageDescriptor) (jsonPlace, error) {
	at := jsonPlace{value: root}
	for i, step := range p {
		for _, part := range split(step) {
			if !at.found() {
				return at, fmt.Errorf("the JSON body has no value at the path %s", p[:i])
			}
			next, err := jsonStep(at.value, part, md)
			if err != nil {
				return at, fmt.Errorf("%s: %w", p[:i+1], err)
			}
			if next.fd == nil && part.Name == "" {
				next.fd = at.fd
			}
			at = next
		}
		md = nil
		if at.fd != nil {
			md = at.fd.Message()
		}
	}
	return at, nil
}

// split divides a step with a name and an index, such as a[0], into one step for each.
func split(s fieldpath.Step) []fieldpath.Step {
	if s.Name == "" || s.Index == fieldpath.All {
		return []fieldpath.Step{s}
	}
	return []fieldpath.Step{{Name: s.Name, Index: fieldpath.All}, {Index: s.Index}}
}

// jsonStep returns the position to which one step, a name or an index, leads from the value v.
func jsonStep(v jsontree.Value, step fieldpath.Step, md protoreflect.MessageDescriptor) (jsonPlace, error) {
	at := jsonPlace{within: v}
	isArray := v.Kind() == jsontree.Array
	switch {
	case !isArray && v.Kind() != jsontree.Object:
		return at, errors.New("the value before the last step of the path is neither an object nor an array")
	// The step and the value must agree: an index for an array, a name for an object.
	case isArray != (step.Index != fieldpath.All):
		if isArray {
			return at, errors.New("an array element must be selected by its index, as in name[0]")
		}
		return at, errors.New("the index refers to a value that is not an array")
	case isArray:
		if items := slices.Collect(v.Items()); step.Index < len(items) {
			at.value = items[step.Index]
		}
		at.at = step.Index
		return at, nil
	}
	at.name, at.fd = step.Name, fieldByName(md, step.Name)

	// Definitions allow two spellings of a field in JSON: the lowerCamelCase name and the original
	// one.
	names := []string{step.Name}
	if at.fd != nil {
		at.name = at.fd.JSONName()
		names = append(names, at.name, at.fd.TextName())
	}

	// If an object repeats a name, the last member counts, as for most parsers.
	items := slices.Collect(v.Items())
	at.at = len(items)
	for i, item := range items {
		if name := item.Name(); slices.Contains(names, name) {
			at.value, at.at, at.name = item, i, name
		}
	}
	return at, nil
}

// applyJSON applies the edit to a JSON text. All bytes outside the edited value stay unchanged.
func (e *Edit) applyJSON(data []byte, md protoreflect.MessageDescriptor) ([]byte, error) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return nil, errors.New("the body is not valid JSON; --set-raw with an empty path replaces the whole body")
	}
	at, err := jsonFind(root, e.path, md)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Op == opAdd:
		return e.addJSON(at)
	case !at.found() && e.Op == opSet && at.fd != nil:
		e.added = true
		return e.addJSON(at)
	// deleting everything means deleting the frame
	case !at.found(), e.Op == opDel && len(e.path) == 0:
		return nil, fmt.Errorf("the JSON body has no value at the path %s", e.path)
	case e.Op == opDel:
		return at.within.Delete(at.at), nil
	}

	// The new value is encoded, and replaces the old one's bytes.
	var value []byte
	switch e.Op {
	case opRaw:
		value, err = e.rawBytes()
	case opRetype:
		value, err = e.retypeJSON(at.value)
	default:
		value, err = encodeJSON(e.Kind, e.Value, at.value, at.fd)
	}
	if err != nil {
		return nil, err
	}
	return at.value.Replace(value), nil
}

// addJSON inserts a member into an object, or an element into an array.
func (e *Edit) addJSON(at jsonPlace) ([]byte, error) {
	switch {
	case at.value.Kind() == jsontree.Array:
		at.within, at.at, at.name = at.value, countItems(at.value), ""
	case at.found() && at.within.Kind() != jsontree.Array:
		return nil, errors.New("the member exists already; --set changes its value")
	}
	if count := countItems(at.within); at.at > count {
		return nil, fmt.Errorf("the index %d is too large: the array has %d elements", at.at, count)
	}
	value, err := encodeJSON(e.Kind, e.Value, jsontree.Value{}, at.fd)
	if err != nil {
		return nil, err
	}
	if at.within.Kind() == jsontree.Object {
		if at.fd != nil && at.fd.IsList() {
			value = slices.Concat([]byte("["), value, []byte("]"))
		}
		value = slices.Concat(jsontree.Quote(at.name), []byte(":"), value)
	}
	return at.within.Insert(at.at, value), nil
}

// countItems returns the number of members of an object or elements of an array.
func countItems(v jsontree.Value) int { return len(slices.Collect(v.Items())) }

// encodeJSON encodes an edit's text as a JSON value of kind k, or else of the field's kind. If both are
// unknown, the value gets the type of old, the value that it replaces. If there is no such value
// either, text that is valid JSON is used as it is, and other text becomes a string.
func encodeJSON(k valueKind, text string, old jsontree.Value, fd protoreflect.FieldDescriptor) ([]byte, error) {
	if k == "" && fd != nil {
		k = kindOf(fd, false)
	}

	// An explicit or declared kind decides the JSON type.
	switch {
	case k == "" && old.Kind() == jsontree.String, k == kindString:
		return jsontree.Quote(text), nil
	case k == kindBytes:
		b, err := parseBytes(text)
		return jsontree.Quote(base64.StdEncoding.EncodeToString(b)), err
	case k == kindEnum:
		if _, err := encodeEnum(text, fd); err != nil && fd != nil {
			return nil, err
		}
		if !json.Valid([]byte(text)) {
			return jsontree.Quote(text), nil
		}
		return []byte(text), nil
	case k == kindMessage, k == kindJSON:
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("the value %q is not valid JSON", excerpt(text))
		}
		return []byte(text), nil
	case k != "":
		return numberJSON(k, text, old)
	}

	// Guess from the old value; a change of type needs an explicit kind.
	now, err := jsontree.Parse([]byte(text))
	switch was := old.Kind(); {
	case err == nil:
		if was != now.Kind() && (was == jsontree.String || was == jsontree.Bool || was == jsontree.Number) {
			return nil, fmt.Errorf("the current value is a %s, but %q is not; to change the type, name it, as in PATH:json=", was, excerpt(text))
		}
		return []byte(text), nil
	case was != 0 && was != jsontree.Null:
		return nil, fmt.Errorf("the value must be a %[2]s like the current value, but %[1]q is not; to change the type, name it, as in PATH:string=", text, was)
	}
	return jsontree.Quote(text), nil
}

// numberJSON returns the JSON of a number, a bool, or a packed list of them, after validation. 64-bit
// integers become strings, as protobuf's JSON mapping demands, unless the old value is a JSON number.
func numberJSON(k valueKind, text string, old jsontree.Value) ([]byte, error) {
	if _, err := encodeValue(k, text, nil); err != nil {
		return nil, err
	}
	if element, packed := strings.CutPrefix(string(k), packedPrefix); packed {
		var out [][]byte
		for _, part := range splitList(text) {
			v, err := numberJSON(valueKind(element), strings.TrimSpace(part), jsontree.Value{})
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return slices.Concat([]byte("["), bytes.Join(out, []byte(",")), []byte("]")), nil
	}
	bare := old.Kind() != 0 && old.Kind() != jsontree.String
	if !json.Valid([]byte(text)) || strings.HasSuffix(string(k), "64") && !bare {
		return jsontree.Quote(text), nil
	}
	return []byte(text), nil
}
