package align

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/wire"
)

// Limits for comparing a protobuf body with the JSON body of the same message.
const (
	// maxComparisons is how often a protobuf field may be compared with a JSON member, for one pair of bodies.
	maxComparisons = 2 << 20
	// maxFields is the maximum number of distinct protobuf fields, and of JSON members, in one message.
	maxFields = 256
)

// A body is one message that was recorded both in protobuf and in JSON, with cached results of comparing its
// fields with its JSON members.
type body struct {
	// proto is the message as parsed from protobuf.
	proto *wire.Tree
	// json is the same message as parsed from JSON.
	json *value
	// comparisonsLeft is how many more field-to-member comparisons are allowed. Below 0, the limit was exceeded
	// and the results are incomplete.
	comparisonsLeft int

	// agreements caches how well each pair of a nested protobuf message and a JSON object matches.
	agreements map[messagePair]agreement

	// significance caches, for such pairs, the evidence in bits that both are the same data.
	significance map[messagePair]int
}

// A messagePair is a (nested) protobuf message and a JSON object that may represent the same data.
type messagePair struct {
	// tree is the parsed protobuf body that contains the message.
	tree *wire.Tree
	// node is the index of the message in tree.
	node int32
	// obj is the JSON object that is compared with the message.
	obj *value
}

// An agreement says how well the fields of a protobuf message can be matched with the members of a JSON object.
type agreement uint8

const (
	// differs means that the message and the object cannot represent the same data.
	differs agreement = iota
	// loosely means that all can be matched, except fields or members with default values that only one of the
	// two contains.
	loosely
	// exactly means that each field can be matched with a member and each member with a field.
	exactly
)

// A cell is the result of comparing all values of one protobuf field number with one JSON member. The zero
// value means that the two cannot be the same field.
type cell struct {
	// types are the types that the field may have if it is singular or a map.
	types types
	// lists are the element types that the field may have if it is repeated.
	lists types
	// keys are the key types that the field may have if it is a map.
	keys types
	// values are the value types that the field may have if it is a map.
	values types
	// names are the enum values found: the name from the JSON form, the number from the protobuf form.
	names []enumName
	// inside are the messages nested in the field: the field's value, the elements of a list, or the values of
	// a map.
	inside []innerMessage
	// significance estimates, in bits, how unlikely it is that the values are equal by chance.
	significance int
}

// agree returns how well a protobuf message and a JSON object match. Results are cached.
func (b *body) agree(p messagePair) agreement {
	if m, ok := b.agreements[p]; ok {
		return m
	}
	// The entry ends the recursion if the limit is reached. Trees have no cycles.
	b.agreements[p] = differs
	m := b.compute(p)
	b.agreements[p] = m
	return m
}

// compute does the work of agree, without its cache. Each field needs a JSON member that may be equal to it,
// and each member a field (bipartite perfect matching). If that fails, a second attempt lets default values
// stay unmatched.
func (b *body) compute(p messagePair) agreement {
	fields, ok := fieldsOf(p.tree, p.node)
	if !ok || p.obj.kind != object || len(fields) > maxFields || len(p.obj.names) > maxFields {
		return differs
	}

	numbers := slices.Sorted(maps.Keys(fields))
	// An edge means that the values of a field and a member are equal; a perfect matching assigns
	// all of them.
	g := newGraph(len(numbers), len(p.obj.names))
	for i, n := range numbers {
		for j, v := range p.obj.elems {
			if b.comparisonsLeft--; b.comparisonsLeft < 0 {
				return differs
			}
			g.edges[i][j] = b.cell(p.tree, fields[n], v).ok()
		}
	}

	if len(numbers) == len(p.obj.names) && g.match() {
		return exactly
	}

	// proto3 omits default values, so a missing counterpart is acceptable for those.
	for i, n := range numbers {
		g.optionalRow[i] = isDefault(p.tree, fields[n])
	}
	for j, v := range p.obj.elems {
		g.optionalColumn[j] = mayBeDefault(v)
	}

	if g.match() {
		return loosely
	}
	return differs
}

// isDefault reports whether all values of a field are defaults (zero or empty) although they are written on the
// wire. nodes are the values.
func isDefault(t *wire.Tree, nodes []int32) bool {
	for _, c := range nodes {
		n := t.Node(c)
		if n.Type == wire.StartGroup || n.Type == wire.Len && n.Val != n.End || n.Type != wire.Len && t.Uint(c) != 0 {
			return false
		}
	}
	return true
}

// mayBeDefault reports whether v may be the JSON form of a field that is absent in protobuf: a default value or
// an identifier, which may be the name of an enum's value 0.
func mayBeDefault(v *value) bool { return v.isDefault() || v.kind == text && isIdentifier(v.text) }

// cell compares the values of one field number (nodes) with one JSON member.
func (b *body) cell(t *wire.Tree, nodes []int32, v *value) cell {
	switch {
	case v.kind == array:
		return b.repeated(t, nodes, v)
	case v.kind == object && allLen(t, nodes):
		c := b.mapped(t, nodes, v)
		// A single entry may also be a message with two fields.
		if len(nodes) == 1 {
			c = c.or(b.single(t, nodes[0], v))
		}
		return c
	case len(nodes) == 1:
		return b.single(t, nodes[0], v)
	}
	return cell{}
}

// allLen reports whether all nodes are length-delimited.
func allLen(t *wire.Tree, nodes []int32) bool {
	return !slices.ContainsFunc(nodes, func(n int32) bool { return t.Node(n).Type != wire.Len })
}

// An innerMessage is a pair of nested messages found while a field was compared with a JSON member.
type innerMessage struct {
	// messagePair are the nested protobuf message and the JSON object that may represent the same data.
	messagePair
	// of is the field type under which the value is a message: tMessage, tGroup, tMap or tAny.
	of types
	// name is the full name of the type if the message is in a google.protobuf.Any; otherwise "".
	name string
}

// ok reports whether the field and the JSON member may be the same, i.e. whether at least one type fits.
func (c cell) ok() bool { return c.types|c.lists != 0 }

// or returns the union of two results for the same field and member, such as "a map" or "a message".
func (c cell) or(o cell) cell {
	return cell{
		types: c.types | o.types, lists: c.lists | o.lists, keys: c.keys | o.keys, values: c.values | o.values,
		names: append(c.names, o.names...), inside: append(c.inside, o.inside...), significance: max(c.significance, o.significance),
	}
}

// and returns the result for two elements of one list: only types that fit both remain.
func (c cell) and(o cell) cell {
	return cell{
		types: c.types & o.types, names: append(c.names, o.names...), inside: append(c.inside, o.inside...), significance: c.significance + o.significance,
	}
}

// single compares one value of a field with a JSON value that is not an array.
func (b *body) single(t *wire.Tree, node int32, v *value) (c cell) {
	c.types = scalarTypes(t, node, v)
	n := t.Node(node)

	// A null can stand for a Value only, which is a message.
	if n.Type == wire.Len && v.kind != null || n.Type == wire.Len && v.kind == null && t.IsMessage(node) {
		c.types |= wellKnownTypes(t, node, v)
	}

	// The name of an enum value appears in JSON only, and its number in protobuf only.
	if c.types&tEnum != 0 && v.kind == text {
		c.names = []enumName{{v.text, int32(t.Uint(node))}}
	}

	c.significance = valueSignificance(t, node, v, c.types)
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

	// Whether a nested message agrees is decided by matching its own fields.
	p := innerMessage{messagePair: messagePair{t, node, v}, of: tMessage}
	if n.Type == wire.StartGroup {
		p.of = tGroup
	}
	if b.agree(p.messagePair) != differs {
		c.types |= p.of
		c.inside = []innerMessage{p}
		c.significance = max(c.significance, b.significanceOf(p.messagePair))
	}
	return c
}

// any compares a google.protobuf.Any with its JSON form, {"@type": URL, …}, and returns the message in it. ok
// is false if node is not an Any with that URL; in.obj is nil if the content does not match.
func (b *body) any(t *wire.Tree, node int32, v *value) (in innerMessage, ok bool) {
	fields, ok := fieldsOf(t, node)
	url := v.member("@type")
	if !ok || url == nil || url.kind != text || len(fields[1]) != 1 || len(fields[2]) > 1 || len(fields) != 1+len(fields[2]) {
		return in, false
	}
	if t.Node(fields[1][0]).Type != wire.Len || string(t.Payload(fields[1][0])) != url.text {
		return in, false
	}

	if len(fields[2]) == 1 && t.Node(fields[2][0]).Type == wire.Len {
		in = innerMessage{messagePair: messagePair{t, fields[2][0], v.without("@type")}, of: tAny, name: url.text[strings.LastIndexByte(url.text, '/')+1:]}
		// A well-known type has its value in the member "value", which is not compared.
		if b.agree(in.messagePair) == differs {
			in = innerMessage{}
		}
	}
	return in, true
}

// repeated compares a field, as a repeated field, with a JSON array, element by element. nodes are the values
// of the field.
func (b *body) repeated(t *wire.Tree, nodes []int32, v *value) (c cell) {
	if len(nodes) == len(v.elems) {
		c = cell{types: everyType}
		for i, n := range nodes {
			if b.comparisonsLeft--; b.comparisonsLeft < 0 {
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
	// A ListValue is a single field whose JSON form is an array too.

	c.types, c.lists = 0, c.types
	if len(nodes) == 1 && t.Node(nodes[0]).Type == wire.Len {
		c.types |= wellKnownTypes(t, nodes[0], v)
	}
	return c
}

// packed compares a field, as a packed repeated field, with a JSON array. nodes are its length-delimited
// values, which are concatenated.
func (b *body) packed(t *wire.Tree, nodes []int32, v *value) (c cell) {
	var data []byte
	for _, n := range nodes {
		data = append(data, t.Payload(n)...)
	}
	if b.comparisonsLeft -= len(v.elems); b.comparisonsLeft < 0 {
		return c
	}

	// An empty array tells nothing about the type of its elements.
	if c.types = packedTypes(data, v.elems); len(v.elems) == 0 {
		c.types = 0
		if len(data) == 0 {
			c.types = packable
		}
	}

	if c.types != 0 && len(data) >= significantBytes {
		c.significance = significantBits
	}

	// If the elements may be enum values, their names are in the array.
	for rest, i := data, 0; c.types&tEnum != 0 && i < len(v.elems); i++ {
		u, n := wire.ConsumeVarint(rest)
		rest = rest[n:]
		if v.elems[i].kind == text {
			c.names = append(c.names, enumName{v.elems[i].text, int32(u)})
		}
	}
	return c
}

// mapped compares a field, as a map, with a JSON object; nodes are the map's entries. It tries each key type,
// because the key decides which entry belongs to which JSON member.
func (b *body) mapped(t *wire.Tree, nodes []int32, v *value) (c cell) {
	if len(nodes) != len(v.elems) {
		return c
	}
	for rest := tString | integers | tBool; rest != 0; rest &^= rest.first() {
		c = c.or(b.keyed(t, nodes, v, rest.first()))
	}
	return c
}

// keyed does the work of mapped for one assumed key type.
func (b *body) keyed(t *wire.Tree, nodes []int32, v *value, key types) (c cell) {
	c = cell{types: tMap, keys: key, values: everyType}
	used := map[int]bool{}
	for _, n := range nodes {
		b.comparisonsLeft--
		fields, ok := fieldsOf(t, n)
		if !ok || b.comparisonsLeft < 0 || len(fields[1]) > 1 || len(fields[2]) > 1 || len(fields) != len(fields[1])+len(fields[2]) {
			return cell{}
		}

		i := slices.IndexFunc(v.names, func(name string) bool {
			b.comparisonsLeft--
			return keyTypes(t, fields[1], name)&key != 0
		})
		if i < 0 || used[i] {
			return cell{}
		}

		used[i] = true
		// The value of an entry may be absent, if it is a default.
		var e cell
		switch m := v.elems[i]; {
		case len(fields[2]) == 1:
			e = b.single(t, fields[2][0], m)
		case mayBeDefault(m):
			e.types = absentTypes(m)
			if m.kind == text && e.types&tEnum != 0 {
				e.names = []enumName{{m.text, 0}}
			}
		}

		if c.values &= e.types; c.values == 0 {
			return cell{}
		}
		c.names, c.significance = append(c.names, e.names...), c.significance+e.significance
		for _, in := range e.inside {
			// Values of maps cannot be groups or maps themselves.
			if in.of == tMessage {
				in.of = tMap
				c.inside = append(c.inside, in)
			}
		}
		// A long key that agrees is significant too.
		if key == tString && len(v.names[i]) >= significantBytes {
			c.significance += significantBits
		}
	}
	return c
}

// absentTypes returns the types for which a default value, omitted in protobuf, may have the JSON form m.
func absentTypes(m *value) types {
	of := varintTypes(0, m) | fixed32Types(0, m) | fixed64Types(0, m)
	switch m.kind {
	case text:
		of |= textTypes(nil, m.text)
	case object:
		of |= tMessage
	}
	return of
}

// keyTypes returns the types that a map key may have. nodes are its values in the entry (none if omitted), and
// name is its JSON form, the name of a member.
func keyTypes(t *wire.Tree, nodes []int32, name string) (out types) {
	// The key has its default value.
	if len(nodes) == 0 {
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
	// In the name of a member, numbers of 32 bits are strings as well.
	if _, err := strconv.ParseInt(name, 10, 33); err == nil {
		out |= scalarTypes(t, nodes[0], &value{kind: number, text: name}) &^ (tEnum | tFloat | tDouble)
	}
	if name == "true" || name == "false" {
		out |= scalarTypes(t, nodes[0], &value{kind: boolean, truth: name == "true"})
	}
	return out
}
