// Package walk replaces the strings of JSON texts and of messages.
package walk

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// JSON returns a JSON text in which every string value is replaced by the result of calling each with
// it. The text is in compact form, with sorted members.
func JSON(data []byte, each func(string) (string, error)) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	v, err := walkValue(v, each)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// walkValue replaces every string in a decoded JSON value by the result of calling each with it.
func walkValue(v any, each func(string) (string, error)) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return each(v)
	case []any:
		for i := range v {
			if v[i], err = walkValue(v[i], each); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = walkValue(v[k], each); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// Strings replaces every string in a protobuf message, including nested messages, by the result of
// calling each with it.
func Strings(m protoreflect.Message, each func(string) (string, error)) error {
	var failed error
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			failed = expandMap(fd, v.Map(), each)
		case fd.IsList():
			failed = expandList(fd, v.List(), each)
		case fd.Message() != nil:
			failed = Strings(v.Message(), each)
		case fd.Kind() == protoreflect.StringKind:
			var s string
			if s, failed = each(v.String()); failed == nil {
				m.Set(fd, protoreflect.ValueOfString(s))
			}
		}
		return failed == nil
	})
	return failed
}

// expandList replaces every string in a list by the result of calling each with it.
func expandList(fd protoreflect.FieldDescriptor, l protoreflect.List, each func(string) (string, error)) error {
	for i := range l.Len() {
		switch {
		case fd.Message() != nil:
			if err := Strings(l.Get(i).Message(), each); err != nil {
				return err
			}
		case fd.Kind() == protoreflect.StringKind:
			s, err := each(l.Get(i).String())
			if err != nil {
				return err
			}
			l.Set(i, protoreflect.ValueOfString(s))
		}
	}
	return nil
}

// expandMap replaces every string in the values of a map by the result of calling each with it.
func expandMap(fd protoreflect.FieldDescriptor, entries protoreflect.Map, each func(string) (string, error)) (failed error) {
	value := fd.MapValue()
	entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		switch {
		case value.Message() != nil:
			failed = Strings(v.Message(), each)
		case value.Kind() == protoreflect.StringKind:
			var s string
			if s, failed = each(v.String()); failed == nil {
				entries.Set(k, protoreflect.ValueOfString(s))
			}
		}
		return failed == nil
	})
	return failed
}
