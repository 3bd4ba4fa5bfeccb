package kind

import (
	"math"
	"slices"
	"unicode/utf8"

	"unwire/decode/wire"
)

// A Reader finds the readings of a tree's nodes: for each, what the evidence of its field
// says, of all the field's occurrences together. It is not for several goroutines at once.
//
// Shape: a node's reading is always one that its own bytes allow, whatever the
// field's other occurrences say.
// Limits: nodes below a payload that the evidence does not take for a message
// are judged by their own bytes alone.
// Source: decode/README.md#readings
type Reader struct {
	t      *wire.Tree
	fields []*Field // of each node, or nil
	pooled bool     // whether some are of evidence that has not seen t
	costs  Costs
	judged map[*Field]*judged // of a Reader by pooled evidence
	parts  map[partKey]*part  // of fields with several wire types

	// Whose readings are kept between Readers; may be nil.
	shared *Pooled

	chosen map[int32]chosen // nodes whose reading somebody chose
}

// NewReader looks at all of t. With evidence, which may be nil, it is that
// which judges, of fields that it has; the others are judged by t.
func NewReader(t *wire.Tree, pooled *Message) *Reader {
	r := &Reader{t: t, fields: make([]*Field, len(t.Nodes)), pooled: pooled != nil, costs: Costs{}}
	if pooled == nil {
		r.look(r.fields)
		return r
	}
	r.judged = map[*Field]*judged{}
	if !r.assign(r.fields, 0, pooled) {
		own := make([]*Field, len(t.Nodes))
		r.look(own)
		for i, f := range r.fields {
			if f == nil && own[i] != nil && !own[i].left {
				r.fields[i] = own[i]
			}
		}
	}
	return r
}

// look gathers the tree's own evidence, and notes in fields that of each node.
func (r *Reader) look(fields []*Field) {
	e := NewEvidence()
	e.scratch.nodes = fields
	own := &Message{}
	e.addMessage(own, r.t, 0, e.scratch.path[:0])
	if e.Truncated() { // some that were noted are forgotten
		clear(fields)
		r.assign(fields, 0, own)
	}
	fields[0] = rootField(r.t, own)
}

// rootField is the evidence of all the data as if it were a field's payload.
func rootField(t *wire.Tree, m *Message) *Field {
	f := &Field{Seen: 1, Occurs: 1, Most: 1, Len: newPayloads(), Child: m}
	whole := t.Nodes[0].First != wire.None
	for c := range t.Children(0) {
		if n := t.Node(c); n.Type == wire.Garbage || n.Err != nil && n.Type != wire.Len {
			f.Len.NotMessage, f.Child, whole = true, nil, false
		}
	}
	f.Len.addPayload(t.Data, whole, 1, 0)
	return f
}

// assign finds the evidence in m of the nodes below i, and reports whether there
// is some for every field.
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
			all = r.assign(fields, c, f.below(n.Type)) && all
		}
	}
	return all
}

// below is the evidence of the messages in a field's payloads, or its groups.
func (f *Field) below(t wire.Type) *Message {
	switch {
	case f == nil:
		return nil
	case t == wire.StartGroup:
		return f.Group
	}
	return f.Child
}

// Field returns the evidence by which node i is judged.
func (r *Reader) Field(i int32) *Field {
	if f := r.fields[i]; f != nil && !f.left {
		return f
	}
	n := r.t.Node(i)
	if n.Type == wire.Garbage {
		return nil
	}
	if i == 0 {
		own := make([]*Field, len(r.t.Nodes))
		r.look(own)
		r.fields[0] = own[0]
	} else {
		r.fields[i] = r.alone(i)
	}
	return r.fields[i]
}

// Readings returns the readings of node i, the best first. Their probabilities sum to 1.
//
// Shape: of the root, those of all the data. Garbage is bytes.
func (r *Reader) Readings(i int32) []Reading {
	list := r.possible(i, true)
	out := make([]Reading, len(list))
	for j := range list {
		out[j] = list[j]
		out[j].Value = r.value(i, list[j].Type)
	}
	return out
}

// Best returns the kind and type of node i's likeliest reading with its
// probability, in less time and memory than Readings.
func (r *Reader) Best(i int32) (kind wire.Kind, typ string, p float64) {
	if f := r.fields[i]; f != nil && f.judged.settled && len(r.chosen) == 0 && r.t.Nodes[i].Err == nil {
		best := &f.judged.list[0]
		return best.Kind, best.Type, best.P
	}
	best := &r.possible(i, false)[0]
	return best.Kind, best.Type, best.P
}

// possible returns the readings of node i's field that node i itself allows; with
// their evidence, or they may lack it.
func (r *Reader) possible(i int32, why bool) []Reading {
	if len(r.chosen) > 0 && r.chosen[i].list != nil {
		return r.chosen[i].list
	}
	n := r.t.Node(i)
	f := r.Field(i)
	if f == nil {
		return []Reading{{Kind: wire.KindBytes, Type: "bytes", P: 1}}
	}
	all := r.judge(f, why)
	if !r.pooled && f.pure() {
		f.judged.settled = !f.left
		if n.Err == nil {
			return all // what a payload refutes is not among them
		}
	}
	if !r.pooled && n.Err == nil {
		if out := r.part(f, i, why); len(out) > 0 {
			return out
		}
	}
	if out := r.fitting(n, i, all); len(out) > 0 {
		return out
	}
	if out := r.fitting(n, i, r.part(f, i, why)); len(out) > 0 {
		return out
	}
	if out := r.fitting(n, i, r.costs.explainedReadings(r.alone(i))); len(out) > 0 {
		return out
	}
	return []Reading{{Kind: wire.KindBytes, Type: "bytes", P: 1}}
}

// A part of a field is its occurrences with one wire type.
type part struct {
	of   *Field
	list []Reading
	why  bool
}

type partKey struct {
	f *Field
	t wire.Type
}

// part returns the readings of a field's occurrences that have node i's wire type,
// which are worked out once: those of the field that they allow, or where there are
// none, those of these occurrences alone.
func (r *Reader) part(f *Field, i int32, why bool) []Reading {
	n := r.t.Node(i)
	key := partKey{f, n.Type}
	p := r.parts[key]
	if p == nil {
		p = &part{of: f}
		if !r.pooled {
			p.list = r.fitting(n, i, r.judge(f, false))
		}
		if len(p.list) == 0 {
			p.of = f.only(n.Type)
			p.list = r.costs.readings(p.of)
		}
		if r.parts == nil {
			r.parts = map[partKey]*part{}
		}
		r.parts[key] = p
	}
	if why && !p.why {
		p.why = true
		r.costs.explain(p.of, p.list)
	}
	return p.list
}

// only is the evidence of the occurrences with one wire type.
func (f *Field) only(t wire.Type) *Field {
	o := &Field{Seen: f.Seen, Most: f.Most}
	switch t {
	case wire.Varint:
		if o.Varint = f.Varint; f.Varint != nil {
			o.Occurs = f.Varint.N
		}
	case wire.I32:
		if o.Fixed32 = f.Fixed32; f.Fixed32 != nil {
			o.Occurs = f.Fixed32.N
		}
	case wire.I64:
		if o.Fixed64 = f.Fixed64; f.Fixed64 != nil {
			o.Occurs = f.Fixed64.N
		}
	case wire.StartGroup:
		o.Group, o.Groups, o.Occurs = f.Group, f.Groups, f.Groups
	default:
		if o.Len, o.Child = f.Len, f.Child; f.Len != nil {
			o.Occurs = f.Len.N
		}
	}
	return o
}

// A judged field has its readings worked out, and perhaps explained.
type judged struct {
	list    []Reading
	why     bool
	settled bool // the list is that of every node of the field
}

// judge returns the readings of a field, which are worked out once.
func (r *Reader) judge(f *Field, why bool) []Reading {
	j := &f.judged
	costs := r.costs
	if r.pooled {
		if j = r.shared.judgement(f); j != nil {
			costs = r.shared.costs
		} else if j = r.judged[f]; j == nil {
			j = &judged{}
			r.judged[f] = j
		}
	}
	if j.list == nil {
		j.list = costs.readings(f)
	}
	if why && !j.why {
		j.why = true
		costs.explain(f, j.list)
	}
	return j.list
}

// fitting returns the readings that node i itself allows.
func (r *Reader) fitting(n *wire.Node, i int32, all []Reading) []Reading {
	fits := func(g Reading) bool { return r.fits(n, i, &g) }
	if !slices.ContainsFunc(all, func(g Reading) bool { return !fits(g) }) {
		return all
	}
	return normalize(slices.DeleteFunc(slices.Clone(all), func(g Reading) bool { return !fits(g) }))
}

// pure reports whether all occurrences had one wire type.
func (f *Field) pure() bool {
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

// alone is the evidence of node i by itself.
func (r *Reader) alone(i int32) *Field {
	f := &Field{Seen: 1, Most: 1}
	f.addNode(NewEvidence(), r.t, i, []int32{int32(min(r.t.Node(i).Number, maxNumber))})
	return f
}

// fits reports whether node i can be read so.
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

// value is node i's value as the type has it.
func (r *Reader) value(i int32, typ string) any {
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
