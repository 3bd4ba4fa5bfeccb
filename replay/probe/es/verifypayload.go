package es

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
)

// A part is what of a claim a canary is about.
type part uint8

const (
	partClass   part = iota // how the value is consumed
	partLabel               // one number, or a list
	partInside              // in the message: the guard that would show a number
	partOutside             // around it
)

type mark struct {
	claim *claim
	part  part
}

// A layout is a payload while it is laid out.
type layout struct {
	marks []mark
	only  map[*claim]bool // nil: all
}

func (l *layout) mark(c *claim, p part) int {
	l.marks = append(l.marks, mark{c, p})
	return len(l.marks) - 1
}

func (l *layout) has(c *claim) bool { return c.Pending() && (l.only == nil || l.only[c]) }

// payload lays out what is still asked, or of it only some.
func (v *verifier) payload(only map[*claim]bool) ([]byte, []mark) {
	l := &layout{only: only}
	b := l.level(v.root)
	return probe.Wrap(v.o.Path, appendEnd(b, len(l.marks))), l.marks
}

// level lays out a message: first how each value is consumed, then what relies on it.
func (l *layout) level(of *level) []byte {
	var b []byte
	for _, c := range of.claims {
		if l.has(c) {
			b = appendReading(b, reading{c.Number, c.as}, l.mark(c, partClass))
		}
	}
	for _, c := range of.claims {
		switch {
		case !c.Pending():
		case c.IsMessage:
			b = l.message(b, c)
		case !l.has(c) || !c.IsNumber:
		case c.as == asVarint && !c.IsList:
			readings, weight := l.outerReadings(c)
			c.guarded = weight >= leastWeight
			b = appendSingleVarint(b, c.Number, l.mark(c, partLabel), readings)
		default:
			b = appendLabelTest(b, c.Number, c.as, c.IsList, l.mark(c, partLabel))
		}
	}
	return b
}

// message lays out what is in a message, with something that stumbles if the
// field is a number, and its fields are read as those around it.
func (l *layout) message(b []byte, c *claim) []byte {
	var inner []byte
	if c.below != nil {
		inner = l.level(c.below)
	}
	if l.has(c) {
		b, inner = l.guard(b, inner, c)
	}
	if !l.has(c) {
		if len(inner) == 0 {
			return b
		}
		b = protowire.AppendTag(b, protowire.Number(c.Number), protowire.BytesType)
		return protowire.AppendBytes(b, inner)
	}
	return appendUnlist(b, c.Number, l.mark(c, partLabel), inner)
}

// guard adds the first of these that was not tried: a field inside is read in
// another way than that of its number around; a number of the fields around is
// unknown inside; a number inside is unknown around.
func (l *layout) guard(b, inner []byte, c *claim) (outer, within []byte) {
	around := map[int32]*claim{}
	for _, k := range c.in.claims {
		if l.has(k) {
			around[k.Number] = k
		}
	}
	c.guarded = false
	skip := c.guards
	next := func() bool { skip--; return skip < 0 }

	if c.below != nil && !c.Descriptor.IsMap() {
		for _, k := range c.below.claims {
			if other := around[k.Number]; other != nil && l.has(k) && other.as != k.as && next() {
				c.guarded = true // their own parts show it
				return b, inner
			}
		}
	}
	for _, k := range c.in.claims {
		if around[k.Number] != nil && canBeUnknown(k, c.Descriptor.Message()) && next() {
			c.guarded = true
			return b, appendReading(inner, reading{k.Number, absent}, l.mark(c, partInside))
		}
	}
	if c.below == nil {
		return b, inner
	}
	for _, k := range c.below.claims {
		if l.has(k) && canBeUnknown(k, c.Descriptor.ContainingMessage()) && next() {
			c.guarded = true
			return appendReading(b, reading{k.Number, absent}, l.mark(c, partOutside)), inner
		}
	}
	return b, inner
}

// canBeUnknown reports whether a claim's number is unknown in a message, and
// shows where it is known. A number of 4 bytes is read alike in both.
func canBeUnknown(k *claim, in protoreflect.MessageDescriptor) bool {
	return k.as != asFixed32 && in.Fields().ByNumber(protowire.Number(k.Number)) == nil
}

// leastWeight is how much has to be alike in two messages for us to believe that
// they are one.
const leastWeight = 4

// outerReadings are those of the fields beside a number, and how unlikely it is
// that another message has the same: a varint counts for one, others for two.
func (l *layout) outerReadings(c *claim) (out []reading, weight int) {
	for _, numbers := range []bool{false, true} {
		for _, k := range c.in.claims {
			if k == c || !l.has(k) || k.Descriptor.IsMap() || (k.as == asVarint) != numbers || len(out) >= nearReadings {
				continue
			}
			if out = append(out, reading{k.Number, k.as}); numbers {
				weight++
			} else {
				weight += 2
			}
		}
	}
	return append(out, reading{c.Number, c.as}), weight
}

// appendSingleVarint is silent for one varint, whose following tags are those of
// the fields around it. A list reads on over the end of the value; a message
// stumbles unless it has the same fields.
func appendSingleVarint(b []byte, n int32, index int, readings []reading) []byte {
	var p []byte
	for _, r := range readings {
		p = appendReading(p, r, index)
	}
	return appendUnlist(b, n, index, p)
}
