package edit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"unwire/decode/fieldpath"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A jsonPlace is where a path leads in a JSON text.
type jsonPlace struct {
	value Span
	found bool
	// the object or array that holds it, or would
	within Span
	at     int // its number among within's items
	// the name it has, or would have, if within is an object
	name string
	fd   protoreflect.FieldDescriptor // the field, where a schema knows it
}

// jsonFind follows a path as far as there are values. Only the last step may
// lead to nothing.
func jsonFind(b []byte, p fieldpath.Path, md protoreflect.MessageDescriptor) (jsonPlace, error) {
	root := SkipSpace(b, 0)
	at := jsonPlace{value: Span{Key: root, Off: root, End: ValueEnd(b, root)}, found: true}
	for i, step := range p {
		for _, part := range split(step) {
			if !at.found {
				return at, fmt.Errorf("%s is not there", p[:i])
			}
			next, err := jsonStep(b, at.value, part, md)
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

func jsonStep(b []byte, v Span, step fieldpath.Step, md protoreflect.MessageDescriptor) (jsonPlace, error) {
	at := jsonPlace{within: v}
	switch c := b[v.Off]; {
	case c != '{' && c != '[':
		return at, errors.New("what holds it is neither an object nor an array")
	case (c == '[') != (step.Index != fieldpath.All):
		if c == '[' {
			return at, errors.New("an array's element is named by its index, as in name[0]")
		}
		return at, errors.New("an index into what is no array")
	case c == '[':
		items := Items(b, v.Off)
		if at.at = step.Index; step.Index < len(items) {
			at.value, at.found = items[step.Index], true
		}
		return at, nil
	}
	at.name, at.fd = step.Name, fieldByName(md, step.Name)
	names := []string{step.Name}
	if at.fd != nil {
		at.name = at.fd.JSONName()
		names = append(names, at.name, at.fd.TextName())
	}
	items := Items(b, v.Off)
	at.at = len(items)
	for i, item := range items { // of members with one name the last counts
		if name := MemberName(b, item); slices.Contains(names, name) {
			at.value, at.found, at.at, at.name = item, true, i, name
		}
	}
	return at, nil
}

// applyJSON carries an edit out on a JSON body; all bytes that are not in the
// edited value stay as they are.
func (e *Edit) applyJSON(data []byte, md protoreflect.MessageDescriptor) ([]byte, error) {
	if !json.Valid(data) {
		return nil, errors.New("the body is not valid JSON; --raw with an empty path replaces all of it")
	}
	at, err := jsonFind(data, e.path, md)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Op == OpAdd:
		return e.addJSON(data, at)
	case !at.found && e.Op == OpSet && at.fd != nil:
		e.added = true
		return e.addJSON(data, at)
	case !at.found:
		return nil, e.missing()
	case e.Op == OpDel:
		return jsonDelete(data, at), nil
	}
	var value []byte
	switch e.Op {
	case OpRaw:
		value, err = e.rawBytes()
	case OpRetype:
		value, err = e.retypeJSON(data[at.value.Off:at.value.End])
	default:
		value, err = encodeJSON(e.Kind, e.Value, data[at.value.Off:at.value.End], at.fd)
	}
	if err != nil {
		return nil, err
	}
	return slices.Concat(data[:at.value.Off], value, data[at.value.End:]), nil
}

// addJSON puts in a member or an element. Adding to an array appends to it.
func (e *Edit) addJSON(data []byte, at jsonPlace) ([]byte, error) {
	array := at.found && data[at.value.Off] == '['
	switch inArray := data[at.within.Off] == '['; {
	case array:
		at.within, at.at, at.name = at.value, len(Items(data, at.value.Off)), ""
	case at.found && !inArray:
		return nil, errors.New("it is there already; --set changes it")
	}
	items := Items(data, at.within.Off)
	if at.at > len(items) {
		return nil, fmt.Errorf("index %d of an array of %d", at.at, len(items))
	}
	value, err := encodeJSON(e.Kind, e.Value, nil, at.fd)
	if err != nil {
		return nil, err
	}
	if at.fd != nil && at.fd.IsList() && data[at.within.Off] == '{' {
		value = slices.Concat([]byte("["), value, []byte("]"))
	}
	if data[at.within.Off] == '{' {
		value = slices.Concat(Quote(at.name), []byte(":"), value)
	}
	switch {
	case len(items) == 0:
		return slices.Insert(slices.Clone(data), at.within.Off+1, value...), nil
	case at.at < len(items):
		return slices.Insert(slices.Clone(data), items[at.at].Key, append(value, ',')...), nil
	}
	return slices.Insert(slices.Clone(data), items[len(items)-1].End, append([]byte(","), value...)...), nil
}

// jsonDelete takes out a member or element with the comma that parts it from
// its neighbour.
func jsonDelete(data []byte, at jsonPlace) []byte {
	items := Items(data, at.within.Off)
	lo, hi := at.value.Key, at.value.End
	switch {
	case at.at > 0:
		lo = items[at.at-1].End
	case len(items) > 1:
		hi = items[1].Key
	}
	return slices.Concat(data[:lo], data[hi:])
}

// encodeJSON turns text into a JSON value. Without a kind and a schema, it has
// the type of the value it replaces; in place of none, text that is JSON is
// that, and other text is a string.
func encodeJSON(k Kind, text string, old []byte, fd protoreflect.FieldDescriptor) ([]byte, error) {
	if k == "" && fd != nil {
		k = kindOf(fd, false)
	}
	switch {
	case k == "" && len(old) > 0 && old[0] == '"', k == kindString:
		return Quote(text), nil
	case k == kindBytes:
		b, err := parseBytes(text)
		return Quote(base64.StdEncoding.EncodeToString(b)), err
	case k == kindEnum:
		if _, err := encodeEnum(text, fd); err != nil && fd != nil {
			return nil, err
		}
		if !json.Valid([]byte(text)) {
			return Quote(text), nil
		}
		return []byte(text), nil
	case k == kindMessage, k == kindJSON:
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("%q is not JSON", text)
		}
		return []byte(text), nil
	case k != "":
		return numberJSON(k, text, old)
	case json.Valid([]byte(text)):
		if len(old) > 0 && !strings.ContainsRune("{[n", rune(old[0])) && jsonType(old[0]) != jsonType(strings.TrimSpace(text)[0]) {
			return nil, fmt.Errorf("a %s is there, and %q is none; name a kind to change it, as in PATH:json=", jsonType(old[0]), text)
		}
		return []byte(text), nil
	case len(old) > 0 && jsonType(old[0]) != "null":
		return nil, fmt.Errorf("%q is no %s, which is what stands there; name a kind to change it, as in PATH:string=", text, jsonType(old[0]))
	}
	return Quote(text), nil
}

// numberJSON checks a number or bool, and writes integers of 64 bits as strings,
// the form that protobuf's JSON gives them, unless a bare number stood there.
func numberJSON(k Kind, text string, old []byte) ([]byte, error) {
	if _, err := encodeValue(k, text, nil); err != nil {
		return nil, err
	}
	if element, packed := strings.CutPrefix(string(k), packedPrefix); packed {
		var out [][]byte
		for _, part := range splitList(text) {
			v, err := numberJSON(Kind(element), strings.TrimSpace(part), nil)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return slices.Concat([]byte("["), bytes.Join(out, []byte(",")), []byte("]")), nil
	}
	bare := len(old) > 0 && old[0] != '"'
	if !json.Valid([]byte(text)) || strings.HasSuffix(string(k), "64") && !bare {
		return Quote(text), nil
	}
	return []byte(text), nil
}

// jsonType names the type of the value that begins with c.
func jsonType(c byte) string {
	switch c {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}
