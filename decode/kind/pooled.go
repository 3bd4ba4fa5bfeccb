package kind

import "unwire/decode/wire"

// A Pooled message is evidence that many Readers judge by: what it says of a
// field is worked out once. It is not for several goroutines at once.
type Pooled struct {
	m      *Message
	costs  Costs
	judged map[*Field]*judged // of all fields of m
}

// NewPooled returns m, which may be nil, to be shared. M must not change any more.
func NewPooled(m *Message) *Pooled {
	p := &Pooled{m: m, costs: Costs{}, judged: map[*Field]*judged{}}
	if m != nil {
		p.enter(m)
	}
	return p
}

func (p *Pooled) enter(m *Message) {
	for _, n := range m.Numbers() {
		f := m.Field(n)
		p.judged[f] = &judged{}
		for _, c := range f.Children() {
			p.enter(c)
		}
	}
}

// judgement is where a field of the evidence has its readings; of others it is nil.
func (p *Pooled) judgement(f *Field) *judged {
	if p == nil {
		return nil
	}
	return p.judged[f]
}

// NewReader is the package's NewReader by this evidence; a nil Pooled is none.
func (p *Pooled) NewReader(t *wire.Tree) *Reader {
	if p == nil {
		return NewReader(t, nil)
	}
	r := NewReader(t, p.m)
	r.shared = p
	return r
}
