package live

import (
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/wire"
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

// json puts them into the names, strings and numbers of a JSON text.
func (x exchanged) json(data []byte, depth int) (out []byte, changed bool) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return data, false
	}
	copied := 0
	replace := func(off, end int, fresh []byte) {
		out = append(append(out, data[copied:off]...), fresh...)
		copied, changed = end, true
	}
	for v := range root.All() {
		if off, end := v.NameSpan(); off < end {
			if fresh, ok := x.in(v.Name(), depth); ok {
				replace(off, end, jsontree.Quote(fresh))
			}
		}
		off, end := v.Span()
		if v.Kind() == jsontree.String {
			if fresh, ok := x.in(v.Text(), depth); ok {
				replace(off, end, jsontree.Quote(fresh))
			}
		} else if v.Kind() == jsontree.Number && isDigits(v.Text()) && isDigits(x[v.Text()]) {
			replace(off, end, []byte(x[v.Text()]))
		}
	}
	if !changed {
		return data, false
	}
	return append(out, data[copied:]...), true
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
	if beginsContainer(s) && depth < maxNested {
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
