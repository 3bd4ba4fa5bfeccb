package filter

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
)

// Truth is the value of a condition. The zero value is Unknown.
type Truth int8

// The values are ordered: "and" is the least of both sides, "or" the greatest.
const (
	No      Truth = -1
	Unknown Truth = 0
	Yes     Truth = 1
)

// truthOf converts a bool.
func truthOf(b bool) Truth {
	if b {
		return Yes
	}
	return No
}

// Facts are groups of what is known of an exchange, which cost differently much to read.
type Facts uint8

const (
	// Head is what captures.Exchange has and a listing leaves out: headers, trailers, the
	// client's address and the source.
	Head Facts = 1 << iota

	// Notes are the notes and marks.
	Notes

	// Frames are the frames, so the bodies have to be decoded.
	Frames

	// Types are the definitions of frames.
	Types
)

// A Filter is a condition on exchanges and frames. It is safe for concurrent use.
type Filter struct {
	text string

	// frames is evaluated for one frame, exchanges for an exchange with all its frames.
	frames, exchanges *node

	// groups is how many nodes of exchanges are opSome.
	groups int
	needs  Facts
}

// String returns the text of the filter.
func (f *Filter) String() string { return f.text }

// Needs returns the facts that the filter depends on besides those of a listing.
func (f *Filter) Needs() Facts { return f.needs }

// An Exchange is what a filter is told of an exchange.
type Exchange struct {
	*captures.Exchange
	decode.Call

	// Code is the code of the call; "" if there is none, or none yet.
	Code                 string
	FramesUp, FramesDown int
	Notes                []captures.Note

	// Missing are the facts that are not known. Terms that depend on them are Unknown.
	Missing Facts

	// Now is the time to which an exchange that is in flight has lasted.
	Now time.Time
}

// A Frame is what a filter is told of a frame.
type Frame struct {
	*decode.Frame

	// Type is the definition of its message; nil if there is none.
	Type protoreflect.MessageDescriptor
}

// Frame evaluates the filter for a frame of an exchange.
func (f *Filter) Frame(x *Exchange, fr Frame) Truth {
	return f.frames.eval(evaluation{x: x, frame: &fr})
}

// Exchange evaluates the filter for an exchange without its frames: what depends on them
// is Unknown.
func (f *Filter) Exchange(x *Exchange) Truth {
	return f.exchanges.eval(evaluation{x: x})
}

// A Scan evaluates a filter for an exchange while its frames are read.
type Scan struct {
	f *Filter
	x *Exchange

	// found are the groups of terms, all of which one of the frames has matched.
	found []bool
}

// Scan begins the evaluation for an exchange.
func (f *Filter) Scan(x *Exchange) *Scan {
	return &Scan{f: f, x: x, found: make([]bool, f.groups)}
}

// Add tells the scan of the next frame.
func (s *Scan) Add(fr Frame) {
	s.f.exchanges.find(evaluation{x: s.x, frame: &fr}, s.found)
}

// Result returns the value of the filter. Unless all frames have been added, it is
// Unknown if it depends on the frames that have not.
func (s *Scan) Result(all bool) Truth {
	return s.f.exchanges.eval(evaluation{x: s.x, found: s.found, all: all})
}

// An operator says what a node is.
type operator uint8

const (
	opAnd operator = iota // also the empty filter, without operands
	opOr
	opNot
	opTerm
	opSome // some frame matches all operands, which are terms
)

// A node is a part of a condition.
type node struct {
	op       operator
	operands []*node
	term     *term
	group    int // of an opSome, its number
}

// An evaluation is what a condition is evaluated for.
type evaluation struct {
	x     *Exchange
	frame *Frame // nil for an exchange as a whole

	// found are the groups that a frame has matched, nil if none was read; all says that
	// there are no further frames.
	found []bool
	all   bool
}

func (n *node) eval(e evaluation) Truth {
	switch n.op {
	case opTerm:
		return n.term.eval(e)
	case opNot:
		return -n.operands[0].eval(e)
	case opSome:
		if e.found != nil && e.found[n.group] {
			return Yes
		}
		return noOrUnknown(e.all)
	}
	value := Yes
	if n.op == opOr {
		value = No
	}
	for _, o := range n.operands {
		if n.op == opOr {
			value = max(value, o.eval(e))
		} else {
			value = min(value, o.eval(e))
		}
		if n.op == opOr && value == Yes || n.op == opAnd && value == No {
			break
		}
	}
	return value
}

// noOrUnknown is the value of a condition that is not true so far: No if that is final.
func noOrUnknown(final bool) Truth {
	if final {
		return No
	}
	return Unknown
}

// find notes the groups that a frame matches.
func (n *node) find(e evaluation, found []bool) {
	if n.op != opSome {
		for _, o := range n.operands {
			o.find(e, found)
		}
		return
	}
	if found[n.group] {
		return
	}
	for _, o := range n.operands {
		if o.term.eval(e) != Yes {
			return
		}
	}
	found[n.group] = true
}

// forExchanges returns the condition for exchanges: terms of frames in one "and" become a
// group, which one frame has to match.
func forExchanges(n *node, groups *int) *node {
	some := func(terms []*node) *node {
		*groups++
		return &node{op: opSome, operands: terms, group: *groups - 1}
	}
	if n.op == opTerm {
		if n.term.ofFrame() {
			return some([]*node{n})
		}
		return n
	}
	out := &node{op: n.op}
	var terms []*node
	for _, o := range n.operands {
		if n.op == opAnd && o.op == opTerm && o.term.ofFrame() {
			terms = append(terms, o)
			continue
		}
		out.operands = append(out.operands, forExchanges(o, groups))
	}
	if len(terms) > 0 {
		out.operands = append(out.operands, some(terms))
	}
	return out
}

// needsOf returns the facts that a condition depends on.
func needsOf(n *node) (f Facts) {
	if n.op == opTerm {
		return n.term.needs()
	}
	for _, o := range n.operands {
		f |= needsOf(o)
	}
	return f
}
