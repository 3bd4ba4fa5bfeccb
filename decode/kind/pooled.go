package kind

import (
	"bytes"
	"math"

	"unwire/decode/value"
	"unwire/decode/wire"
)

// A Pooled has the statistics of many messages of one type, with the inferred types of each field computed once,
// for use by several Readers. It must not be used by several goroutines at once.
type Pooled struct {
	// m holds the statistics of all messages; nil for none.
	m *Message

	// costs caches the description length (estimated cost of encoding, in nats) of each nested message type.
	costs Costs

	// judged maps each field of m to its inferred types.
	judged map[*Field]*inferredTypes
}

// NewPooled returns a Pooled for m, which may be nil. m must not change afterwards.
func NewPooled(m *Message) *Pooled {
	p := &Pooled{m: m, costs: Costs{}, judged: map[*Field]*inferredTypes{}}
	if m != nil {
		p.enter(m)
	}
	return p
}

// enter adds an empty cache entry for each field of m, and for all below them.
func (p *Pooled) enter(m *Message) {
	for _, n := range m.Numbers() {
		f := m.Field(n)
		p.judged[f] = &inferredTypes{}
		for _, c := range f.Children() {
			p.enter(c)
		}
	}
}

// judgement returns the cache entry for a field's inferred types, or nil if the field does not belong to the
// statistics.
func (p *Pooled) judgement(f *Field) *inferredTypes {
	if p == nil {
		return nil
	}
	return p.judged[f]
}

// NewReader returns a Reader that infers the types in message t from these statistics. p may be nil.
func (p *Pooled) NewReader(t *wire.Tree) *Reader {
	if p == nil {
		return NewReader(t, nil)
	}
	r := NewReader(t, p.m)
	r.shared = p
	return r
}

// Some shapes need statistics over many messages and are never certain: any message with one field may be a
// wrapper, and a Status without details is only a number and a text.

// The log-odds that a message with field 1 only is a google.protobuf wrapper such as Int32Value: oddsWrapper
// without further evidence, and increments if it may be empty (a wrapper of zero), for each sibling that may be a
// wrapper as well, and if it occurs often. They were chosen by hand.
const (
	oddsWrapper = -1.7
	oddsEmpty   = 1.3
	oddsSibling = 0.7
	oddsOften   = 0.4

	// mostWrapper is the maximum probability of a wrapper.
	mostWrapper = 0.8

	// leastGuess is the minimum probability of a wrapper that is reported.
	leastGuess = 0.25

	// leastSamples is the minimum number of payloads.
	leastSamples = 3

	// mostSiblings is the maximum number of siblings that count.
	mostSiblings = 3

	// oneStatusP is the probability of a Status, and leastStatusRate the minimum share of payloads with a text.
	oneStatusP      = 0.35
	leastStatusRate = 0.9
)

// pooledShape detects those well-known types that node i's message may be that cannot be recognised from a single
// message: wrappers such as Int32Value, and a Status without details.
func (r *Reader) pooledShape(i int32) Remark {
	// The root is the payload of no field, and the field of a lone node has one payload.
	if i == 0 || r.isLone(i) {
		return Remark{}
	}
	f := r.field(i)
	if f == nil || f.Child == nil || f.Len == nil || f.Len.N < leastSamples {
		return Remark{}
	}
	if name := wrapped(f); name != "" {
		if p := r.wrapperP(i, f); p >= leastGuess {
			return Remark{Shape: name, P: p}
		}
		return Remark{}
	}
	return r.bareStatus(i, f)
}

// wrapped returns the name of the google.protobuf wrapper type, such as StringValue, that all payloads of a field
// may be, or "".
func wrapped(f *Field) string {
	if f == nil || f.Len == nil || f.Child == nil {
		return ""
	}
	if !f.Child.hasOnly(1) {
		return ""
	}

	// A wrapper has one field, at most once, and omits its zero value.
	g := f.Child.Field(1)
	if g.Most > 1 || !g.hasOneWireType() {
		return ""
	}
	switch {
	case g.Varint != nil && g.Varint.Zero == 0:
		return "google.protobuf." + varintWrapper(g)
	case g.Fixed64 != nil && g.Fixed64.Zero == 0 && g.readings()[0].Type == "double":
		return "google.protobuf.DoubleValue"
	case g.Fixed32 != nil && g.Fixed32.Zero == 0 && g.readings()[0].Type == "float":
		return "google.protobuf.FloatValue"
	case g.Len != nil && g.Len.Empty == 0:
		switch g.readings()[0].Kind {
		case wire.KindString:
			return "google.protobuf.StringValue"
		case wire.KindBytes:
			return "google.protobuf.BytesValue"
		}
	}
	// The values are zeros, which a wrapper omits, or messages.
	return ""
}

// varintWrapper returns the name of the google.protobuf wrapper type, such as BoolValue, whose range
// fits the field's values.
func varintWrapper(g *Field) string {
	switch {
	case g.Varint.Negative == 0 && g.Varint.Max == 1:
		return "BoolValue"
	case g.Varint.Negative == 0 && g.Varint.Max <= math.MaxInt32:
		return "Int32Value"
	}
	return "Int64Value"
}

// wrapperP returns the probability, from 0 to 1, that the message in node i is a google.protobuf wrapper type.
func (r *Reader) wrapperP(i int32, f *Field) float64 {
	odds := oddsWrapper
	if f.Len.Empty > 0 {
		odds += oddsEmpty
	}
	if f.Len.N >= 10 {
		odds += oddsOften
	}
	if f.Most > 1 {
		// Elements of lists are usually messages with more fields.
		odds -= oddsEmpty
	}

	// Wrappers often occur together.
	siblings, seen := 0, 0
	for c := range r.t.Children(r.t.Node(i).Parent) {
		if seen++; seen > mostShapeFields || siblings == mostSiblings {
			break
		}
		if n := r.t.Node(c); n.Number != r.t.Node(i).Number && n.Type != wire.Garbage && wrapped(r.field(c)) != "" {
			siblings++
		}
	}
	odds += oddsSibling * float64(siblings)
	return math.Min(math.Round(100/(1+math.Exp(-odds)))/100, mostWrapper)
}

// bareStatus detects a google.rpc.Status that contains only a code and a message.
func (r *Reader) bareStatus(i int32, f *Field) Remark {
	if !f.Child.hasOnly(1, 2) {
		return Remark{}
	}

	// The codes must vary, and the text must be present and consist of words.
	code, text := f.Child.Field(1), f.Child.Field(2)
	if code.Varint == nil || !code.hasOneWireType() || code.Most > 1 || code.Varint.Negative > 0 || code.Varint.Max > 16 || code.Varint.Max < 3 || code.Varint.Zero > 0 ||
		len(code.Varint.Values.Items) < 2 || text.Most > 1 || !text.hasOneWireType() || text.Len == nil || float64(text.Seen) < leastStatusRate*float64(f.Len.N) || text.readings()[0].Kind != wire.KindString {
		return Remark{}
	}
	for c := range r.t.Children(i) {
		if n := r.t.Node(c); n.Number == 2 && bytes.IndexByte(bytes.TrimSpace(r.t.Payload(c)), ' ') < 0 {
			// A name, not words.
			return Remark{}
		}
	}
	for c := range r.t.Children(i) {
		if r.t.Node(c).Number == 1 {
			return Remark{Shape: "google.rpc.Status", Note: r.statusWord(c), P: oneStatusP}
		}
	}
	return Remark{}
}

// fieldMask returns the probability that node i is a google.protobuf.FieldMask: its strings are names of fields as
// protobuf writes them, some with several parts.
func (r *Reader) fieldMask(i int32) float64 {
	paths, words, steps := 0, false, false
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		if n.Number != 1 || n.Type != wire.Len && n.Type != wire.Message || !value.IsFieldPath(r.t.Payload(c)) {
			return 0
		}
		paths++
		words = words || bytes.IndexByte(r.t.Payload(c), '_') >= 0
		steps = steps || bytes.IndexByte(r.t.Payload(c), '.') >= 0
	}
	switch {
	case paths > 1 && words && steps:
		return 0.8
	case paths > 1 && words, paths > 1 && steps:
		return 0.5
	case paths == 1 && words && steps:
		return 0.45
	}
	return 0
}
