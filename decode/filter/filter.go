package filter

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
)

// Truth is the value of a condition in three-valued logic: Yes, No or Unknown. The zero value is Unknown.
type Truth int8

// The values of Truth. They are ordered: "and" is the minimum of both sides, "or" the maximum.
const (
	// No means that the condition is false for the exchange or frame.
	No Truth = -1

	// Unknown means that the condition depends on facts that are not known yet.
	Unknown Truth = 0

	// Yes means that the condition is true for the exchange or frame.
	Yes Truth = 1
)

// truthOf converts a bool to Yes or No.
func truthOf(b bool) Truth {
	if b {
		return Yes
	}
	return No
}

// Facts is a set of groups of properties of an exchange, e.g. Notes or Frames. The groups differ in the cost of
// reading them.
type Facts uint8

const (
	// Head are the parts of captures.Exchange that a listing omits: headers, trailers, the client's address and
	// the source.
	Head Facts = 1 << iota

	// Notes are notes and marks.
	Notes

	// Frames are the frames, which require decoding of bodies.
	Frames

	// Types are the definitions (message descriptors) of the frames' messages.
	Types
)

// A Filter is a condition on exchanges and frames. It is safe for concurrent use.
type Filter struct {
	// text is the source text of the filter.
	text string

	// frames is the condition that a single frame must meet, and exchanges the one for an exchange with
	// all its frames.
	frames, exchanges *node

	// groups is the number of opSome nodes in exchanges: conditions that at least one frame must meet.
	groups int

	// needs are the groups of properties, such as notes or decoded frames, that must be read to evaluate the
	// filter.
	needs Facts
}

// String returns the source text of the filter.
func (f *Filter) String() string { return f.text }

// Needs returns the facts that the filter depends on, in addition to those of a listing.
func (f *Filter) Needs() Facts { return f.needs }

// An Exchange holds the properties of an exchange that a filter can examine.
type Exchange struct {
	// Exchange is the exchange's metadata, such as its URL, headers and times.
	*captures.Exchange

	// Call adds the protocol, the codec and the method that were called.
	decode.Call

	// Code is the status code of the call; "" if it has none (yet).
	Code string

	// FramesUp and FramesDown are the numbers of frames by direction.
	FramesUp, FramesDown int

	// Notes are the notes and marks on the exchange.
	Notes []captures.Note

	// Edited means that a rule changed the forwarded traffic.
	Edited bool

	// Missing are the facts that are not available. Terms that depend on them are Unknown.
	Missing Facts

	// Now is the current time, until which the duration of an exchange that has not ended is counted.
	Now time.Time
}

// A Frame holds the properties of a frame that a filter can examine.
type Frame struct {
	// Frame is the decoded frame.
	*decode.Frame

	// Type is the definition of the frame's message, or nil.
	Type protoreflect.MessageDescriptor
}

// Frame evaluates the filter for a frame of an exchange.
func (f *Filter) Frame(x *Exchange, fr Frame) Truth {
	return f.frames.eval(evaluation{x: x, frame: &fr})
}

// Exchange evaluates the filter for an exchange without its frames. Terms of frames are Unknown.
func (f *Filter) Exchange(x *Exchange) Truth {
	return f.exchanges.eval(evaluation{x: x})
}

// A Scan evaluates a filter for one exchange while its frames are read.
type Scan struct {
	// f is the filter that is evaluated.
	f *Filter

	// x has the properties of the exchange for which the filter is evaluated.
	x *Exchange

	// found has, for each opSome node of the filter, whether one of the frames so far has met its condition.
	found []bool
}

// Scan starts the evaluation of the filter for an exchange.
func (f *Filter) Scan(x *Exchange) *Scan {
	return &Scan{f: f, x: x, found: make([]bool, f.groups)}
}

// Add evaluates the filter for the exchange's next frame.
func (s *Scan) Add(fr Frame) {
	s.f.exchanges.find(evaluation{x: s.x, frame: &fr}, s.found)
}

// Result returns the value of the filter. all means that all frames have been added. Otherwise the result is
// Unknown if further frames may change it.
func (s *Scan) Result(all bool) Truth {
	return s.f.exchanges.eval(evaluation{x: s.x, found: s.found, all: all})
}

// An operator is the logical operator of a node: and, or, not, some.
type operator uint8

const (
	// opAnd is also the empty filter, which has no operands.
	opAnd operator = iota
	opOr
	opNot
	opTerm

	// opSome is true if one frame matches all operands, which are terms.
	opSome
)

// A node is a part of a filter's condition: an operator with operands, or a single term.
type node struct {
	// op is the operator that combines the operands.
	op operator

	// operands are the conditions that op combines; nil for a leaf.
	operands []*node

	// term is the single comparison, such as status:200, of which a leaf consists; nil for an operator.
	term *term

	// group is the index of an opSome node in the found slices, in which matching frames are recorded.
	group int
}

// An evaluation is the exchange, or the frame, for which a condition is evaluated.
type evaluation struct {
	// x is the exchange.
	x *Exchange

	// frame is the examined frame; nil for the exchange as a whole.
	frame *Frame

	// found reports, for each group (a condition that at least one frame must meet), whether a frame has met it;
	// nil if no frame was read.
	found []bool

	// all means that no further frames follow, so that a group that is not in found is false. Otherwise it is
	// unknown.
	all bool
}

// eval evaluates the condition, with three possible results.
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
	// Stop as soon as the result is certain.

	// Conjunction and disjunction: the minimum and the maximum.
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

// noOrUnknown returns the value of a condition that was not met so far: No if that is final, otherwise Unknown.
func noOrUnknown(final bool) Truth {
	if final {
		return No
	}
	return Unknown
}

// find sets found for the opSome nodes below n whose condition the frame e.frame meets.
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

// forExchanges converts a condition on a frame to one on an exchange: terms about frames in one "and" become an
// opSome node, which a single frame must meet. groups counts these nodes.
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

	// Collect the terms of frames. Other operands are converted on their own.
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
