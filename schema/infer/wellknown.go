package infer

import (
	"bytes"
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Full names of the well-known types that are recognised.
const (
	timestampType = "google.protobuf.Timestamp"
	durationType  = "google.protobuf.Duration"
	anyType       = "google.protobuf.Any"
	structType    = "google.protobuf.Struct"
	valueType     = "google.protobuf.Value"
	listType      = "google.protobuf.ListValue"
)

// Thresholds for well-known types.
const (
	// maxNanos is the maximum number of nanoseconds within a second.
	maxNanos = 999_999_999
	// leastNanos is the value that the largest number must reach for the numbers next to seconds to be
	// nanoseconds. Smaller numbers are mostly counts.
	leastNanos = 1_000_000
	// leastWellKnown is the probability from which on a well-known type is declared. It is high because the
	// declaration must fit future messages as well.
	leastWellKnown = 0.9
)

// recognise finds the classes (inferred message types) that are well-known types, such as Timestamp. The type of a
// request or response as a whole never is one.
func (g *graph) recognise() {
	reached := g.reachable()
	for _, c := range reached {
		// A root is never a well-known type, and of map entries only those that fit Timestamp are
		// considered.
		if c.root != "" || c.entry && !fitsTimestamp(c) {
			continue
		}
		switch {
		case isAny(c):
			c.known = wellKnown{anyType, "google/protobuf/any.proto", 0.99, ""}
		case fitsTimestamp(c):
			c.known = judgeTimestamp(c)
		case fitsDuration(c):
			c.known = judgeDuration(c)
		}
	}

	// A Struct and weaker resemblances are considered only for classes that are nothing else.
	g.wholeSeconds(reached)
	for _, c := range reached {
		if c.root == "" && c.known.name == "" && structEvidence(c, structDepth) >= leastStruct {
			nameStruct(c)
		}
	}

	// Last, undo a declaration that some sample contradicts.
	for _, c := range reached {
		if c.known.written() && !c.readableAs(knownDescriptors[c.known.name]) {
			c.known = wellKnown{}
		}
	}
	for _, c := range reached {
		if c.root == "" && !c.entry && c.known.name == "" {
			c.known = c.noteResemblance()
		}
	}
}

// wholeSeconds recognizes messages that consist only of the seconds of a Timestamp. Nothing else is as likely
// if the file has other timestamps or if there are several messages. reached are the classes of the file.
func (g *graph) wholeSeconds(reached []*class) {
	others := false
	for _, c := range reached {
		others = others || c.known.name == timestampType && c.known.written()
	}
	for _, c := range reached {
		if sec := c.varintsOf(1); c.root == "" && c.hasOnly(1) && sec != nil && sec.Epoch == sec.N && sec.N == c.samples {
			c.known = wellKnown{timestampType, "google/protobuf/timestamp.proto", 0.85, "May be a google.protobuf.Timestamp of whole seconds."}
			if others || c.distinctSamples >= 3 {
				c.known.p = 0.92
			}
		}
	}
}

// written reports whether the class is declared as the well-known type k.
func (k wellKnown) written() bool { return k.name != "" && k.file != "" && k.p >= leastWellKnown }

// hasOnly reports whether the class has only fields with these numbers, each at most once in a message and with
// a single wire type.
func (c *class) hasOnly(numbers ...int32) bool {
	if len(c.numbers) > len(numbers) {
		return false
	}
	for _, n := range c.numbers {
		f := c.fields[n]
		found := false
		for _, m := range numbers {
			found = found || m == n
		}
		if !found || f.Most > 1 || f.judgement.Odd > 0 || f.groupClass != nil {
			return false
		}
	}
	return true
}

// varintsOf returns the statistics of field n if all its values are varints, or nil.
func (c *class) varintsOf(n int32) *kind.Varints {
	f := c.fields[n]
	if f == nil || f.judgement.Kind != wire.KindVarint || f.Varint == nil || f.Varint.N != f.Occurs {
		return nil
	}
	return f.Varint
}

// fitsTimestamp reports whether all messages can be a Timestamp: seconds of a plausible date, and nanoseconds.
func fitsTimestamp(c *class) bool {
	sec, nano := c.varintsOf(1), c.varintsOf(2)
	return c.hasOnly(1, 2) && sec != nil && nano != nil && sec.Epoch == sec.N && nano.Negative == 0 && nano.Max <= maxNanos
}

// judgeTimestamp returns the probability that a class that fits is a Timestamp. Zero nanoseconds are omitted,
// and most others need more than 20 bits.
func judgeTimestamp(c *class) wellKnown {
	nano := c.fields[2].Varint
	k := wellKnown{timestampType, "google/protobuf/timestamp.proto", 0.97, ""}
	large := float64(countBits(nano, 20)) / float64(max(nano.N-nano.Zero, 1))
	switch {
	// A proto3 writer omits zeros.
	case nano.Zero > 0:
		k.p, k.note = 0.6, "Looks like seconds since 1970 and nanoseconds; a google.protobuf.Timestamp would omit their zeros."
	case nano.Max < leastNanos || large < 0.5:
		k.p, k.note = 0.4, "May be seconds since 1970 and nanoseconds."
	case nano.N > 2:
		k.p = 0.99
	}
	return k
}

// countBits returns the number of values whose length in bits is greater than more.
func countBits(s *kind.Varints, more int) (n int64) {
	for size, count := range s.Bits {
		if size > more {
			n += count
		}
	}
	return n
}

// fitsDuration reports whether all messages can be a Duration: seconds and nanoseconds with the same sign.
func fitsDuration(c *class) bool {
	nano := c.varintsOf(2)
	if !c.hasOnly(1, 2) || nano == nil || nano.Max > maxNanos || nano.Lowest < -maxNanos || max(nano.Max, uint64(-nano.Lowest)) < leastNanos {
		return false
	}
	if c.fields[1] == nil {
		// The duration is less than a second.
		return true
	}
	// The greatest duration that protobuf allows: 10,000 years in seconds.
	const most = 315_576_000_000
	sec := c.varintsOf(1)
	return sec != nil && sec.Max <= most && sec.Lowest >= -most && (nano.Lowest == 0 || sec.Lowest < 0 || sec.N < nano.N)
}

// judgeDuration returns the probability that a class that fits is a Duration and not two unrelated numbers.
// Nanoseconds within a second mostly need 27 or more bits, or are multiples of a microsecond.
func judgeDuration(c *class) wellKnown {
	nano := c.fields[2].Varint
	n := float64(nano.N)
	distinct := n
	if !nano.Values.Full {
		distinct = float64(len(nano.Values.Items))
	}

	// The prior is low: most messages of two numbers are something else.
	odds := -3.0
	if nano.Zero > 0 {
		odds -= 4
	}
	if c.fields[1] == nil {
		odds -= 3
	}

	// 87 % of the numbers below a billion are at least 2^27, about 134 million.
	top := float64(countBits(nano, 27)) / n
	odds += min(distinct, 20) * (top*math.Log(0.87/0.15) + (1-top)*math.Log(0.13/0.85))
	round := float64(nano.Micros) / max(float64(nano.Nanos), 1)
	odds = max(odds, -3+min(distinct, 20)*(round*math.Log(0.9/0.03)+(1-round)*math.Log(0.1/0.97)))
	k := wellKnown{durationType, "google/protobuf/duration.proto", probability(odds), ""}
	if k.p > 0.3 {
		k.note = "May be seconds and nanoseconds."
	}
	return k
}

// probability converts log-odds in nats to a probability of at most 0.995.
func probability(odds float64) float64 { return round(0.995 / (1 + math.Exp(-odds))) }

// isAny reports whether all messages can be a google.protobuf.Any: a type URL, and bytes.
func isAny(c *class) bool {
	url := c.fields[1]
	if !c.hasOnly(1, 2) || url == nil || url.Len == nil || url.Len.NotText || url.Len.N != url.Occurs || !bytes.HasPrefix(url.Len.Prefix, []byte("type.googleapis.com/")) {
		return false
	}
	value := c.fields[2]
	return value == nil || value.Len != nil && value.Len.N == value.Occurs
}

// Evidence, in nats, that messages are a google.protobuf.Struct, a Value or a ListValue, from the fields that Value
// has. The numbers were chosen by hand on the tuning corpora.
const (
	// leastStruct is the minimum evidence for declaring messages as Struct.
	leastStruct = 2.0
	// fieldOfValue is the evidence from any field that Value has, if all values fit.
	fieldOfValue = 0.5
	// alternatives is the evidence from several fields of which no message has two.
	alternatives = 1.0
	// zeroOfValue is the evidence from zeros of null_value or bool_value, which most messages omit.
	zeroOfValue = 1.0
	// doubleOfValue is the evidence from number_value, since few messages have fixed numbers.
	doubleOfValue = 1.0
	// structDepth is the number of nested Struct and ListValue messages that are examined.
	structDepth = 4
)

// structEvidence returns the evidence, in nats, that the messages of a class are a google.protobuf.Struct: map
// entries of a text and a Value. It is 0 if some message cannot be one. depth is the number of levels to examine.
func structEvidence(c *class, depth int) float64 {
	value := valueOfStruct(c)
	if value == nil {
		return 0
	}
	return valueEvidenceOf(value, depth)
}

// valueOfStruct returns the class of the values if the messages of class c are map entries of a text and a
// message, as in google.protobuf.Struct, or nil.
func valueOfStruct(c *class) *class {
	f := c.fields[1]
	if len(c.numbers) != 1 || c.root != "" || f == nil || f.childClass == nil || !f.isMessage() || f.judgement.Odd > 0 || f.Len.NotMap {
		return nil
	}
	entry := f.childClass.find()
	if !entry.hasOnly(1, 2) || entry.fields[1] == nil || entry.fields[2] == nil {
		return nil
	}
	key, value := entry.fields[1], entry.fields[2]
	if key.judgement.Kind != wire.KindString || value.childClass == nil || !value.isMessage() {
		return nil
	}
	return value.childClass.find()
}

// valueOfList returns the class of the elements if the messages of class c have only a list of messages, as
// google.protobuf.ListValue has, or nil.
func valueOfList(c *class) *class {
	f := c.fields[1]
	if len(c.numbers) != 1 || c.root != "" || f == nil || f.childClass == nil || !f.isMessage() || f.judgement.Odd > 0 {
		return nil
	}
	return f.childClass.find()
}

// valueEvidenceOf returns the evidence, in nats, that the messages of class v are a google.protobuf.Value: each
// has at most one of its fields. It is 0 if some message cannot be one. depth is as in structEvidence.
func valueEvidenceOf(v *class, depth int) float64 {
	if len(v.numbers) == 0 || v.root != "" || !v.hasOnly(1, 2, 3, 4, 5, 6) || !isExclusive(v) {
		return 0
	}
	sum := 0.0
	for _, n := range v.numbers {
		e := evidenceOfValueField(n, v.fields[n], depth)
		if e == 0 {
			return 0
		}
		sum += e
	}
	if len(v.numbers) > 1 {
		sum += alternatives
	}
	return sum
}

// evidenceOfValueField returns the evidence, in nats, that f is field n of google.protobuf.Value. It is 0 if it
// cannot be. depth is as in structEvidence.
func evidenceOfValueField(n int32, f *classField, depth int) float64 {
	switch n {
	// null_value
	case 1:
		if f.judgement.Kind == wire.KindVarint && f.Varint.Max == 0 {
			return fieldOfValue + zeroOfValue
		}
	// number_value
	case 2:
		if f.judgement.Kind == wire.KindFixed64 {
			return fieldOfValue + doubleOfValue
		}
	// string_value
	case 3:
		if f.Len != nil && !f.Len.NotText && f.Len.N == f.Occurs {
			return fieldOfValue
		}
	// bool_value
	case 4:
		if f.judgement.Kind == wire.KindVarint && f.Varint.Max <= 1 && f.Varint.Negative == 0 {
			if f.Varint.Zero > 0 {
				return fieldOfValue + zeroOfValue
			}
			return fieldOfValue
		}
	case 5, 6:
		return evidenceOfNestedValue(n, f, depth)
	}
	return 0
}

// evidenceOfNestedValue is evidenceOfValueField for struct_value and list_value, which may be empty.
func evidenceOfNestedValue(n int32, f *classField, depth int) float64 {
	if f.Len == nil || f.Len.Longest > 0 && f.childClass == nil {
		return 0
	}
	if f.Len.Longest == 0 || depth == 0 {
		return fieldOfValue
	}
	if n == 5 {
		return structEvidence(f.childClass.find(), depth-1)
	}
	if value := valueOfList(f.childClass.find()); value != nil {
		return valueEvidenceOf(value, depth-1)
	}
	return 0
}

// joinStructs merges the classes that are google.protobuf.Struct, Value and ListValue. Their places have different
// fields in common by chance, since each Value has one of six, so that similarity often does not find them. One
// Struct for which the evidence is sufficient makes it likely that weaker ones are Structs, too, and so do several
// weak ones whose values have different fields.
func (g *graph) joinStructs() {
	var best *class
	most, fields := 0.0, map[int32]float64{}
	for _, n := range g.nodes {
		c := n.class.find()
		e := structEvidence(c, structDepth)
		if e == 0 {
			continue
		}
		if e > most {
			best, most = c, e
		}
		value := valueOfStruct(c)
		for _, number := range value.numbers {
			fields[number] = max(fields[number], evidenceOfValueField(number, value.fields[number], structDepth))
		}
	}
	together := 0.0
	for _, e := range fields {
		together += e
	}
	if len(fields) > 1 {
		together += alternatives
	}
	if best == nil || max(most, together) < leastStruct {
		return
	}
	for _, n := range g.nodes {
		if c := n.class.find(); structEvidence(c, structDepth) > 0 {
			g.joinCompatible(best.find(), c)
		}
	}

	// Values and lists of values also occur outside of a Struct.
	value := valueOfStruct(best.find())
	for _, n := range g.nodes {
		if c := n.class.find(); value != nil && valueEvidenceOf(c, structDepth) > leastStruct {
			g.joinCompatible(value.find(), c)
		}
	}
	var list *class
	for _, n := range g.nodes {
		if c := n.class.find(); value != nil && valueOfList(c) == value.find() {
			if list == nil {
				list = c
			}
			g.joinCompatible(list.find(), c)
		}
	}
}

// nameStruct marks the class c as google.protobuf.Struct, and the classes of its values and lists as Value and
// ListValue.
func nameStruct(c *class) {
	const file = "google/protobuf/struct.proto"
	c.known = wellKnown{structType, file, 0.97, ""}
	v := c.fields[1].childClass.find().fields[2].childClass.find()
	v.known = wellKnown{valueType, file, 0.97, ""}
	if l := v.fields[6]; l != nil && l.childClass != nil && l.childClass.find().root == "" {
		l.childClass.find().known = wellKnown{listType, file, 0.97, ""}
	}
	if s := v.fields[5]; s != nil && s.childClass != nil && s.childClass.find().root == "" {
		s.childClass.find().known = wellKnown{structType, file, 0.97, ""}
	}
}

// round rounds a probability to four decimals.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }

// knownDescriptors are the well-known types that may be declared, by full name.
var knownDescriptors = map[string]protoreflect.MessageDescriptor{
	timestampType: (*timestamppb.Timestamp)(nil).ProtoReflect().Descriptor(),
	durationType:  (*durationpb.Duration)(nil).ProtoReflect().Descriptor(),
	anyType:       (*anypb.Any)(nil).ProtoReflect().Descriptor(),
	structType:    (*structpb.Struct)(nil).ProtoReflect().Descriptor(),
	valueType:     (*structpb.Value)(nil).ProtoReflect().Descriptor(),
	listType:      (*structpb.ListValue)(nil).ProtoReflect().Descriptor(),
}

// readableAs reports whether the message type md decodes all recorded messages of the class without unknown
// fields, and encodes them to the same bytes.
func (c *class) readableAs(md protoreflect.MessageDescriptor) bool {
	return md != nil && c.readable(md, map[readingPair]bool{})
}

// A readingPair is a class with a message type that is compared with it.
type readingPair struct {
	// c is the class of recorded messages.
	c *class
	// md is the declared message type.
	md protoreflect.MessageDescriptor
}

// readable does the work of readableAs. done has the pairs that are being compared, because types can be
// recursive.
func (c *class) readable(md protoreflect.MessageDescriptor, done map[readingPair]bool) bool {
	c = c.find()
	at := readingPair{c, md}
	if done[at] {
		return true
	}
	done[at] = true
	if c.isCut() {
		return false
	}
	for _, n := range c.numbers {
		f, fd := c.fields[n], md.Fields().ByNumber(protoreflect.FieldNumber(n))
		if fd == nil || f.groupClass != nil || f.judgement.Odd > 0 || f.Most > 1 && !fd.IsList() && !fd.IsMap() {
			return false
		}
		implicit := !fd.HasPresence() && !fd.IsList() && !fd.IsMap() && !md.IsMapEntry()
		if implicit && countZeros(f.Field, f.judgement.Kind) > 0 || fd.IsMap() && f.Len != nil && f.Len.NotMap {
			return false
		}
		if !f.readableField(fd, done) {
			return false
		}
	}
	return true
}

// readableField reports whether the declared field fd decodes all values of f. done is as in readable.
func (f *classField) readableField(fd protoreflect.FieldDescriptor, done map[readingPair]bool) bool {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		if f.Len == nil || f.Len.N != f.Occurs {
			return false
		}
		return f.Len.Longest == 0 || f.childClass != nil && f.childClass.readable(fd.Message(), done)
	case protoreflect.StringKind:
		return f.Len != nil && f.Len.N == f.Occurs && !f.Len.NotText
	case protoreflect.BytesKind:
		return f.Len != nil && f.Len.N == f.Occurs
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return f.Fixed64 != nil && f.Fixed64.N == f.Occurs
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return f.Fixed32 != nil && f.Fixed32.N == f.Occurs
	}
	return f.Varint != nil && f.Varint.N == f.Occurs && inRange(f.Varint, fd.Kind())
}

// inRange reports whether a numeric type can represent all values.
func inRange(s *kind.Varints, k protoreflect.Kind) bool {
	switch k {
	case protoreflect.BoolKind:
		return s.Max <= 1 && s.Negative == 0
	case protoreflect.Int32Kind, protoreflect.EnumKind:
		return (s.Max <= math.MaxInt32 || s.Negative == s.N) && s.Lowest >= math.MinInt32
	case protoreflect.Uint32Kind:
		return s.Max <= math.MaxUint32 && s.Negative == 0
	}
	return true
}
