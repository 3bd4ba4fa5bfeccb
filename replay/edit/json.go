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

// A jsonPlace is where a path leads in a JSON text.
type jsonPlace struct {
	value jsontree.Value // no value where the path leads to nothing
	// the object or array that holds it, or would
	within jsontree.Value
	at     int // its number among within's items
	// the name it has, or would have, if within is an object
	name string
	fd   protoreflect.FieldDescriptor // the field, where a schema knows it
}

// found reports whether a path leads to a value.
func (at jsonPlace) found() bool { return at.value.Kind() != 0 }

// jsonFind follows a path as far as there are values. Only the last step may
// lead to nothing.
func jsonFind(root jsontree.Value, p fieldpath.Path, md protoreflect.MessageDescriptor) (jsonPlace, error) {
	at := jsonPlace{value: root}
	for i, step := range p {
		for _, part := range split(step) {
			if !at.found() {
				return at, fmt.Errorf("%s is not there", p[:i])
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

// split makes a step's name and its index two steps.
func split(s fieldpath.Step) []fieldpath.Step {
	if s.Name == "" || s.Index == fieldpath.All {
		return []fieldpath.Step{s}
	}
	return []fieldpath.Step{{Name: s.Name, Index: fieldpath.All}, {Index: s.Index}}
}

func jsonStep(v jsontree.Value, step fieldpath.Step, md protoreflect.MessageDescriptor) (jsonPlace, error) {
	at := jsonPlace{within: v}
	isArray := v.Kind() == jsontree.Array
	switch {
	case !isArray && v.Kind() != jsontree.Object:
		return at, errors.New("what holds it is neither an object nor an array")
	case isArray != (step.Index != fieldpath.All):
		if isArray {
			return at, errors.New("an array's element is named by its index, as in name[0]")
		}
		return at, errors.New("an index into what is no array")
	case isArray:
		if items := slices.Collect(v.Items()); step.Index < len(items) {
			at.value = items[step.Index]
		}
		at.at = step.Index
		return at, nil
	}
	at.name, at.fd = step.Name, fieldByName(md, step.Name)
	names := []string{step.Name}
	if at.fd != nil {
		at.name = at.fd.JSONName()
		names = append(names, at.name, at.fd.TextName())
	}

	items := slices.Collect(v.Items())
	at.at = len(items)
	for i, item := range items { // of members with one name the last counts
		if name := item.Name(); slices.Contains(names, name) {
			at.value, at.at, at.name = item, i, name
		}
	}
	return at, nil
}

// applyJSON carries an edit out on a JSON body; all bytes that are not in the
// edited value stay as they are.
func (e *Edit) applyJSON(data []byte, md protoreflect.MessageDescriptor) ([]byte, error) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return nil, errors.New("the body is not valid JSON; --set-raw with an empty path replaces all of it")
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
	case !at.found(), e.Op == opDel && len(e.path) == 0: // that deletes a frame
		return nil, e.missing()
	case e.Op == opDel:
		return at.within.Delete(at.at), nil
	}
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

// addJSON puts in a member or an element. Adding to an array appends to it.
func (e *Edit) addJSON(at jsonPlace) ([]byte, error) {
	switch {
	case at.value.Kind() == jsontree.Array:
		at.within, at.at, at.name = at.value, countItems(at.value), ""
	case at.found() && at.within.Kind() != jsontree.Array:
		return nil, errors.New("it is there already; --set changes it")
	}
	if count := countItems(at.within); at.at > count {
		return nil, fmt.Errorf("index %d of an array of %d", at.at, count)
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

// countItems returns the number of members or elements of a value.
func countItems(v jsontree.Value) int { return len(slices.Collect(v.Items())) }

// encodeJSON turns text into a JSON value. Without a kind and a schema, it has
// the type of the value it replaces; in place of none, text that is JSON is
// that, and other text is a string.
func encodeJSON(k valueKind, text string, old jsontree.Value, fd protoreflect.FieldDescriptor) ([]byte, error) {
	if k == "" && fd != nil {
		k = kindOf(fd, false)
	}
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
			return nil, fmt.Errorf("%q is not JSON", text)
		}
		return []byte(text), nil
	case k != "":
		return numberJSON(k, text, old)
	}
	now, err := jsontree.Parse([]byte(text))
	switch was := old.Kind(); {
	case err == nil:
		if was != now.Kind() && (was == jsontree.String || was == jsontree.Bool || was == jsontree.Number) {
			return nil, fmt.Errorf("a %s is there, and %q is none; name a kind to change it, as in PATH:json=", was, text)
		}
		return []byte(text), nil
	case was != 0 && was != jsontree.Null:
		return nil, fmt.Errorf("%q is no %s, which is what stands there; name a kind to change it, as in PATH:string=", text, was)
	}
	return jsontree.Quote(text), nil
}

// numberJSON checks a number or bool, and writes integers of 64 bits as strings,
// the form that protobuf's JSON gives them, unless a bare number stood there.
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
