package diff

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	kinds "unwire/decode/kind"
	"unwire/decode/transcript/ident"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

// A node is a value of either format: what the comparison sees.
type node struct {
	// key is a field number or a member's name; "" for an element of a list and for
	// roots.
	key      string
	kind     kind
	wire     wire.Type // of protobuf fields
	children []*node   // sorted by key, elements in order
	text     string    // of text, number and literal
	bytes    []byte
	number   uint64 // of integers

	exact  uint64 // hash of the content, the key apart
	alike  uint64 // the same with volatile values made equal
	member uint64 // hash of the key and the content

	tree   *wire.Tree // and index of the field, where it is one
	at     int32
	base   int           // where the tree begins in the message
	choice *kinds.Choice // what somebody said of the field; nil: nothing

	// weight is how much it holds: a value counts 1, and more by the root of its
	// length.
	weight float64
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
	if f.Err != nil && f.Type == wire.Garbage {
		if n := c.cut(t, i); n != nil {
			return n
		}
	}
	n := &node{wire: f.Type, tree: t, at: i}
	if i > 0 && f.Type != wire.Garbage {
		n.key = c.key(f.Number)
	}
	n.choice = s.Chosen(at[i])
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
	root, err := jsontree.Parse(data)
	if err != nil {
		return nil, false
	}
	return c.fromValue("", root), true
}

func (c *comparison) fromValue(key string, v jsontree.Value) *node {
	n := &node{key: key}
	switch v.Kind() {
	case jsontree.Object:
		n.kind = object
		// Of members with one name the last counts.
		names := make(map[string]int)
		for m := range v.Items() {
			name := m.Name()
			at, twice := names[name]
			if !twice {
				at = len(n.children)
				names[name] = at
				n.children = append(n.children, nil)
			}
			n.children[at] = c.fromValue(name, m)
		}
		slices.SortFunc(n.children, func(a, b *node) int { return cmp.Compare(a.key, b.key) })
	case jsontree.Array:
		n.kind = list
		for e := range v.Items() {
			n.children = append(n.children, c.fromValue("", e))
		}
	case jsontree.String:
		n.kind, n.text = text, v.Text()
	case jsontree.Number:
		n.kind, n.text = literal, v.Text()
		if u, err := strconv.ParseUint(n.text, 10, 64); err == nil {
			n.kind, n.number = integer, u
		}
	default:
		n.kind, n.text = literal, v.Text()
	}
	c.hash(n)
	return n
}

// hash sets n's hashes and weight from its own value and its children's. The
// hashes of objects are sums, so that order does not count; those of the
// elements of one key, and of lists, count in order.
func (c *comparison) hash(n *node) {
	n.weight = 1 + math.Sqrt(float64(len(n.text)+len(n.bytes)))/4
	kind := uint64(n.kind)<<8 | uint64(n.wire)
	exact, alike := uint64(0), uint64(0)
	switch n.kind {
	case object, list:
		nth := uint64(0)
		for i, child := range n.children {
			if nth++; i > 0 && child.key != n.children[i-1].key {
				nth = 1
			}
			exact += c.mix(child.member, nth)
			alike += c.mix(c.mix(c.sum(child.key), child.alike), nth)
			n.weight += child.weight
		}
	case text:
		exact = c.sum(n.text)
		alike = exact
		if s := skeleton(n.text, nil); len(s) != len(n.text) || s != n.text {
			alike = c.sum(s)
		}
	case integer:
		exact = n.number
		alike = exact
		if ident.IsTime(n.number) {
			alike = c.sum(string(ident.Time))
		} else if n.isNumberID() {
			alike = c.sum(string(numberID))
		}
	case literal:
		exact = c.sum(n.text)
		alike = exact
	default:
		exact = maphash.Bytes(c.seed, n.bytes)
		alike = exact
		if ident.IsBytes(n.bytes) {
			alike = c.sum(string(ident.Bytes))
		}
	}
	n.exact, n.alike = c.mix(kind, exact), c.mix(kind, alike)
	n.member = c.mix(c.sum(n.key), n.exact)
}

// mix is a hash of two numbers.
func (c *comparison) mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^c.salt[0], b^c.salt[1])
	hi, lo = bits.Mul64(hi^lo^c.salt[2], a^bits.RotateLeft64(b, 32)^c.salt[0])
	return hi ^ lo
}

func (c *comparison) sum(s string) uint64 { return maphash.String(c.seed, s) }

// key is a field number as the key of members.
func (c *comparison) key(number uint64) string {
	k, ok := c.keys[number]
	if !ok {
		k = strconv.FormatUint(number, 10)
		c.keys[number] = k
	}
	return k
}

// keyed is the hash of a key and what it holds.
func (c *comparison) keyed(key string, sum uint64) uint64 { return c.mix(c.sum(key), sum) }

// raw are the bytes of the field that n is.
func (n *node) raw() Bytes {
	if n.tree == nil {
		return Bytes{}
	}
	f := &n.tree.Nodes[n.at]
	return Bytes{n.base + f.Off, n.tree.Data[f.Off:f.End]}
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
		if n.tree != nil && (n.wire != wire.Varint || n.choice != nil) {
			return n.numberValue()
		}
		return n.number
	case literal:
		return json.RawMessage(n.text)
	case blob:
		if list, _ := n.packed(); list != nil {
			return list
		}
	}
	return n.bytes
}

// reading is how the field that n is reads, by its own bytes or as it was chosen.
func (n *node) reading() (best kinds.Reading, chosen bool) {
	t := wire.Parse(n.raw().Data, wire.Options{})
	if len(t.Nodes) < 2 {
		return kinds.Reading{}, false
	}
	r := kinds.NewReader(t, nil)
	if n.choice != nil {
		here := fieldpath.Path{fieldpath.Field(t.Node(1).Number)}
		r.Choose([]kinds.Choice{{Path: here, Kind: n.choice.Kind, Type: n.choice.Type}})
	}
	chosen, _ = r.Chosen(1)
	return r.Readings(1)[0], chosen
}

// packed is a payload as the packed list that it reads as, and the list's type; nil if
// it reads as something else. A list of varints has to be chosen: a few bytes are often
// one by chance.
func (n *node) packed() (list any, typ string) {
	if n.kind != blob || n.wire != wire.Len || n.tree == nil {
		return nil, ""
	}
	best, chosen := n.reading()
	if best.Kind != wire.KindPacked || !chosen && kinds.ElementOf(best.Type) == kinds.PackedVarint {
		return nil, ""
	}
	return kinds.JSONValue(best.Value), best.Type
}

// plain is value, or the bytes of a payload.
func (n *node) plain(value any) any {
	if n.kind == blob {
		return n.bytes
	}
	return value
}

// numberValue is a number of the field's wire type as JSON has it: with a fraction
// where that is how it is read, and as it was chosen.
func (n *node) numberValue() any {
	best, chosen := n.reading()
	switch v := best.Value.(type) {
	case float32:
		if f, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			return v
		}
	}
	if chosen {
		return kinds.JSONValue(best.Value)
	}
	return n.number
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
