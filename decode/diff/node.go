package diff

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"unwire/decode/field"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	kinds "unwire/decode/kind"
	"unwire/decode/transcript/ident"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

// A node is a value in protobuf or JSON, in the form in which values are compared.
type node struct {
	// key is a field number or the name of a member. It is "" for elements of lists and for roots.
	key string

	// kind is the kind of the value: text, number, message, list, and so on.
	kind kind

	// wire is the wire type if the node is a protobuf field, and 0 if it is a JSON value.
	wire wire.Type

	// children are sorted by key. Children of one key, and elements of a list, keep their order.
	children []*node

	// text is the value of a string, or the digits or word of a JSON literal.
	text string

	// bytes is the value of a bytes field or of undecodable data.
	bytes []byte

	// number is the value of an integer node.
	number uint64

	// exact is a hash of the node's content without its key.
	exact uint64

	// alike is a hash of the content like exact, but with volatile values such as ids replaced by their class.
	// Nodes that differ only in such values have the same one.
	alike uint64

	// member is a hash of the node's key and content.
	member uint64

	// tree is the parsed message that contains the value, if the value is a protobuf field; otherwise nil.
	tree *wire.Tree

	// at is the index of the field in tree.Nodes. It has no meaning if tree is nil.
	at int32

	// base is the offset in bytes of tree in the whole message. It is not 0 for fields inside a truncated field,
	// which are parsed on their own.
	base int

	// choice is the type that a user chose for the field, or nil.
	choice *kinds.Choice

	// weight measures the amount of content: 1 for a value, plus a quarter of the square root of its length.
	weight float64
}

// A kind is the kind of a node's value.
type kind uint8

const (
	// object is a message, a group or a JSON object.
	object kind = iota

	// list is a JSON array.
	list

	// text is a string.
	text

	// integer is a varint, a fixed value, or a JSON integer.
	integer

	// literal is another JSON number, true, false or null.
	literal

	// blob is bytes.
	blob

	// garbage is a run of bytes that do not parse.
	garbage
)

// fromTree converts the parsed message t to a node. s has statistics that determine the kind of each field.
func (c *comparison) fromTree(s *shape.Shape, t *wire.Tree) *node {
	at := s.Locate(t, nil, false)
	return c.fromField(s, t, at, 0)
}

// fromField converts node i of the message t to a node for comparison. at has the path of each node of t, by which
// s knows its kind.
func (c *comparison) fromField(s *shape.Shape, t *wire.Tree, at []shape.Path, i int32) *node {
	f := &t.Nodes[i]
	if f.Type == wire.Garbage {
		if n := c.truncated(t, i); n != nil {
			return n
		}
	}

	n := &node{wire: f.Type, tree: t, at: i}
	if i > 0 && f.Type != wire.Garbage {
		n.key = c.fieldKey(f.Number)
	}
	n.choice = s.Chosen(at[i])
	switch f.Type {
	case wire.Varint, wire.I64, wire.I32:
		n.kind, n.number = integer, t.Uint(i)
	case wire.Garbage:
		n.kind, n.bytes = garbage, t.Payload(i)
	case wire.Len:
		// The kind of a path is the same in all messages, so that equal fields compare as equal.
		payload := t.Payload(i)
		switch {
		case s.IsMessage(t, i, at[i]):
			c.fields(n, s, t, at, i)
		case s.Kind(at[i]) == shape.Text && shape.FitOf(payload) == shape.Clean:
			n.kind, n.text = text, string(payload)
		// An empty payload equals an empty text.
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

// fields makes n an object and sets its children, sorted by field number, from the fields inside node i of t.
func (c *comparison) fields(n *node, s *shape.Shape, t *wire.Tree, at []shape.Path, i int32) {
	n.kind = object
	count := 0
	for range t.Children(i) {
		count++
	}
	n.children = make([]*node, 0, count)
	for child := range t.Children(i) {
		n.children = append(n.children, c.fromField(s, t, at, child))
	}

	// Most encoders write fields in order of their numbers.
	order := func(a, b *node) int {
		return cmp.Or(cmp.Compare(len(a.key), len(b.key)), cmp.Compare(a.key, b.key))
	}
	if !slices.IsSortedFunc(n.children, order) {
		slices.SortStableFunc(n.children, order)
	}
}

// fromJSON returns a node for a JSON text. ok is false if data is not JSON.
func (c *comparison) fromJSON(data []byte) (n *node, ok bool) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return nil, false
	}
	return c.fromValue("", root), true
}

// fromValue converts the JSON value v of member key to a node for comparison.
func (c *comparison) fromValue(key string, v jsontree.Value) *node {
	n := &node{key: key}
	switch v.Kind() {
	case jsontree.Object:
		n.kind = object
		// If a name repeats, the last member counts, as in encoding/json.
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
	// Integers compare by value, other numbers by their digits.
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

// hash computes n's hashes and weight from its own value and those of its children. The hash of an
// object is the sum of its members' hashes, so that the order of keys does not matter. The order of
// repeated values of one key, and of list elements, matters.
func (c *comparison) hash(n *node) {
	n.weight = 1 + math.Sqrt(float64(len(n.text)+len(n.bytes)))/4
	kind := uint64(n.kind)<<8 | uint64(n.wire)
	exact, alike := uint64(0), uint64(0)
	switch n.kind {
	case object, list:
		// nth makes the position count within one key.
		nth := uint64(0)
		for i, child := range n.children {
			if nth++; i > 0 && child.key != n.children[i-1].key {
				nth = 1
			}
			exact += c.mix(child.member, nth)
			alike += c.mix(c.mix(c.hashKey(child.key), child.alike), nth)
			n.weight += child.weight
		}

	// Scalars: the second hash replaces volatile values by their class.
	case text:
		exact = c.hashString(n.text)
		alike = exact
		if s := skeleton(n.text, nil); len(s) != len(n.text) || s != n.text {
			alike = c.hashString(s)
		}
	case integer:
		exact = n.number
		alike = exact
		if ident.IsTime(n.number) {
			alike = c.hashString(string(ident.Time))
		} else if n.isNumberID() {
			alike = c.hashString(string(numberID))
		}
	case literal:
		exact = c.hashString(n.text)
		alike = exact
	default:
		exact = maphash.Bytes(c.seed, n.bytes)
		alike = exact
		if ident.IsBytes(n.bytes) {
			alike = c.hashString(string(ident.Bytes))
		}
	}
	n.exact, n.alike = c.mix(kind, exact), c.mix(kind, alike)
	n.member = c.mix(c.hashKey(n.key), n.exact)
}

// mix returns a hash of a and b. It is a keyed multiply-and-fold hash, as in wyhash.
func (c *comparison) mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^c.salt[0], b^c.salt[1])
	hi, lo = bits.Mul64(hi^lo^c.salt[2], a^bits.RotateLeft64(b, 32)^c.salt[0])
	return hi ^ lo
}

// hashString returns a hash of the string s.
func (c *comparison) hashString(s string) uint64 { return maphash.String(c.seed, s) }

// hashKey is hashString for a key. Consecutive elements of a repeated field have the same.
func (c *comparison) hashKey(key string) uint64 {
	if key != c.lastKey || !c.hasLast {
		c.lastKey, c.lastHash, c.hasLast = key, c.hashString(key), true
	}
	return c.lastHash
}

// fieldKey returns a field number in decimal, as node.key has it.
func (c *comparison) fieldKey(number uint64) string {
	k, ok := c.keys[number]
	if !ok {
		k = strconv.FormatUint(number, 10)
		c.keys[number] = k
	}
	return k
}

// keyed combines a key and the hash of its value into one hash.
func (c *comparison) keyed(key string, sum uint64) uint64 { return c.mix(c.hashString(key), sum) }

// raw returns the encoded bytes and the offset of the node's field, or zero if it is not a field.
func (n *node) raw() Bytes {
	if n.tree == nil {
		return Bytes{}
	}
	f := &n.tree.Nodes[n.at]
	return Bytes{n.base + f.Off, n.tree.Data[f.Off:f.End]}
}

// value returns the node's value in the form that a Change contains.
func (n *node) value() any {
	switch n.kind {
	case object:
		// A JSON object has no wire type.
		if n.wire == 0 {
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
		// Fixed-size numbers, and varints of an inferred type, are decoded by that type.
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

// reading decodes the field by its most probable type, or by the type that a user chose. chosen reports the latter.
func (n *node) reading() (best kinds.Reading, chosen bool) {
	t := wire.Parse(n.raw().Data, wire.Options{})
	if len(t.Nodes) < 2 {
		return kinds.Reading{}, false
	}
	r := kinds.NewReader(t, nil)
	if n.choice != nil {
		// The choice's path is that in the message, but here the field is a message of its own.
		here := fieldpath.Path{fieldpath.Field(t.Node(1).Number)}
		r.Choose([]kinds.Choice{{Path: here, Kind: n.choice.Kind, Type: n.choice.Type}})
	}
	chosen, _ = r.Chosen(1)
	return r.Readings(1)[0], chosen
}

// packed decodes the node's payload as a packed list of numbers, and returns the list and its type. It returns nil
// if the most probable type is another one. A list of varints must be chosen by a user, because a few bytes are
// often a valid list by accident.
func (n *node) packed() (list any, typ string) {
	if n.kind != blob || n.wire != wire.Len || n.tree == nil {
		return nil, ""
	}
	best, chosen := n.reading()
	if best.Kind != wire.KindPacked || !chosen && kinds.ElementOf(best.Type) == kinds.PackedVarint {
		return nil, ""
	}
	return field.JSONValue(best.Value), best.Type
}

// plain returns the node's bytes if it is a payload, and otherwise value.
func (n *node) plain(value any) any {
	if n.kind == blob {
		return n.bytes
	}
	return value
}

// numberValue returns a number for JSON, by its most probable or chosen type. NaN and infinities are returned as
// integers, because JSON does not have them.
func (n *node) numberValue() any {
	best, chosen := n.reading()
	switch v := best.Value.(type) {
	case float32:
		// The shortest decimal that restores the float32 is more readable.
		if f, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			return v
		}
	}
	if chosen {
		return field.JSONValue(best.Value)
	}
	return n.number
}

// field converts the node to a Field for output.
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
