package values

import (
	"strconv"
	"strings"

	"unwire/decode/envelope"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// Replacements maps captured identifiers to the live ones that replace them.
type Replacements map[string]string

// Message replaces the identifiers in a protobuf or JSON message; changed is false if it contains none.
func (x Replacements) Message(data []byte, isJSON bool) (out []byte, changed bool) {
	if isJSON {
		return x.json(data, 0)
	}
	return x.proto(data, 0)
}

// proto replaces the identifiers in a protobuf message. depth is the number of encodings around it.
func (x Replacements) proto(data []byte, depth int) (out []byte, changed bool) {
	t := wire.Parse(data, wire.Options{})
	var edits []wire.Edit
	var walk func(parent int32)
	walk = func(parent int32) {
		for c := range t.Children(parent) {
			payload := t.Payload(c)
			fresh, known := x[string(payload)]
			switch n := t.Node(c); {
			case isNumber(n.Type):
				if e, ok := x.number(t, c); ok {
					edits = append(edits, e)
				}
			case n.Type == wire.Len && known:
				edits = append(edits, wire.Edit{Op: wire.SetValue, Node: c, Data: []byte(fresh)})
			// A printable text can look like a message, so it is treated as text.
			case n.Type == wire.StartGroup, n.Type == wire.Len && t.IsMessage(c) && !IsPrintable(payload):
				walk(c)
			case n.Type == wire.Len:
				if s, ok := x.In(string(payload), depth); ok {
					edits = append(edits, wire.Edit{Op: wire.SetValue, Node: c, Data: []byte(s)})
				}
			}
		}
	}

	// Splice adjusts the lengths of all enclosing messages.
	walk(0)
	if len(edits) == 0 {
		return data, false
	}
	out, err := wire.Splice(t, edits)
	if err != nil {
		return data, false
	}
	return out, true
}

// number returns the edit that replaces the number at node c; ok is false if it has no replacement.
func (x Replacements) number(t *wire.Tree, c int32) (e wire.Edit, ok bool) {
	n := t.Uint(c)
	fresh, ok := x[strconv.FormatUint(n, 10)]
	if !ok || n < smallNumber || !IsDigits(fresh) {
		return e, false
	}
	value := jsonText(Leaf{}, fresh)
	payload, err := payloadOf(&value, t.Node(c).Type)
	return wire.Edit{Op: wire.SetValue, Node: c, Data: payload}, err == nil
}

// json replaces the identifiers in the names, strings and numbers of a JSON text. depth is the number
// of encodings around it.
func (x Replacements) json(data []byte, depth int) (out []byte, changed bool) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return data, false
	}

	// Copy everything between the replaced spans unchanged.
	copied := 0
	replace := func(off, end int, fresh []byte) {
		out = append(append(out, data[copied:off]...), fresh...)
		copied, changed = end, true
	}
	for v := range root.All() {
		if off, end := v.NameSpan(); off < end {
			if fresh, ok := x.In(v.Name(), depth); ok {
				replace(off, end, jsontree.Quote(fresh))
			}
		}
		off, end := v.Span()
		if v.Kind() == jsontree.String {
			if fresh, ok := x.In(v.Text(), depth); ok {
				replace(off, end, jsontree.Quote(fresh))
			}
		} else if v.Kind() == jsontree.Number && IsDigits(v.Text()) && IsDigits(x[v.Text()]) {
			replace(off, end, []byte(x[v.Text()]))
		}
	}
	if !changed {
		return data, false
	}
	return append(out, data[copied:]...), true
}

// In replaces the identifiers in a text: the whole text, JSON in it, the content of its base64, or
// words. depth is the number of encodings around the text.
func (x Replacements) In(s string, depth int) (out string, changed bool) {
	if fresh, ok := x[s]; ok {
		return fresh, true
	}

	// Short texts occur by chance; long ones cost too much to search.
	if len(s) < ShortText || len(s) > MaxTraced {
		return s, false
	}
	if beginsContainer(s) && depth < MaxNested {
		if b, ok := x.json([]byte(s), depth+1); ok {
			return string(b), true
		}
	}
	// Base64 may contain text or a message.
	if b, e := FromBase64(s); len(b) >= ShortText && depth < MaxNested {
		inner, ok := x.In(string(b), depth+1)
		if !ok {
			var m []byte
			m, ok = x.proto(b, depth+1)
			inner = string(m)
		}
		if ok {
			return e.EncodeToString([]byte(inner)), true
		}
	}
	if !IsPrintable([]byte(s)) {
		return x.inflated(s, depth)
	}

	return x.words(s, depth)
}

// words replaces the identifiers among the words of a text, and in words that are encoded.
func (x Replacements) words(s string, depth int) (out string, changed bool) {
	out = s
	for w := range wordsOf(s) {
		if w != s && depth < MaxNested && encodedIn(w) != nil {
			if fresh, ok := x.In(w, depth); ok {
				out, changed = strings.ReplaceAll(out, w, fresh), true
			}
		}
		// Identifiers inside a longer one do not count.
		longer := ""
		for run := range runsOf(w) {
			if fresh, ok := x[run]; ok && run != s && !strings.Contains(longer, run) && (!IsDigits(run) || len(run) >= longDigits) {
				out, longer, changed = strings.ReplaceAll(out, run, fresh), longer+" "+run, true
			}
		}
	}
	return out, changed
}

// inflated replaces the identifiers in compressed data, and compresses it again.
func (x Replacements) inflated(s string, depth int) (out string, changed bool) {
	own := Budget(MaxTraced)
	encoding, data := inflate([]byte(s), &own)
	if encoding == "" || depth >= MaxNested {
		return s, false
	}
	inner, changed := x.In(string(data), depth+1)
	if !changed {
		var m []byte
		m, changed = x.proto(data, depth+1)
		inner = string(m)
	}
	if !changed {
		return s, false
	}
	packed, err := envelope.Compress(encoding, []byte(inner))
	if err != nil {
		return s, false
	}
	return string(packed), true
}

// ReplaceDigits replaces a number in a text, except where it is a part of a longer word.
func ReplaceDigits(s, digits, fresh string) (out string, changed bool) {
	if !IsDigits(digits) {
		return s, false
	}
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s); {
		at := strings.Index(s[i:], digits)
		if at < 0 {
			break
		}
		start, end := i+at, i+at+len(digits)
		if i = end; start > 0 && isAlphanumeric(s[start-1]) || end < len(s) && isAlphanumeric(s[end]) {
			continue
		}
		b.WriteString(s[copied:start] + fresh)
		copied, changed = end, true
	}
	return b.String() + s[copied:], changed
}
