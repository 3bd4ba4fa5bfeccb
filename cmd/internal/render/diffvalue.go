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

// valueLines formats a value of a difference: on one line of at most about most characters or, for a
// longer message or JSON object, with one line for each field.
func valueLines(v any, fd protoreflect.FieldDescriptor, most int) []string {
	one := shownValue(v, fd, most)
	if len([]rune(one)) <= leastTree {
		return []string{one}
	}

	// Long values are printed as a tree: messages by fields, JSON indented.
	var lines []string
	switch v := v.(type) {
	case []diff.Field:
		var md protoreflect.MessageDescriptor
		if fd != nil {
			md = fd.Message()
		}
		lines = treeLines(nil, v, md, 0)
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
		lines = append(lines[:mostLines], fmt.Sprintf("… and %d more lines", n))
	}
	return lines
}

// treeLines appends to lines one line for each field of a message of type md, which may be nil if it is
// not known.
func treeLines(lines []string, fields []diff.Field, md protoreflect.MessageDescriptor, depth int) []string {
	const deepest = 20
	for _, f := range fields {
		var fd protoreflect.FieldDescriptor
		if md != nil && f.Number < 1<<29 {
			fd = md.Fields().ByNumber(protoreflect.FieldNumber(f.Number))
		}
		line := strings.Repeat("  ", min(depth, deepest)) + strconv.FormatUint(f.Number, 10)
		var inner protoreflect.MessageDescriptor
		if fd != nil {
			line += " " + string(fd.Name())
			inner = fd.Message()
		}
		if len(f.Fields) > 0 {
			lines = treeLines(append(lines, line+":"), f.Fields, inner, depth+1)
			continue
		}
		value := "{}"
		if f.Value != nil {
			value = shownValue(f.Value, fd, mostLeaf)
		}
		lines = append(lines, line+": "+value)
	}
	return lines
}

// isText reports whether bytes are printable text, which is shown as text and not in hex.
func isText(b []byte) bool {
	s := string(b)
	return len(b) > 1 && term.CleanText(s) == s && strings.ToValidUTF8(s, "") == s
}

// shownValue formats a value of a difference on one line of at most about most characters. fd, which may
// be nil, is the field's definition, for names of enum values.
func shownValue(v any, fd protoreflect.FieldDescriptor, most int) string {
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
		s = term.Clean(fieldsText(v))
	default:
		s = term.Clean(ValueText(v))
	}
	if name := enumName(fd, v); name != "" {
		s += " (" + name + ")"
	}
	return term.Cut(s, most)
}

// fieldsText formats a message on one line, such as {1: 150, 2: {1: "text"}}.
func fieldsText(fields []diff.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		value := "{}"
		switch v := f.Value.(type) {
		case nil:
			if f.Fields != nil {
				value = fieldsText(f.Fields)
			}
		case string:
			value = strconv.Quote(v)
		case []byte:
			value = app.Counted(len(v), "byte")
		default:
			value = fmt.Sprint(v)
		}
		parts[i] = fmt.Sprintf("%d: %s", f.Number, value)
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
		return term.Cut(fieldsText(v), 80)
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
