package kind

import (
	"math"
	"slices"
	"unicode/utf8"

	"unwire/decode/wire"
)

// A Reader infers the types of the nodes (field occurrences) of one message from statistics of all occurrences of
// each field. It must not be used by several goroutines at once.
//
// Shape: an inferred type is always compatible with the node's own bytes, even if other occurrences
// suggest another type.
//
// Limits: nodes below a payload that is not a message according to the statistics are judged by their own bytes
// alone.
//
// Source: decode/README.md#readings
type Reader struct {
	// t is the parsed message.
	t *wire.Tree

	// fields has, for each node of the tree, the statistics of its field, or nil.
	fields []*Field

	// pooled are the statistics of other messages; nil if t is judged alone.
	pooled *Message

	// own are the statistics of t alone; nil before they are collected.
	own *Message

	// lone is a bit set of the lone nodes of t that were found.
	lone uint64

	// evidence collects own.
	evidence Evidence

	// memory has the statistics of the tree. The next message reuses it.
	memory recycler

	// single caches the statistics of single nodes whose field has none; at most maxSingle of them.
	single map[singleKey]*Field

	// costs caches the description lengths of messages.
	costs Costs

	// judged caches the inferred types of fields, if pooled is true.
	judged map[*Field]*inferredTypes

	// parts caches the inferred types of fields that occur with several wire types.
	parts map[partKey]*wireTypePart

	// shared are the statistics that several Readers use, or nil.
	shared *Pooled

	// chosen has the nodes whose type a user chose.
	chosen map[int32]chosenTypes
}

// A singleKey identifies statistics of a single node: the node, or for a number its encoding, on which alone they
// depend.
type singleKey struct {
	// node is the index of the node; 0 for a number.
	node int32

	// typ is the wire type of a number, and size the length of its encoding in bytes.
	typ  wire.Type
	size int

	// bits is the number.
	bits uint64
}

// keyOf returns the key of node i.
func (r *Reader) keyOf(i int32) singleKey {
	n := r.t.Node(i)
	switch n.Type {
	case wire.Varint, wire.I32, wire.I64:
		return singleKey{typ: n.Type, size: n.End - n.Val, bits: r.t.Uint(i)}
	}
	return singleKey{node: i}
}

// maxOwnFields is the maximum number of fields of which a Reader keeps statistics of its message. Hostile messages
// have a distinct field for each few bytes, whose statistics would take a hundred times the size of the message. Fields
// without statistics are judged by single nodes.
const maxOwnFields = 20_000

// maxSingle is the maximum number of nodes in Reader.single. Callers need the statistics of a node several times in
// succession. Those of all nodes of a message would need a hundred times its memory.
const maxSingle = 256

// NewReader returns a Reader of message t. If pooled is not nil, fields are judged by these statistics, and fields
// that they lack by t alone.
func NewReader(t *wire.Tree, pooled *Message) *Reader {
	r := &Reader{pooled: pooled, costs: Costs{}, judged: map[*Field]*inferredTypes{}}
	r.Reset(t)
	return r
}

// Reset makes r a Reader of message t, with the same statistics of other messages and without choices. It reuses
// memory: fields of the previous message become invalid.
func (r *Reader) Reset(t *wire.Tree) {
	r.t, r.own, r.single, r.chosen = t, nil, nil, nil
	if len(r.fields) > maxRecycled {
		// Clearing large maps would cost their whole size for every further message.
		r.fields, r.costs, r.judged, r.parts = nil, Costs{}, map[*Field]*inferredTypes{}, nil
	}
	r.fields = slices.Grow(r.fields[:0], len(t.Nodes))[:len(t.Nodes)]
	clear(r.fields)
	if len(r.costs)+len(r.judged)+len(r.parts) > 0 {
		clear(r.costs)
		clear(r.judged)
		clear(r.parts)
	}
	r.prepareEvidence()
	if r.pooled == nil {
		if r.memory.memo.active && len(t.Nodes) <= maxLoneNodes {
			r.findLone(0, 1)
		}
		if r.lone == 0 {
			r.collectEvidence(r.fields)
		}
	} else if !r.assign(r.fields, 0, r.pooled) {
		own := make([]*Field, len(t.Nodes))
		r.collectEvidence(own)
		for i, f := range r.fields {
			if f == nil && own[i] != nil && !own[i].dropped {
				r.fields[i] = own[i]
			}
		}
	}
}

// prepareEvidence empties the evidence of the previous tree. The statistics that are collected next belong to r.fields.
func (r *Reader) prepareEvidence() {
	r.memory.reset(len(r.t.Nodes))
	r.lone = 0
	e := &r.evidence
	e.count, e.cut, e.scratch.nodes, e.scratch.recycler = 0, nil, r.fields, &r.memory
	if e.roots == nil {
		e.roots, e.maxFields = map[string]*Message{}, maxOwnFields
	}
}

// collectEvidence collects the statistics of the tree itself, and stores in fields, by node, the statistics of each
// node's field, except that of the root.
func (r *Reader) collectEvidence(fields []*Field) {
	r.own = r.memory.newMessage()
	e := &r.evidence
	e.count, e.scratch.nodes = 0, fields
	e.roots[""] = r.own
	e.addMessage(r.own, r.t, 0, e.scratch.path[:0])
	// Some of the recorded fields were dropped.
	if e.Truncated() {
		clear(fields)
		r.assign(fields, 0, r.own)
	}
}

// rootField returns statistics in which the whole message is the payload of a field, for the node of the root.
func (r *Reader) rootField() *Field {
	if r.isDeferred() {
		r.collectEvidence(r.fields)
	} else if r.own == nil {
		r.collectEvidence(make([]*Field, len(r.t.Nodes)))
	}
	f := r.memory.newField()
	f.Seen, f.Occurs, f.Most, f.Len, f.Child = 1, 1, 1, r.memory.newPayloads(), r.own
	whole := r.t.Nodes[0].First != wire.None
	for c := range r.t.Children(0) {
		if n := r.t.Node(c); n.Type == wire.Garbage || !n.Sound() && n.Type != wire.Len {
			f.Len.NotMessage, f.Child, whole = true, nil, false
		}
	}
	f.Len.addPayload(r.t.Data, whole, 1, 0)
	return f
}

// assign stores in fields, for each node below node i, the statistics of its field in m. It reports whether all
// fields have some.
func (r *Reader) assign(fields []*Field, i int32, m *Message) bool {
	all := true
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		if n.Type == wire.Garbage || n.Number == 0 || n.Number > maxNumber {
			continue
		}
		var f *Field
		if m != nil {
			f = m.Field(int32(n.Number))
		}
		fields[c] = f
		if all = all && f != nil; n.First != wire.None {
			all = r.assign(fields, c, f.childMessage(n.Type)) && all
		}
	}
	return all
}

// childMessage returns the statistics of the messages in the field's payloads or, for wire type t StartGroup, in
// its groups.
func (f *Field) childMessage(t wire.Type) *Message {
	switch {
	case f == nil:
		return nil
	case t == wire.StartGroup:
		return f.Group
	}
	return f.Child
}

// Field returns the statistics from which node i's type is inferred.
func (r *Reader) Field(i int32) *Field {
	if r.isDeferred() {
		r.collectEvidence(r.fields)
	}
	f := r.field(i)
	if f != nil && f.Len != nil {
		f.Len.complete()
	}
	return f
}

// field is Field without the statistics of a payload that are deferred.
func (r *Reader) field(i int32) *Field {
	if f := r.fields[i]; f != nil && !f.dropped {
		return f
	}
	switch {
	case r.t.Nodes[i].Type == wire.Garbage:
		return nil
	case i == 0:
		r.fields[0] = r.rootField()
		return r.fields[0]
	case r.isDeferred() && r.isLone(i):
		return r.loneField(i)
	case r.isDeferred():
		// The occurrences of the field are in one lone node, or anywhere.
		if around := r.loneAround(i); around > 0 {
			r.loneField(around)
		} else {
			r.collectEvidence(r.fields)
		}
		return r.field(i)
	}
	return r.ownStatistics(i)
}

// Readings returns the possible types of node i with the value decoded by each, most probable first. Their
// probabilities sum to 1.
//
// Shape: for the root node, these are the possible types of the whole data. Garbage is bytes.
func (r *Reader) Readings(i int32) []Reading {
	list := r.possible(i, true)
	out := make([]Reading, len(list))
	for j := range list {
		out[j] = list[j]
		out[j].Value = r.Value(i, list[j].Type)
	}
	return out
}

// Types returns the possible types of node i, most probable first, without values and reasons. It is faster than
// Readings. The result is valid until Reset, and must not be changed.
func (r *Reader) Types(i int32) []Reading { return r.possible(i, false) }

// Best returns the kind, type and probability of node i's most probable type. It is faster than Readings.
func (r *Reader) Best(i int32) (kind wire.Kind, typ string, p float64) {
	if f := r.fields[i]; f != nil && f.judged.settled && len(r.chosen) == 0 && r.t.Nodes[i].Sound() {
		best := &f.judged.list[0]
		return best.Kind, best.Type, best.P
	}
	best := r.remembered(i)
	if best == nil {
		best = &r.possible(i, false)[0]
	}
	return best.Kind, best.Type, best.P
}

// possible returns the possible types of node i's field that the node's bytes allow. If why is false, they may lack
// the reasons for their probabilities.
func (r *Reader) possible(i int32, why bool) []Reading {
	if len(r.chosen) > 0 && r.chosen[i].list != nil {
		return r.chosen[i].list
	}
	n := r.t.Node(i)
	f := r.field(i)
	if f == nil {
		return []Reading{{Kind: wire.KindBytes, Type: "bytes", P: 1}}
	}
	all := r.judge(f, why)
	if r.pooled == nil && f.hasOneWireType() {
		f.judged.settled = !f.dropped
		if n.Sound() {
			// Refuted readings are not in the list.
			return all
		}
	}

	// The fallbacks: occurrences of the same wire type, readings that the bytes allow, and finally the node
	// alone.
	if r.pooled == nil && n.Sound() {
		if out := r.typesForWireType(f, i, why); len(out) > 0 {
			return out
		}
	}
	if out := r.fitting(n, i, all); len(out) > 0 {
		return out
	}
	if !f.single {
		if out := r.fitting(n, i, r.typesForWireType(f, i, why)); len(out) > 0 {
			return out
		}
		if out := r.fitting(n, i, r.judge(r.ownStatistics(i), true)); len(out) > 0 {
			return out
		}
	}
	return []Reading{{Kind: wire.KindBytes, Type: "bytes", P: 1}}
}

// A wireTypePart holds the types inferred from those occurrences of a field that have one wire type.
type wireTypePart struct {
	// of are the statistics of those occurrences of the field that have the wire type.
	of *Field

	// list are the possible types of these occurrences, with their probabilities, the most likely first.
	list []Reading

	// why means that the types include the reasons for their probabilities.
	why bool
}

// A partKey identifies a wireTypePart: a field and a wire type.
type partKey struct {
	// f are the statistics of the field.
	f *Field

	// t is the wire type of the occurrences that are examined.
	t wire.Type
}

// typesForWireType returns the possible types of those occurrences of f that have node i's wire type: the types of
// the whole field that fit or, if there are none, those inferred from these occurrences alone. They are computed
// once. why adds the reasons for their probabilities.
func (r *Reader) typesForWireType(f *Field, i int32, why bool) []Reading {
	n := r.t.Node(i)
	key := partKey{f, n.Type}
	p := r.parts[key]
	if p == nil {
		// Prefer the readings of the whole field.
		p = &wireTypePart{of: f}
		if r.pooled == nil {
			p.list = r.fitting(n, i, r.judge(f, false))
		}
		if len(p.list) == 0 {
			p.of = f.onlyWireType(n.Type)
			p.list = r.costs.readings(nil, p.of)
		}
		if r.parts == nil {
			r.parts = map[partKey]*wireTypePart{}
		}
		r.parts[key] = p
	}
	if why && !p.why {
		p.why = true
		r.costs.explain(p.of, p.list)
	}
	return p.list
}

// onlyWireType returns the statistics of those occurrences of the field that have the wire type t.
func (f *Field) onlyWireType(t wire.Type) *Field {
	o := &Field{Seen: f.Seen, Most: f.Most}
	switch {
	case t == wire.Varint && f.Varint != nil:
		o.Varint, o.Occurs = f.Varint, f.Varint.N
	case t == wire.I32 && f.Fixed32 != nil:
		o.Fixed32, o.Occurs = f.Fixed32, f.Fixed32.N
	case t == wire.I64 && f.Fixed64 != nil:
		o.Fixed64, o.Occurs = f.Fixed64, f.Fixed64.N
	case t == wire.StartGroup:
		o.Group, o.Groups, o.Occurs = f.Group, f.Groups, f.Groups
	case (t == wire.Len || t == wire.Message) && f.Len != nil:
		o.Len, o.Child, o.Occurs = f.Len, f.Child, f.Len.N
	}
	return o
}

// An inferredTypes caches the inferred types of a field.
type inferredTypes struct {
	// list are the possible types, most probable first; empty before they are inferred.
	list []Reading

	// why means that the cached types include the reasons for their probabilities.
	why bool

	// settled means that list is valid for every occurrence of the field, whatever its bytes are.
	settled bool
}

// judge returns the possible types of a field, most probable first, and caches them. why adds the
// reasons.
func (r *Reader) judge(f *Field, why bool) []Reading {
	j, costs := &f.judged, r.costs
	switch {
	case f.single:
		// A shared cache would keep these statistics.
		costs = Costs{}
	case r.pooled != nil:
		if j = r.shared.judgement(f); j != nil {
			costs = r.shared.costs
		} else if j = r.judged[f]; j == nil {
			j = &inferredTypes{}
			r.judged[f] = j
		}
	}
	if len(j.list) == 0 {
		j.list = costs.readings(j.list, f)
	}
	if why && !j.why {
		j.why = true
		costs.explain(f, j.list)
	}
	return j.list
}

// fitting returns those of the possible types all that the bytes of node i allow, with probabilities that sum to 1.
func (r *Reader) fitting(n *wire.Node, i int32, all []Reading) []Reading {
	fits := func(g Reading) bool { return r.fits(n, i, &g) }
	if !slices.ContainsFunc(all, func(g Reading) bool { return !fits(g) }) {
		return all
	}
	return normalize(slices.DeleteFunc(slices.Clone(all), func(g Reading) bool { return !fits(g) }))
}

// hasOneWireType reports whether all occurrences of the field have the same wire type.
func (f *Field) hasOneWireType() bool {
	switch {
	case f.Len != nil:
		return f.Len.N == f.Occurs
	case f.Varint != nil:
		return f.Varint.N == f.Occurs
	case f.Fixed32 != nil:
		return f.Fixed32.N == f.Occurs
	case f.Fixed64 != nil:
		return f.Fixed64.N == f.Occurs
	}
	return f.Group != nil
}

// ownStatistics returns statistics of node i only, without other occurrences of its field.
func (r *Reader) ownStatistics(i int32) *Field {
	key := r.keyOf(i)
	f := r.single[key]
	if f == nil {
		if r.single == nil || len(r.single) == maxSingle {
			r.single = map[singleKey]*Field{}
		}
		f = &Field{Seen: 1, Most: 1, single: true}
		f.addNode(NewEvidence(), r.t, i, []int32{int32(min(r.t.Node(i).Number, maxNumber))})
		r.single[key] = f
	}
	return f
}

// fits reports whether the bytes of node i allow the type g.
func (r *Reader) fits(n *wire.Node, i int32, g *Reading) bool {
	switch n.Type {
	case wire.Varint:
		if g.Type == "bool" && r.t.Uint(i) > 1 {
			return false
		}
		return g.Kind == wire.KindVarint
	case wire.I32:
		return g.Kind == wire.KindFixed32
	case wire.I64:
		return g.Kind == wire.KindFixed64
	case wire.StartGroup:
		return g.Kind == wire.KindGroup
	}

	// Length-delimited payloads are checked by their content.
	data := r.t.Payload(i)
	switch g.Kind {
	case wire.KindBytes:
		return true
	case wire.KindString:
		return utf8.Valid(data)
	case wire.KindMessage:
		return n.Type == wire.Message || r.t.IsMessage(i)
	case wire.KindPacked:
		return fitsPacked(g.Type, data)
	}

	return false
}

// Value returns node i's value, decoded as type typ; see Reading.Value.
func (r *Reader) Value(i int32, typ string) any {
	n := r.t.Node(i)
	switch n.Type {
	case wire.Varint, wire.I32, wire.I64:
		return scalarValue(r.t.Uint(i), typ)
	case wire.StartGroup:
		return nil
	}
	data := r.t.Payload(i)
	switch typ {
	case "string":
		return string(data)
	case "bytes":
		return data
	}
	if ElementOf(typ) != notPacked {
		return packedList(typ, data)
	}
	return nil
}

// scalarValue decodes the bits of a number as type typ.
func scalarValue(v uint64, typ string) any {
	switch typ {
	case "uint32", "uint64", "fixed64", "fixed32":
		return v
	case "sint32", "sint64":
		return int64(v>>1) ^ -int64(v&1)
	case "bool":
		return v != 0
	case "float":
		return math.Float32frombits(uint32(v))
	case "double":
		return math.Float64frombits(v)
	case "sfixed32":
		return int64(int32(v))
	}
	return int64(v)
}
