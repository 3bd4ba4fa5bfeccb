package align

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/wire"
)

// Bounds of the work on one pair of bodies.
const (
	maxComparisons = 2 << 20 // of a field with a member
	maxFields      = 256     // different ones of one message
)

// A body is one message in both codecs.
type body struct {
	proto    *wire.Tree
	json     *value
	left     int // comparisons
	feasible map[at]mode
	sure     map[at]int // bits, by sureOf
}

// at is a message of a tree with an object that may be the same message.
type at struct {
	tree *wire.Tree
	node int32
	obj  *value
}

// A mode says how completely a message and an object agree.
type mode uint8

const (
	differs mode = iota
	loosely      // but for defaults, which one of both leaves out
	exactly      // every field has a member, every member a field
)

// A cell is what one field and one member have in common.
type cell struct {
	types  types   // of a singular field or a map
	lists  types   // of the elements of a repeated one
	keys   types   // of a map: of its keys
	values types   // of a map: of its values
	names  []named // of an enum's values
	inside []inner // messages: of the field, of its elements, of a map's values
	sure   int     // bits of values that agree and are hardly the same by chance
}

// agree says how completely a message and an object agree.
func (b *body) agree(p at) mode {
	if m, ok := b.feasible[p]; ok {
		return m
	}
	b.feasible[p] = differs // a tree has no cycles; this is for the bound alone
	m := b.compute(p)
	b.feasible[p] = m
	return m
}

func (b *body) compute(p at) mode {
	fields, ok := fieldsOf(p.tree, p.node)
	if !ok || p.obj.kind != object || len(fields) > maxFields || len(p.obj.names) > maxFields {
		return differs
	}
	numbers := slices.Sorted(maps.Keys(fields))
	g := newGraph(len(numbers), len(p.obj.names))
	for i, n := range numbers {
		for j, v := range p.obj.elems {
			if b.left--; b.left < 0 {
				return differs
			}
			g.edges[i][j] = b.cell(p.tree, fields[n], v).ok()
		}
	}
	if len(numbers) == len(p.obj.names) && g.match() {
		return exactly
	}
	for i, n := range numbers {
		g.spareRow[i] = isDefault(p.tree, fields[n])
	}
	for j, v := range p.obj.elems {
		g.spareColumn[j] = mayBeDefault(v)
	}
	if g.match() {
		return loosely
	}
	return differs
}

// isDefault reports whether a field is written although it has no value.
func isDefault(t *wire.Tree, nodes []int32) bool {
	for _, c := range nodes {
		n := t.Node(c)
		if n.Type == wire.StartGroup || n.Type == wire.Len && n.Val != n.End || n.Type != wire.Len && t.Uint(c) != 0 {
			return false
		}
	}
	return true
}

// mayBeDefault reports whether a member can stand for a field that is not set:
// an enum's first value has a name like any other.
func mayBeDefault(v *value) bool { return v.isDefault() || v.kind == text && isIdentifier(v.text) }

// cell compares the fields of one number with one member.
func (b *body) cell(t *wire.Tree, nodes []int32, v *value) cell {
	switch {
	case v.kind == array:
		return b.repeated(t, nodes, v)
	case v.kind == object && allLen(t, nodes):
		c := b.mapped(t, nodes, v)
		if len(nodes) == 1 {
			c = c.or(b.single(t, nodes[0], v))
		}
		return c
	case len(nodes) == 1:
		return b.single(t, nodes[0], v)
	}
	return cell{}
}

func allLen(t *wire.Tree, nodes []int32) bool {
	return !slices.ContainsFunc(nodes, func(n int32) bool { return t.Node(n).Type != wire.Len })
}

// An inner is a message in a field, read as the field's type says.
type inner struct {
	at
	of   types  // tMessage, tGroup, tMap or tAny
	name string // of its type, where an Any tells it
}

// ok reports whether the field can be the member at all.
func (c cell) ok() bool { return c.types|c.lists != 0 }

// or joins two ways to read the same.
func (c cell) or(o cell) cell {
	return cell{
		types: c.types | o.types, lists: c.lists | o.lists, keys: c.keys | o.keys, values: c.values | o.values,
		names: append(c.names, o.names...), inside: append(c.inside, o.inside...), sure: max(c.sure, o.sure),
	}
}

// and joins what two elements of a list have in common.
func (c cell) and(o cell) cell {
	return cell{
		types: c.types & o.types, names: append(c.names, o.names...), inside: append(c.inside, o.inside...), sure: c.sure + o.sure,
	}
}

// single compares one node with a member that is no array of it.
func (b *body) single(t *wire.Tree, node int32, v *value) (c cell) {
	c.types = scalarTypes(t, node, v)
	n := t.Node(node)
	if n.Type == wire.Len && v.kind != null || n.Type == wire.Len && v.kind == null && t.IsMessage(node) {
		c.types |= wellKnownTypes(t, node, v)
	}
	if c.types&tEnum != 0 && v.kind == text {
		c.names = []named{{v.text, int32(t.Uint(node))}}
	}
	c.sure = sureness(t, node, v, c.types)
	if v.kind != object || n.Type != wire.Len && n.Type != wire.StartGroup {
		return c
	}
	if in, ok := b.any(t, node, v); ok {
		c.types |= tAny
		if in.obj != nil {
			c.inside = append(c.inside, in)
		}
		return c
	}
	p := inner{at: at{t, node, v}, of: tMessage}
	if n.Type == wire.StartGroup {
		p.of = tGroup
	}
	if b.agree(p.at) != differs {
		c.types |= p.of
		c.inside = []inner{p}
		c.sure = max(c.sure, b.sureOf(p.at))
	}
	return c
}

// any compares a google.protobuf.Any, in JSON {"@type": URL, …}.
func (b *body) any(t *wire.Tree, node int32, v *value) (in inner, ok bool) {
	fields, ok := fieldsOf(t, node)
	url := v.member("@type")
	if !ok || url == nil || url.kind != text || len(fields[1]) != 1 || len(fields[2]) > 1 || len(fields) != 1+len(fields[2]) {
		return in, false
	}
	if t.Node(fields[1][0]).Type != wire.Len || string(t.Payload(fields[1][0])) != url.text {
		return in, false
	}
	if len(fields[2]) == 1 && t.Node(fields[2][0]).Type == wire.Len {
		in = inner{at: at{t, fields[2][0], v.without("@type")}, of: tAny, name: url.text[strings.LastIndexByte(url.text, '/')+1:]}
		// a well-known type, which is in a member "value"
		if b.agree(in.at) == differs {
			in = inner{}
		}
	}
	return in, true
}

// repeated compares a list with an array, element by element, in order.
func (b *body) repeated(t *wire.Tree, nodes []int32, v *value) (c cell) {
	if len(nodes) == len(v.elems) {
		c = cell{types: everyType}
		for i, n := range nodes {
			if b.left--; b.left < 0 {
				return cell{}
			}
			c = c.and(b.single(t, n, v.elems[i]))
			if c.types == 0 {
				c = cell{}
				break
			}
		}
	}
	if allLen(t, nodes) {
		c = c.or(b.packed(t, nodes, v))
	}
	c.types, c.lists = 0, c.types
	if len(nodes) == 1 && t.Node(nodes[0]).Type == wire.Len {
		c.types |= wellKnownTypes(t, nodes[0], v)
	}
	return c
}

func (b *body) packed(t *wire.Tree, nodes []int32, v *value) (c cell) {
	var data []byte
	for _, n := range nodes {
		data = append(data, t.Payload(n)...)
	}
	if b.left -= len(v.elems); b.left < 0 {
		return c
	}
	if c.types = packedTypes(data, v.elems); len(v.elems) == 0 {
		c.types = 0
		if len(data) == 0 {
			c.types = packable
		}
	}
	if c.types != 0 && len(data) >= sureBytes {
		c.sure = sureBits
	}
	for rest, i := data, 0; c.types&tEnum != 0 && i < len(v.elems); i++ {
		u, n := wire.ConsumeVarint(rest)
		rest = rest[n:]
		if v.elems[i].kind == text {
			c.names = append(c.names, named{v.elems[i].text, int32(u)})
		}
	}
	return c
}

// mapped compares a map's entries with an object's members. The type of the
// keys says which entry is which member.
func (b *body) mapped(t *wire.Tree, nodes []int32, v *value) (c cell) {
	if len(nodes) != len(v.elems) {
		return c
	}
	for rest := tString | integers | tBool; rest != 0; rest &^= rest.first() {
		c = c.or(b.keyed(t, nodes, v, rest.first()))
	}
	return c
}

// keyed is mapped for one type of key.
func (b *body) keyed(t *wire.Tree, nodes []int32, v *value, key types) (c cell) {
	c = cell{types: tMap, keys: key, values: everyType}
	used := map[int]bool{}
	for _, n := range nodes {
		b.left--
		fields, ok := fieldsOf(t, n)
		if !ok || b.left < 0 || len(fields[1]) > 1 || len(fields[2]) > 1 || len(fields) != len(fields[1])+len(fields[2]) {
			return cell{}
		}
		i := slices.IndexFunc(v.names, func(name string) bool {
			b.left--
			return keyTypes(t, fields[1], name)&key != 0
		})
		if i < 0 || used[i] {
			return cell{}
		}
		used[i] = true
		var e cell
		switch m := v.elems[i]; {
		case len(fields[2]) == 1:
			e = b.single(t, fields[2][0], m)
		case mayBeDefault(m):
			e.types = absent(m)
			if m.kind == text && e.types&tEnum != 0 {
				e.names = []named{{m.text, 0}}
			}
		}
		if c.values &= e.types; c.values == 0 {
			return cell{}
		}
		c.names, c.sure = append(c.names, e.names...), c.sure+e.sure
		for _, in := range e.inside {
			if in.of == tMessage {
				in.of = tMap
				c.inside = append(c.inside, in)
			}
		}
		if key == tString && len(v.names[i]) >= sureBytes {
			c.sure += sureBits
		}
	}
	return c
}

// absent are the types of which m can stand for a value that is not written.
func absent(m *value) types {
	of := varintTypes(0, m) | fixed32Types(0, m) | fixed64Types(0, m)
	switch m.kind {
	case text:
		of |= textTypes(nil, m.text)
	case object:
		of |= tMessage
	}
	return of
}

// keyTypes are the types of a map's key whose name in JSON is name.
func keyTypes(t *wire.Tree, nodes []int32, name string) (out types) {
	if len(nodes) == 0 { // the key is a default
		switch name {
		case "":
			return tString
		case "false":
			return tBool
		case "0":
			return integers
		}
		return 0
	}
	v := &value{kind: text, text: name}
	out = scalarTypes(t, nodes[0], v) &^ (tBytes | tEnum | tFloat | tDouble)
	// narrow ones are strings here, too
	if _, err := strconv.ParseInt(name, 10, 33); err == nil {
		out |= scalarTypes(t, nodes[0], &value{kind: number, text: name}) &^ (tEnum | tFloat | tDouble)
	}
	if name == "true" || name == "false" {
		out |= scalarTypes(t, nodes[0], &value{kind: boolean, truth: name == "true"})
	}
	return out
}
