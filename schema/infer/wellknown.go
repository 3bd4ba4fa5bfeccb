package infer

import (
	"bytes"
	"math"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A wellKnown is a type of protobuf's own that a class is taken for.
type wellKnown struct {
	name, file string
	p          float64

	// where it is not sure enough to be written, what is said of it
	note string
}

const (
	timestampType = "google.protobuf.Timestamp"
	durationType  = "google.protobuf.Duration"
	anyType       = "google.protobuf.Any"
	structType    = "google.protobuf.Struct"
	valueType     = "google.protobuf.Value"
	listType      = "google.protobuf.ListValue"
)

const (
	maxNanos = 999_999_999
	// Nanoseconds are written as such where some are more than a million: smaller
	// numbers beside a time are mostly counts.
	leastNanos = 1_000_000
	// How sure a type must be to be written, as every sample fits it.
	leastWellKnown = 0.9
)

// recognise finds the well-known types among the classes that are no roots.
func (g *graph) recognise() {
	reached := g.reached()
	for _, c := range reached {
		if c.root != "" || c.entry && !isMoment(c) {
			continue
		}
		switch {
		case isAny(c):
			c.known = wellKnown{anyType, "google/protobuf/any.proto", 0.99, ""}
		case isMoment(c):
			c.known = judgeTimestamp(c)
		case fitsDuration(c):
			c.known = judgeDuration(c)
		}
	}
	g.wholeSeconds(reached)
	for _, c := range reached {
		if c.root == "" && c.known.name == "" && isStruct(c) {
			nameStruct(c)
		}
	}
	for _, c := range reached {
		if c.root == "" && !c.entry && c.known.name == "" {
			c.known = c.noteResemblance()
		}
	}
}

// wholeSeconds takes messages of nothing but the seconds of a time for
// timestamps: where others are, and where there are some samples, nothing else
// is as likely.
func (g *graph) wholeSeconds(reached []*class) {
	others := false
	for _, c := range reached {
		others = others || c.known.name == timestampType && c.known.written()
	}
	for _, c := range reached {
		if sec := c.varintsOf(1); c.root == "" && c.only(1) && sec != nil && sec.Epoch == sec.N && sec.N == c.samples {
			c.known = wellKnown{timestampType, "google/protobuf/timestamp.proto", 0.85, "May be a google.protobuf.Timestamp of whole seconds."}
			if others || c.novel >= 3 {
				c.known.p = 0.92
			}
		}
	}
}

// written reports whether the class is written as a type of protobuf's own.
func (k wellKnown) written() bool { return k.name != "" && k.file != "" && k.p >= leastWellKnown }

// only reports whether the class has no fields but these, each at most once in a
// message and with no value of another wire type.
func (c *class) only(numbers ...int32) bool {
	if len(c.numbers) > len(numbers) {
		return false
	}
	for _, n := range c.numbers {
		f := c.fields[n]
		found := false
		for _, m := range numbers {
			found = found || m == n
		}
		if !found || f.Most > 1 || f.judgement.Odd > 0 || f.group != nil {
			return false
		}
	}
	return true
}

// varintsOf returns the varints of a field that has nothing else.
func (c *class) varintsOf(n int32) *kind.Varints {
	f := c.fields[n]
	if f == nil || f.judgement.Kind != wire.KindVarint || f.Varint == nil || f.Varint.N != f.Occurs {
		return nil
	}
	return f.Varint
}

// isMoment reports whether all samples fit seconds since 1970 and nanoseconds.
func isMoment(c *class) bool {
	sec, nano := c.varintsOf(1), c.varintsOf(2)
	return c.only(1, 2) && sec != nil && nano != nil && sec.Epoch == sec.N && nano.Negative == 0 && nano.Max <= maxNanos
}

// judgeTimestamp weighs a moment: nanoseconds are large, or round.
func judgeTimestamp(c *class) wellKnown {
	nano := c.fields[2].Varint
	k := wellKnown{timestampType, "google/protobuf/timestamp.proto", 0.97, ""}
	large := float64(countBits(nano, 20)) / float64(max(nano.N-nano.Zero, 1))
	switch {
	case nano.Zero > 0: // zeros that were written out: not by a writer of proto3
		k.p, k.note = 0.6, "Reads as seconds since 1970 and nanoseconds, whose zeros google.protobuf.Timestamp would leave out."
	case nano.Max < leastNanos || large < 0.5:
		k.p, k.note = 0.4, "May be seconds since 1970 and nanoseconds."
	case nano.N > 2:
		k.p = 0.99
	}
	return k
}

// countBits counts the values of more than so many bits.
func countBits(s *kind.Varints, more int) (n int64) {
	for size, count := range s.Bits {
		if size > more {
			n += count
		}
	}
	return n
}

// fitsDuration reports whether all samples fit seconds and nanoseconds of the same sign.
func fitsDuration(c *class) bool {
	nano := c.varintsOf(2)
	if !c.only(1, 2) || nano == nil || nano.Max > maxNanos || nano.Lowest < -maxNanos || max(nano.Max, uint64(-nano.Lowest)) < leastNanos {
		return false
	}
	if c.fields[1] == nil {
		return true // of less than a second
	}
	const most = 315_576_000_000 // seconds of 10,000 years
	sec := c.varintsOf(1)
	return sec != nil && sec.Max <= most && sec.Lowest >= -most && (nano.Lowest == 0 || sec.Lowest < 0 || sec.N < nano.N)
}

// judgeDuration weighs a span against two numbers: nanoseconds below a second
// are mostly of the two topmost sizes that they can have, or round.
func judgeDuration(c *class) wellKnown {
	nano := c.fields[2].Varint
	n := float64(nano.N)
	distinct := n
	if !nano.Values.Full {
		distinct = float64(len(nano.Values.Items))
	}
	odds := -3.0
	if nano.Zero > 0 {
		odds -= 4
	}
	if c.fields[1] == nil {
		odds -= 3
	}
	// 134 million and more: 87 of 100 nanoseconds
	top := float64(countBits(nano, 27)) / n
	odds += min(distinct, 20) * (top*math.Log(0.87/0.15) + (1-top)*math.Log(0.13/0.85))
	round := float64(nano.Micros) / max(float64(nano.Nanos), 1)
	odds = max(odds, -3+min(distinct, 20)*(round*math.Log(0.9/0.03)+(1-round)*math.Log(0.1/0.97)))
	k := wellKnown{durationType, "google/protobuf/duration.proto", round4(odds), ""}
	if k.p > 0.3 {
		k.note = "May be seconds and nanoseconds."
	}
	return k
}

func round4(odds float64) float64 { return round(0.995 / (1 + math.Exp(-odds))) }

// isAny reports whether every sample has the address of a type, and its bytes.
func isAny(c *class) bool {
	url := c.fields[1]
	if !c.only(1, 2) || url == nil || url.Len == nil || url.Len.NotText || url.Len.N != url.Occurs || !bytes.HasPrefix(url.Len.Prefix, []byte("type.googleapis.com/")) {
		return false
	}
	value := c.fields[2]
	return value == nil || value.Len != nil && value.Len.N == value.Occurs
}

// isStruct reports whether c is entries of text and values, each of one kind of
// JSON's, of which two kinds at least were seen.
func isStruct(c *class) bool {
	f := c.fields[1]
	if len(c.numbers) != 1 || f == nil || f.kid == nil || f.judgement.Kind != wire.KindMessage || f.judgement.Odd > 0 || f.Len.NotMap {
		return false
	}
	entry := c.fields[1].kid.find()
	if !entry.only(1, 2) || entry.fields[1] == nil || entry.fields[2] == nil {
		return false
	}
	key, value := entry.fields[1], entry.fields[2]
	return key.judgement.Kind == wire.KindString && value.kid != nil && value.judgement.Kind == wire.KindMessage && isValue(value.kid.find(), c)
}

// isValue reports whether v has always exactly one of a Value's fields, and has
// had two of them.
func isValue(v, of *class) bool {
	if !v.only(1, 2, 3, 4, 5, 6) || len(v.numbers) < 2 || v.root != "" {
		return false
	}
	var seen int64
	for _, n := range v.numbers {
		f := v.fields[n]
		seen += f.Seen
		if !isFieldOfValue(n, f, v, of) {
			return false
		}
	}
	return seen == v.samples
}

// isFieldOfValue reports whether f can be field n of a Value v in the Struct of.
func isFieldOfValue(n int32, f *classField, v, of *class) bool {
	switch n {
	case 1: // null_value
		return f.judgement.Kind == wire.KindVarint && f.Varint.Max == 0
	case 2: // number_value
		return f.judgement.Kind == wire.KindFixed64
	case 3: // string_value
		return f.Len != nil && !f.Len.NotText && f.Len.N == f.Occurs
	case 4: // bool_value
		return f.judgement.Kind == wire.KindVarint && f.Varint.Max <= 1 && f.Varint.Negative == 0
	case 5: // struct_value, which may be empty
		return f.Len != nil && (f.Len.Longest == 0 || f.kid != nil && (f.kid.find() == of || structLike(f.kid.find(), v)))
	case 6: // list_value
		return f.Len != nil && (f.Len.Longest == 0 || f.kid != nil && listLike(f.kid.find(), v))
	}
	return false
}

func structLike(c, v *class) bool {
	if len(c.numbers) != 1 || c.fields[1] == nil || c.fields[1].kid == nil {
		return false
	}
	e := c.fields[1].kid.find()
	return e.only(1, 2) && e.fields[2] != nil && e.fields[2].kid != nil && valueLike(e.fields[2].kid.find(), v)
}

func listLike(c, v *class) bool {
	return len(c.numbers) == 1 && c.fields[1] != nil && c.fields[1].kid != nil && valueLike(c.fields[1].kid.find(), v)
}

// valueLike reports whether c may be a Value as v is: it has fields of such only.
func valueLike(c, v *class) bool {
	if c == v {
		return true
	}
	for _, n := range c.numbers {
		if n > 6 || v.fields[n] != nil && v.fields[n].judgement.Kind != c.fields[n].judgement.Kind && v.fields[n].kid == nil {
			return false
		}
	}
	return c.only(1, 2, 3, 4, 5, 6)
}

// nameStruct marks a Struct, its values and their lists.
func nameStruct(c *class) {
	const file = "google/protobuf/struct.proto"
	c.known = wellKnown{structType, file, 0.97, ""}
	v := c.fields[1].kid.find().fields[2].kid.find()
	v.known = wellKnown{valueType, file, 0.97, ""}
	if l := v.fields[6]; l != nil && l.kid != nil && l.kid.find().root == "" {
		l.kid.find().known = wellKnown{listType, file, 0.97, ""}
	}
	if s := v.fields[5]; s != nil && s.kid != nil && s.kid.find().root == "" {
		s.kid.find().known = wellKnown{structType, file, 0.97, ""}
	}
}

// round keeps four digits of a probability.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
