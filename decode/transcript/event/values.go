package event

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/naming"
)

// A Value is a JSON value or a text in a frame.
type Value struct {
	// Label is what precedes a JSON value on its line, without the colon, such as "0" in `0:"text"`, or the name of an
	// event in the same array; mostly "".
	Label string

	// JSON is the value, unless Text is set.
	JSON jsontree.Value

	// Text is a text that is not JSON.
	Text string
}

// EndMark is what many services send as the last event, or as a text in it.
const EndMark = "[DONE]"

// recordSeparator ends each JSON value of the formats that use it (RFC 7464, SignalR).
const recordSeparator = '\x1e'

// Values returns the values of a frame that is not protobuf: a single JSON value, one value on each line or between
// record separators, each with a label before it or none, the bodies of a multipart message, or the whole data as one
// text.
func Values(f *decode.Frame) []Value {
	data := bytes.TrimSpace(f.Data)
	if !utf8.Valid(data) || string(data) == EndMark {
		return nil
	}
	if len(data) == 0 {
		if len(f.Data) > 0 && f.Event != "" {
			// White space is a token, too.
			return []Value{{Text: string(f.Data)}}
		}
		return nil
	}
	if v, err := jsontree.Parse(data); err == nil {
		if v.Kind() == jsontree.Number || v.Kind() == jsontree.Bool {
			return []Value{{Text: string(f.Data)}}
		}
		return []Value{eventValue("", v)}
	}
	if f.Opcode.Kind() == captures.OpBinary {
		return nil
	}

	// A record separator may end the lines, and the lines of a multipart message that are not JSON are its borders
	// and headers.
	multipart := bytes.HasPrefix(data, []byte("--"))
	var out []Value
	lines := strings.FieldsFunc(string(data), func(c rune) bool { return c == '\n' || c == '\r' || c == recordSeparator })
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		label, text := cutLabel(line)
		v, err := jsontree.Parse([]byte(text))
		switch {
		case err == nil && (label == "" || !multipart && v.Kind() != jsontree.Number && v.Kind() != jsontree.Bool):
			out = append(out, eventValue(label, v))
		case !multipart:
			return []Value{{Text: string(f.Data)}}
		}
	}
	return out
}

// eventValue returns the value with that label. Of an array that begins with the name of an event and ends with its
// value, as those of Socket.IO and Phoenix do, it returns the latter with the name as label.
func eventValue(label string, v jsontree.Value) Value {
	if v.Kind() != jsontree.Array {
		return Value{Label: label, JSON: v}
	}
	var last, before jsontree.Value
	for e := range v.Items() {
		before, last = last, e
	}
	if last.Kind() == jsontree.Object && before.Kind() == jsontree.String && naming.IsKind(before.Text()) {
		return Value{Label: before.Text(), JSON: last}
	}
	return Value{Label: label, JSON: v}
}

// maxLabel is the maximum size in bytes of a label before a JSON value.
const maxLabel = 24

// cutLabel splits a line into a label and the JSON value after it: `0:"text"`, `42["event",{}]`. A label is a word
// before a colon, or digits and at most one letter before a bracket.
func cutLabel(line string) (label, rest string) {
	for i := 0; i < len(line) && i <= maxLabel; i++ {
		switch c := line[i]; {
		case c == ':' && i > 0:
			return line[:i], line[i+1:]
		case (c == '{' || c == '[') && i > 0 && i <= 4:
			return line[:i], line[i:]
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', i > 0 && (c == '_' || c == '-' || c == '.'):
		default:
			return "", line
		}
	}
	return "", line
}

// bareText returns the names of those events of the server that are mostly plain text, such as tokens. Then a token
// that looks like JSON, such as a number, is text as well.
func bareText(ex *decode.Exchange) map[string]bool {
	all, plain := make(map[string]int), make(map[string]int)
	for i := range ex.Frames {
		f := &ex.Frames[i]
		if f.Dir != captures.Down || f.End != nil || f.Tree != nil || len(f.Data) == 0 {
			continue
		}
		all[f.Event]++
		if v := Values(f); len(v) == 1 && v[0].Text != "" {
			plain[f.Event]++
		}
	}
	out := make(map[string]bool)
	for name, n := range plain {
		out[name] = n > 1 && 2*n > all[name]
	}
	return out
}
