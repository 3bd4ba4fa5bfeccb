package kind

import "unwire/decode/wire"

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
