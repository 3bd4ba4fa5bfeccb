// Package strictjson decodes JSON into structs and refuses members that the structs lack,
// with the place of the mistake.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"unwire/decode/jsontree"
)

// Read decodes JSON into v, whose structs have json tags, and rejects unknown and repeated members.
// Unlike those of encoding/json, its errors have the position.
//
// Errors: `turns[0].steps[3].tool: unknown member "nmae"`.
func Read(data []byte, v any) error {
	if !json.Valid(data) {
		var any any
		err := json.Unmarshal(data, &any)
		if at := new(json.SyntaxError); errors.As(err, &at) {
			line := 1 + bytes.Count(data[:min(len(data), int(at.Offset))], []byte("\n"))
			return fmt.Errorf("line %d: %w", line, err)
		}
		return err
	}
	return strict("", data, reflect.ValueOf(v).Elem())
}

// strict decodes the JSON data at path into v.
func strict(path string, data []byte, v reflect.Value) error {
	// Raw JSON is kept for later, and null is never a value.
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(bytes.Clone(data))
		return nil
	case string(data) == "null" && v.Kind() != reflect.Map:
		return at(path, "null is not allowed; leave the member out")
	}

	// Each kind of Go value has one form in JSON.
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return strict(path, data, v.Elem())
	case reflect.Struct:
		return strictStruct(path, data, v)
	case reflect.Slice:
		var list []json.RawMessage
		if json.Unmarshal(data, &list) != nil {
			return at(path, "must be a list, not %s", Glimpse(data))
		}
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, item := range list {
			if err := strict(fmt.Sprintf("%s[%d]", path, i), item, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map, reflect.String, reflect.Bool, reflect.Int, reflect.Int32:
		if json.Unmarshal(data, v.Addr().Interface()) != nil {
			return at(path, "must be %s, not %s", kindName(v.Kind()), Glimpse(data))
		}
		return nil
	}
	panic("standin: script: no rule for " + v.Type().String())
}

// strictStruct decodes the JSON object data at path into the struct v.
func strictStruct(path string, data []byte, v reflect.Value) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return at(path, "must be an object, not %s", Glimpse(data))
	}
	if name := duplicate(data); name != "" {
		return at(path, "the member %q occurs twice", name)
	}
	byName := map[string]int{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("json"); name != "" {
			byName[name] = i
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		i, ok := byName[name]
		if !ok {
			return at(path, "the member %q is unknown; the valid members are %s", name, strings.Join(slices.Sorted(maps.Keys(byName)), ", "))
		}
		if err := strict(strings.TrimPrefix(path+"."+name, "."), members[name], v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// duplicate returns the name of a member that occurs twice in an object, which encoding/json would
// accept; "" if there is none.
func duplicate(object []byte) string {
	root, err := jsontree.Parse(object)
	if err != nil {
		return "" // not reached: the text is valid
	}
	seen := map[string]bool{}
	for member := range root.Items() {
		name := member.Name()
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// at returns a formatted error that begins with the path in the JSON text.
func at(path, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// kindName returns the description of a kind of Go value for errors, such as "a whole number".
func kindName(k reflect.Kind) string {
	switch k {
	case reflect.Map:
		return "an object"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

// Glimpse returns a short excerpt of a JSON value for an error.
func Glimpse(data []byte) string {
	data = bytes.TrimSpace(data)
	if len(data) > 40 {
		return string(bytes.ToValidUTF8(data[:40], nil)) + "…"
	}
	return string(data)
}
