package render

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode/diff"
)

// Limits of printed values.
const (
	// leastTree is the length in characters up to which a message is printed on one line.
	leastTree = 72

	// mostLines is the largest number of lines of a longer message.
	mostLines = 60

	// mostLeaf is the largest number of characters of a value in such a line.
	mostLeaf = 120
)

// A definition is what is known of a value; the zero definition if nothing is.
type definition struct {
	// field is the definition of the field, for names of enum values; nil if it is not known.
	field protoreflect.FieldDescriptor

	// message is the type of the message, for names of fields; nil if it is not known or no message.
	message protoreflect.MessageDescriptor
}

// valueLines formats a value of a difference: on one line of at most about most characters or, for a
// longer message or JSON object, with one line for each field.
func valueLines(v any, def definition, most int) []string {
	one := shownValue(v, def, most)
	if len([]rune(one)) <= leastTree {
		return []string{one}
	}

	// Long values are printed as a tree: messages by fields, JSON indented.
	var lines []string
	switch v := v.(type) {
	case []diff.Field:
		lines = treeLines(nil, v, def.message, 0)
	case map[string]any, []any:
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return []string{one}
		}
		for line := range strings.Lines(string(b)) {
			lines = append(lines, term.Cut(term.Clean(strings.TrimSuffix(line, "\n")), mostLeaf))
		}
	default:
		return []string{one}
	}
	if n := len(lines) - mostLines; n > 1 {
		lines = append(lines[:mostLines], "… and "+app.Counted(n, "more line"))
	}
	return lines
}

// treeLines appends to lines one line for each field of a message of type md, which may be nil if it is
// not known.
func treeLines(lines []string, fields []diff.Field, md protoreflect.MessageDescriptor, depth int) []string {
	const deepest = 20
	for _, f := range fields {
		def, name := fieldOf(md, f.Number)
		line := strings.Repeat("  ", min(depth, deepest)) + strconv.FormatUint(f.Number, 10)
		if name != "" {
			line += " " + name
		}
		if len(f.Fields) > 0 {
			lines = treeLines(append(lines, line+":"), f.Fields, def.message, depth+1)
			continue
		}
		value := "{}"
		if f.Value != nil {
			value = shownValue(f.Value, def, mostLeaf)
		}
		lines = append(lines, line+": "+value)
	}
	return lines
}

// fieldOf returns the definition and name of a field of the message type md, which may be nil; nothing
// if it is not known.
func fieldOf(md protoreflect.MessageDescriptor, number uint64) (definition, string) {
	if md == nil || number >= 1<<29 {
		return definition{}, ""
	}
	fd := md.Fields().ByNumber(protoreflect.FieldNumber(number))
	if fd == nil {
		return definition{}, ""
	}
	return definition{fd, fd.Message()}, string(fd.Name())
}

// isText reports whether bytes are printable text, which is shown as text and not in hex.
func isText(b []byte) bool {
	s := string(b)
	return len(b) > 1 && term.CleanText(s) == s && strings.ToValidUTF8(s, "") == s
}

// shownValue formats a value of a difference on one line of at most about most characters.
func shownValue(v any, def definition, most int) string {
	s := ""
	switch v := v.(type) {
	case string:
		s = `"` + term.Clean(v) + `"`
	case []byte:
		if isText(v) {
			s = `"` + term.Clean(string(v)) + `"`
			break
		}
		s = "hex " + hex.EncodeToString(v[:min(len(v), most)])
		if len(v) > most {
			s += fmt.Sprintf("… (%d bytes)", len(v))
		}
	case []diff.Field:
		s = term.Clean(fieldsText(v, def.message))
	default:
		s = term.Clean(ValueText(v))
	}
	if name := enumName(def.field, v); name != "" {
		s += " (" + name + ")"
	}
	return term.Cut(s, most)
}

// fieldsText formats a message on one line, such as {1: 150, 2: {1: "text"}}, with names instead of
// numbers where its type md, which may be nil, has them.
func fieldsText(fields []diff.Field, md protoreflect.MessageDescriptor) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		value := "{}"
		def, name := fieldOf(md, f.Number)
		if name == "" {
			name = strconv.FormatUint(f.Number, 10)
		}
		switch v := f.Value.(type) {
		case nil:
			if f.Fields != nil {
				value = fieldsText(f.Fields, def.message)
			}
		case string:
			value = strconv.Quote(v)
		case []byte:
			value = app.Counted(len(v), "byte")
		default:
			value = fmt.Sprint(v)
			if enum := enumName(def.field, v); enum != "" {
				value += " (" + enum + ")"
			}
		}
		parts[i] = name + ": " + value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// ValueText formats a value of a difference on one line, truncated to 80 characters.
func ValueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return term.Cut(v, 80)
	case []diff.Field:
		return term.Cut(fieldsText(v, nil), 80)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return term.Cut(string(b), 80)
}

// enumName returns the name of an enum value, or "" if fd is no enum or does not define the value.
func enumName(fd protoreflect.FieldDescriptor, value any) string {
	n, ok := value.(uint64)
	if fd == nil || fd.Enum() == nil || !ok {
		return ""
	}
	if v := fd.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(n))); v != nil {
		return string(v.Name())
	}
	return ""
}
