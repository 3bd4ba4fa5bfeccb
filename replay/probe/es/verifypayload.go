package es

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
)

// A part is the aspect of a declaration that a canary tests.
type part uint8

const (
	// partClass: how the value is consumed
	partClass part = iota
	// partLabel: a single number or a list
	partLabel
	// partInside: in the message, the guard that would reveal a number
	partInside
	// partOutside: the guard around the message
	partOutside
)

// A mark is the expectation that one canary of a payload stands for: an aspect of a field's
// declaration.
type mark struct {
	// claim is the field.
	claim *claim

	// part is the aspect of the field's declaration.
	part part
}

// A layout builds the message that tests the declarations of several fields at once.
type layout struct {
	// marks are the expectations by the index of their canary.
	marks []mark
	// only restricts the payload to these fields; nil means all.
	only map[*claim]bool
}

// mark assigns the next canary to an aspect of a field, and returns the canary's index.
func (l *layout) mark(c *claim, p part) int {
	l.marks = append(l.marks, mark{c, p})
	return len(l.marks) - 1
}

// has reports whether the payload tests the field.
func (l *layout) has(c *claim) bool { return c.Pending() && (l.only == nil || l.only[c]) }

// payload returns a message that tests the declarations of all pending fields, or only of those in
// only. The marks say which expectation each canary (illegal tag) in the message stands for.
func (v *verifier) payload(only map[*claim]bool) ([]byte, []mark) {
	l := &layout{only: only}
	b := l.level(v.root)
	return probe.Wrap(v.o.Path, appendEnd(b, len(l.marks))), l.marks
}

// level returns the content of a message: first the tests of how each value is consumed, then the tests
// that rely on it.
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

// message appends the message field c, with a guard at which the parser stops if the field is a number,
// and its content is therefore read as fields of the outer message.
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

// guard adds the first of the following tests that was not tried for the field c, after which the
// parser stops unless c is a message: a field inside is read differently than the field of the same
// number outside; a number of the outer fields is unknown inside; a number inside is unknown outside. b
// is the payload so far, inner the content of the message.
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
				// their own tests serve as the guard
				c.guarded = true
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

// canBeUnknown reports whether a message type lacks the number of the field k, so that parsing the
// field in that message would be noticed. A fixed32 is read in the same way in both cases.
func canBeUnknown(k *claim, in protoreflect.MessageDescriptor) bool {
	return k.as != asFixed32 && in.Fields().ByNumber(protowire.Number(k.Number)) == nil
}

// leastWeight is the weight of common fields from which two messages are considered to be of the same
// type.
const leastWeight = 4

// outerReadings returns how fields of the message around c are read. weight measures how improbable it
// is that a message of another type reads them in the same way: 1 for each varint, 2 for each other
// field.
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

// appendSingleVarint appends a test at which the parser does not stop if field n is a single varint:
// the following tags are then fields of the surrounding message. If the field is a packed list, the
// parser reads beyond the end of the value; in a message it stops, unless that has the same fields.
func appendSingleVarint(b []byte, n int32, index int, readings []reading) []byte {
	var p []byte
	for _, r := range readings {
		p = appendReading(p, r, index)
	}
	return appendUnlist(b, n, index, p)
}
