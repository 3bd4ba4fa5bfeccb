package tools

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/agent/internal/message"
)

// placeholder matches a reference to a field in a template: ${field}, ${field|sh} or ${field|text}.
var placeholder = regexp.MustCompile(`\$\{([a-z_]+)(\|sh|\|text)?\}`)

// fieldsIn returns the names of the fields that a template, i.e. a decoded JSON value, refers to.
func fieldsIn(template any) (names []string) {
	switch v := template.(type) {
	case string:
		for _, m := range placeholder.FindAllStringSubmatch(v, -1) {
			names = append(names, m[1])
		}
	case []any:
		for _, item := range v {
			names = append(names, fieldsIn(item)...)
		}
	case map[string]any:
		for _, item := range v {
			names = append(names, fieldsIn(item)...)
		}
	}
	return names
}

// expand returns a template with its field references replaced by the fields of args. ok is false if
// the template is a single reference to a field that is not set.
func expand(template any, args message.Message) (v any, ok bool) {
	switch t := template.(type) {
	// A template that is a single field keeps the field's type; in a longer text it becomes text.
	case string:
		if m := placeholder.FindStringSubmatch(t); m != nil && m[0] == t && m[2] == "" {
			if !args.Has(m[1]) {
				return nil, false
			}
			return plain(args.Field(m[1]), args.Value(m[1])), true
		}
		return placeholder.ReplaceAllStringFunc(t, func(s string) string {
			m := placeholder.FindStringSubmatch(s)
			text := args.Value(m[1]).String()
			if m[2] == "|sh" {
				text = quote(text)
			}
			return text
		}), true
	// Items and members whose field is not set are left out.
	case []any:
		list := make([]any, 0, len(t))
		for _, item := range t {
			if v, ok := expand(item, args); ok {
				list = append(list, v)
			}
		}
		return list, true
	case map[string]any:
		object := map[string]any{}
		for name, item := range t {
			if v, ok := expand(item, args); ok {
				object[name] = v
			}
		}
		return object, true
	}
	return template, true
}

// plain returns a scalar or repeated field's value as a Go value that encoding/json can encode.
func plain(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	if !fd.IsList() {
		return v.Interface()
	}
	list := make([]any, v.List().Len())
	for i := range list {
		list[i] = v.List().Get(i).Interface()
	}
	return list
}

// quote quotes a text for a POSIX shell, in single quotes.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
