package kind

import (
	"math"
	"slices"
	"unicode/utf8"

	"unwire/decode/wire"
)

// A Reader finds the readings of a tree's nodes: for each, what the evidence of
// its field says, of all the field's occurrences together. It is not for
// several goroutines at once.
//
// Shape: a node's reading is always one that its own bytes allow, whatever the
// field's other occurrences say.
// Limits: nodes below a payload that the evidence does not take for a message
// are judged by their own bytes alone.
// Source: RESEARCH.md#readings
type Reader struct {
	t      *wire.Tree
	fields []*Field // of each node, or nil
	pooled bool     // whether some are of evidence that has not seen t
	costs  Costs
	judged map[*Field][]Reading
	shared *Pooled          // whose readings are kept between Readers; may be nil
	chosen map[int32]chosen // nodes whose reading somebody chose
}

// NewReader looks at all of t. With evidence, which may be nil, it is that
// which judges, of fields that it has; the others are judged by t.
func NewReader(t *wire.Tree, pooled *Message) *Reader {
	r := &Reader{t: t, fields: make([]*Field, len(t.Nodes)), pooled: pooled != nil, costs: Costs{}, judged: map[*Field][]Reading{}}
	e := NewEvidence()
	own := &Message{}
	e.add(own, t, 0, nil)
	r.fields[0] = rootField(t, own)
	r.assign(0, own, pooled)
	return r
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
	f.Len.add(t.Data, whole)
	return f
}

// assign finds the evidence of the nodes below i, whose fields' is own or pooled.
func (r *Reader) assign(i int32, own, pooled *Message) {
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		if n.Type == wire.Garbage || n.Number == 0 || n.Number > maxNumber {
			continue
		}
		var f, p *Field
		if own != nil {
			f = own.Field(int32(n.Number))
		}
		if pooled != nil {
			p = pooled.Field(int32(n.Number))
		}
		if r.fields[c] = p; p == nil {
			r.fields[c] = f
		}
		if n.First != wire.None {
			r.assign(c, f.below(n.Type), p.below(n.Type))
		}
	}
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
	if r.fields[i] != nil {
		return r.fields[i]
	}
	n := r.t.Node(i)
	if n.Type == wire.Garbage {
		return nil
	}
	f := r.alone(i)
	r.fields[i] = f
	return f
}

// Readings returns the readings of node i, the best first. Their probabilities
// sum to 1.
//
// Shape: of the root, those of all the data. Garbage is bytes.
func (r *Reader) Readings(i int32) []Reading {
	list := r.possible(i)
	out := make([]Reading, len(list))
	for j := range list {
		out[j] = list[j]
		out[j].Value = r.value(i, list[j].Type)
	}
	return out
}

// Best returns the kind and type of node i's likeliest reading with its
// probability, in less time and memory than Readings.
func (r *Reader) Best(i int32) (kind Kind, typ string, p float64) {
	best := r.possible(i)[0]
	return best.Kind, best.Type, best.P
}

// possible returns the readings of node i's field that node i itself allows.
func (r *Reader) possible(i int32) []Reading {
	if len(r.chosen) > 0 && r.chosen[i].list != nil {
		return r.chosen[i].list
	}
	n := r.t.Node(i)
	f := r.Field(i)
	if f == nil {
		return []Reading{{Kind: wire.KindBytes, Type: "bytes", P: 1}}
	}
	all, ok := r.shared.readings(f)
	if !ok {
		all, ok = r.judged[f]
	}
	if !ok {
		all = r.costs.Readings(f)
		r.judged[f] = all
	}
	if !r.pooled && n.Err == nil && f.pure() {
		return all // what a payload refutes is not among them
	}
	if out := r.fitting(n, i, all); len(out) > 0 {
		return out
	}
	if out := r.fitting(n, i, r.costs.Readings(r.alone(i))); len(out) > 0 {
		return out
	}
	return []Reading{{Kind: wire.KindBytes, Type: "bytes", P: 1}}
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
	n := 0
	for _, is := range [...]bool{f.Varint != nil, f.Fixed32 != nil, f.Fixed64 != nil, f.Len != nil, f.Group != nil} {
		if is {
			n++
		}
	}
	return n == 1
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
		switch g.Type {
		case "packed fixed32":
			return len(data)%4 == 0
		case "packed fixed64":
			return len(data)%8 == 0
		}
		return IsPackedVarint(data)
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
	case "packed varint", "packed fixed32", "packed fixed64":
		return PackedValues(typ, data)
	}
	return nil
}

func scalarValue(v uint64, typ string) any {
	switch typ {
	case "uint64", "fixed64", "fixed32":
		return v
	case "sint64":
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

// PackedValues returns the numbers in a payload that has a reading of type
// "packed varint", "packed fixed32" or "packed fixed64". Of other data it
// returns those before the place where it stops being that.
func PackedValues(typ string, data []byte) []uint64 {
	width := 0
	switch typ {
	case "packed fixed32":
		width = 4
	case "packed fixed64":
		width = 8
	}
	vs := []uint64{}
	for len(data) >= max(width, 1) {
		n := width
		v := uint64(0)
		if n > 0 {
			v = wire.Fixed(data[:n])
		} else if v, n = wire.ConsumeVarint(data); n <= 0 {
			break
		}
		vs, data = append(vs, v), data[n:]
	}
	return vs
}
