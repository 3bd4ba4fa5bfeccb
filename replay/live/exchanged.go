package live

import (
	"encoding/json"
	"strings"

	"unwire/decode/wire"
	"unwire/replay/edit"
)

// exchanged has for captured values the ones that stand for them now.
type exchanged map[string]string

// message puts them into a message; changed is false where it has none.
func (x exchanged) message(data []byte, isJSON bool) (out []byte, changed bool) {
	if isJSON {
		return x.json(data, 0)
	}
	return x.proto(data, 0)
}

// proto puts them into the fields of a message.
func (x exchanged) proto(data []byte, depth int) (out []byte, changed bool) {
	t := wire.Parse(data, wire.Options{})
	var edits []wire.Edit
	var walk func(parent int32)
	walk = func(parent int32) {
		for c := range t.Children(parent) {
			payload := t.Payload(c)
			fresh, known := x[string(payload)]
			switch n := t.Node(c); {
			case n.Type == wire.Len && known:
				edits = append(edits, wire.Edit{Op: wire.Set, Node: c, Data: []byte(fresh)})
			case n.Type == wire.StartGroup, n.Type == wire.Len && t.IsMessage(c) && !isPrintable(payload):
				walk(c)
			case n.Type == wire.Len:
				if s, ok := x.in(string(payload), depth); ok {
					edits = append(edits, wire.Edit{Op: wire.Set, Node: c, Data: []byte(s)})
				}
			}
		}
	}
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

// json puts them into the strings of a JSON text.
func (x exchanged) json(data []byte, depth int) (out []byte, changed bool) {
	if !json.Valid(data) {
		return data, false
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			n := i
			for n < len(data) && data[n] >= '0' && data[n] <= '9' {
				n++
			}
			if n == i {
				out = append(out, data[i])
				continue
			}
			digits := string(data[i:n])
			if fresh, ok := x[digits]; ok && isDigits(fresh) && isAlone(data, i, n) {
				digits, changed = fresh, true
			}
			out, i = append(out, digits...), n-1
			continue
		}
		end := edit.ValueEnd(data, i)
		raw := data[i:end]
		var s string
		if json.Unmarshal(raw, &s) == nil {
			if fresh, ok := x.in(s, depth); ok {
				raw, changed = edit.Quote(fresh), true
			}
		}
		out = append(out, raw...)
		i = end - 1
	}
	return out, changed
}

// isAlone reports whether the digits at data[i:n] are all of a number.
func isAlone(data []byte, i, n int) bool {
	const parts = "+-.eE"
	return (i == 0 || !strings.ContainsRune(parts, rune(data[i-1]))) && (n == len(data) || !strings.ContainsRune(parts, rune(data[n])))
}

// in puts them into a value: all of it, JSON in it, what its base64 stands for,
// or words of a text.
func (x exchanged) in(s string, depth int) (out string, changed bool) {
	if fresh, ok := x[s]; ok {
		return fresh, true
	}
	if len(s) < shortText || len(s) > maxTraced {
		return s, false
	}
	if isJSONText(s) && depth < maxNested {
		if b, ok := x.json([]byte(s), depth+1); ok {
			return string(b), true
		}
	}
	if b, e := fromBase64(s); len(b) >= shortText && depth < maxNested {
		inner, ok := x.in(string(b), depth+1)
		if !ok {
			var m []byte
			m, ok = x.proto(b, depth+1)
			inner = string(m)
		}
		if ok {
			return e.EncodeToString([]byte(inner)), true
		}
	}
	if !isPrintable([]byte(s)) {
		return s, false
	}
	out = s
	for w := range wordsOf(s) {
		if fresh, ok := x[w]; ok && w != s && !isDigits(w) {
			out, changed = strings.ReplaceAll(out, w, fresh), true
		}
	}
	return out, changed
}
