package diff

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"math"
	"slices"
	"strconv"

	"unwire/decode/score/ident"
	"unwire/decode/score/shape"
	"unwire/decode/wire"
)

// A node is a value of either format: what the comparison sees.
type node struct {
	key      string // field number or member name; "" for an element of a list and for roots
	kind     kind
	wire     wire.Type // of protobuf fields
	children []*node   // sorted by key, elements in order
	text     string    // of text, number and literal
	bytes    []byte
	number   uint64 // of integers

	exact uint64 // hash of the content, the key apart
	alike uint64 // the same with volatile values made equal

	weight float64 // how much it holds: a value counts 1, and more by the root of its length
}

type kind uint8

const (
	object  kind = iota // a message, a group, a JSON object
	list                // a JSON array
	text                // a string
	integer             // a varint or a fixed value
	literal             // a JSON number, true, false or null
	blob                // bytes
	garbage
)

// fromTree makes nodes of the fields of t, with the kinds that s has settled.
func (c *comparison) fromTree(s *shape.Shape, t *wire.Tree) *node {
	at := s.Locate(t, nil, false)
	return c.fromField(s, t, at, 0)
}

func (c *comparison) fromField(s *shape.Shape, t *wire.Tree, at []shape.Path, i int32) *node {
	f := &t.Nodes[i]
	n := &node{wire: f.Type}
	if i > 0 && f.Type != wire.Garbage {
		n.key = strconv.FormatUint(f.Number, 10)
	}
	switch f.Type {
	case wire.Varint, wire.I64, wire.I32:
		n.kind, n.number = integer, t.Uint(i)
	case wire.Garbage:
		n.kind, n.bytes = garbage, t.Payload(i)
	case wire.Len:
		payload := t.Payload(i)
		switch {
		case s.IsMessage(t, i, at[i]):
			c.fields(n, s, t, at, i)
		case s.Kind(at[i]) == shape.Text && shape.FitOf(payload) == shape.Clean:
			n.kind, n.text = text, string(payload)
		case len(payload) == 0:
			n.kind = text
		default:
			n.kind, n.bytes = blob, payload
		}
	default:
		c.fields(n, s, t, at, i)
	}
	c.hash(n)
	return n
}

func (c *comparison) fields(n *node, s *shape.Shape, t *wire.Tree, at []shape.Path, i int32) {
	n.kind = object
	for child := range t.Children(i) {
		n.children = append(n.children, c.fromField(s, t, at, child))
	}
	slices.SortStableFunc(n.children, func(a, b *node) int {
		return cmp.Or(cmp.Compare(len(a.key), len(b.key)), cmp.Compare(a.key, b.key))
	})
}

// fromJSON makes nodes of a JSON text. ok is false if it is none.
func (c *comparison) fromJSON(data []byte) (n *node, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return c.fromValue("", v), true
}

func (c *comparison) fromValue(key string, v any) *node {
	n := &node{key: key}
	switch v := v.(type) {
	case map[string]any:
		n.kind = object
		for k, m := range v {
			n.children = append(n.children, c.fromValue(k, m))
		}
		slices.SortFunc(n.children, func(a, b *node) int { return cmp.Compare(a.key, b.key) })
	case []any:
		n.kind = list
		for _, e := range v {
			n.children = append(n.children, c.fromValue("", e))
		}
	case string:
		n.kind, n.text = text, v
	case json.Number:
		n.kind, n.text = literal, v.String()
		if u, err := strconv.ParseUint(n.text, 10, 64); err == nil {
			n.kind, n.number = integer, u
		}
	case bool:
		n.kind, n.text = literal, strconv.FormatBool(v)
	default:
		n.kind, n.text = literal, "null"
	}
	c.hash(n)
	return n
}

// hash sets n's hashes and weight from its own value and its children's. The
// hashes of objects and lists are sums, so that order does not count.
func (c *comparison) hash(n *node) {
	n.weight = 1 + math.Sqrt(float64(len(n.text)+len(n.bytes)))/4
	var h maphash.Hash
	h.SetSeed(c.seed)
	h.WriteByte(byte(n.kind))
	h.WriteByte(byte(n.wire))
	alike := h
	switch n.kind {
	case object, list:
		var exact, near uint64
		for _, child := range n.children {
			exact += c.keyed(child.key, child.exact)
			near += c.keyed(child.key, child.alike)
			n.weight += child.weight
		}
		write(&h, exact)
		write(&alike, near)
	case text:
		h.WriteString(n.text)
		alike.WriteString(skeleton(n.text, nil))
	case integer:
		write(&h, n.number)
		if ident.IsTime(n.number) {
			alike.WriteString(string(ident.Time))
		} else {
			write(&alike, n.number)
		}
	case literal:
		h.WriteString(n.text)
		alike.WriteString(n.text)
	default:
		h.Write(n.bytes)
		if ident.IsBytes(n.bytes) {
			alike.WriteString(string(ident.Bytes))
		} else {
			alike.Write(n.bytes)
		}
	}
	n.exact, n.alike = h.Sum64(), alike.Sum64()
}

func (c *comparison) keyed(key string, sum uint64) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	h.WriteString(key)
	write(&h, sum)
	return h.Sum64()
}

func write(h *maphash.Hash, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	h.Write(b[:])
}

// value is n as Change shows it.
func (n *node) value() any {
	switch n.kind {
	case object:
		if n.wire == 0 { // of JSON
			m := make(map[string]any, len(n.children))
			for _, c := range n.children {
				m[c.key] = c.value()
			}
			return m
		}
		fields := make([]Field, 0, len(n.children))
		for _, c := range n.children {
			fields = append(fields, c.field())
		}
		return fields
	case list:
		elems := make([]any, 0, len(n.children))
		for _, c := range n.children {
			elems = append(elems, c.value())
		}
		return elems
	case text:
		return n.text
	case integer:
		return n.number
	case literal:
		return json.RawMessage(n.text)
	}
	return n.bytes
}

func (n *node) field() Field {
	number, _ := strconv.ParseUint(n.key, 10, 64)
	f := Field{Number: number, Wire: n.wire.String()}
	if v, ok := n.value().([]Field); ok {
		f.Fields = v
	} else {
		f.Value = n.value()
	}
	return f
}
