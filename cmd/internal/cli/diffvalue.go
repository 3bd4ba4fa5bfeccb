package cli

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/term"
	"unwire/decode/diff"
)

const (
	leastTree = 72 // characters of a message that does not stand on one line
	mostLines = 60 // of one that does not
	mostLeaf  = 120
)

// valueLines shows a value of a difference: a message or an object of JSON with a line a
// field, if it is too long for one.
func valueLines(v any, fd protoreflect.FieldDescriptor, most int) []string {
	one := shownValue(v, fd, most)
	if len([]rune(one)) <= leastTree {
		return []string{one}
	}
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
		lines = append(lines[:mostLines], fmt.Sprintf("… and %d lines more", n))
	}
	return lines
}

// treeLines appends a message's fields, a line each, with names where they are known.
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

// isText reports bytes that are shown as the text that they are.
func isText(b []byte) bool {
	s := string(b)
	return len(b) > 1 && term.CleanText(s) == s && strings.ToValidUTF8(s, "") == s
}

// shownValue is a value on one line.
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
		s = term.Clean(valueText(v))
	}
	if name := enumName(fd, v); name != "" {
		s += " (" + name + ")"
	}
	return term.Cut(s, most)
}
