package infer

import (
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
)

// Labels of fields, as written in JSON output.
const (
	// Singular is a field without explicit presence, or a member of a oneof.
	Singular = "singular"
	// Optional is a field with explicit presence.
	Optional = "optional"
	// Repeated is a field with several values in a message.
	Repeated = "repeated"
	// Map is a field of key-value entries.
	Map = "map"
)

// labelOf decides whether a field is singular, optional or repeated (not whether it is a map); p is the
// probability, from 0 to 1, that this is right. v is the kind of its values, and fresh the share of messages
// that are not copies of others.
//
// Two occurrences in one message prove that the field is repeated. If it never occurs twice, that is weak
// evidence against it, and weaker for messages, because most lists consist of messages. A zero on the wire
// shows explicit presence, because proto3 writers omit zeros otherwise.
func labelOf(f *kind.Field, v kind.Judgement, fresh float64, h conventions) (label string, p float64) {
	if v.Kind == wire.KindPacked {
		return Repeated, v.P
	}
	if f.Most > 1 {
		return Repeated, 0.998
	}
	repeated := repeatedP(v.Kind, float64(f.Seen)*fresh, h)
	if countZeros(f, v.Kind) > 0 {
		return Optional, round((1 - repeated) * writtenZero)
	}
	return Singular, round(1 - repeated)
}

// writtenZero is the probability that a field with zeros on the wire has explicit presence. It is below 1
// because some writers omit no zeros.
const writtenZero = 0.97

// repeatedP returns the probability that a field of kind k is repeated, although each of its n messages
// contains it only once. The constants are frequencies measured in the tuning corpora: the share of such fields
// that were lists. If no list in the file ever had two elements, n is no evidence.
func repeatedP(k wire.Kind, n float64, h conventions) float64 {
	// one is the probability after one message, all the probability if no list has two elements, and power the
	// exponent by which one decreases with n.
	one, all, power := 0.01, 0.015, 1.0
	switch k {
	case wire.KindMessage:
		one, all, power = 0.16, 0.33, 0.9
	case wire.KindString:
		one, all, power = 0.08, 0.1, 1.2
	case wire.KindBytes:
		one, all = 0.04, 0.04
	}
	if h.single {
		return all
	}
	return max(one/math.Pow(max(n, 1), power), minRepeatedP)
}

// minRepeatedP is the minimum of repeatedP, however often the field was seen only once in a message.
const minRepeatedP = 0.0005

// conventions describe how the programs that wrote the recorded messages encode them, as far as all fields
// together show it.
type conventions struct {
	// single is set if there are many fields and none ever occurs twice in a message. It is then no evidence
	// that one field does not.
	single bool
	// zeros is set if zeros are written as a rule, not only for explicit presence.
	zeros bool
	// order is set if fields are written in a consistent order.
	order bool
	// late is set if some fields are written after fields with greater numbers. The Go runtime does so for
	// oneofs.
	late bool
}

// conventions finds out how the programs that wrote the recorded messages encode them, e.g. whether they write
// zeros.
func (g *graph) conventions() conventions {
	fields, many, scalars, zeros := 0, 0, 0, 0
	out, of, order := 0, 0, true
	for _, c := range g.reachable() {

		// The Go runtime writes the members of oneofs behind the other fields. This is a convention of the file
		// only if not too many fields are out of order.
		late, ok := lateFields(c.numbers, func(n int32) *classField { return c.fields[n] })
		if order = order && ok; len(late) > 0 {
			of += len(c.numbers)
			for _, side := range late {
				out += max(side, 0)
			}
		}

		for _, n := range c.numbers {
			f := c.fields[n]
			fields++
			if f.Most > 1 {
				many++
			}
			if f.judgement.Kind != wire.KindMessage && f.judgement.Kind != wire.KindPacked && !c.entry {
				scalars++
				if countZeros(f.Field, f.judgement.Kind) > 0 {
					zeros++
				}
			}
		}
	}

	return conventions{single: fields >= 20 && many == 0, zeros: scalars >= 10 && 4*zeros > scalars, order: order && 3*out <= 2*of, late: out > 0}
}

// mapOdds returns the log-odds, in nats, that a repeated field of key-value pairs is a map. Unique keys with
// values occur in maps and in lists of named things. Zeros in entries and sorted keys are evidence for a map,
// because encoders of maps write both. Pairs of numbers are mostly ranges, except if the second is smaller or
// the pairs are unsorted.
func mapOdds(f *kind.Field, key, value *classField, h conventions) float64 {
	l := f.Len
	numbers := key.Len == nil && value.Len == nil
	zeros := countZeros(key.Field, key.judgement.Kind) + countZeros(value.Field, value.judgement.Kind)
	pairs := float64(l.Ascending + l.Descending)
	unsorted := float64(l.Descending) > 0.2*pairs
	odds := -0.3 + math.Min(0.15*float64(f.Occurs), 1.8)
	switch a, b := key.Varint, value.Varint; {
	case !numbers:
	case a != nil && b != nil && (b.Max < a.Max || b.Min < a.Min || b.Negative > 0) && f.Occurs > 4:
		odds -= 0.7
	default:
		odds -= 2.2
	}

	// Map encoders write the key and the value of an entry even if they are zero.
	if zeros > 0 && !h.zeros {
		odds += 2 + math.Min(0.5*float64(zeros), 2)
	}

	// Some encoders sort the keys of a map; others write them in hash order, which a list of numbers seldom has.
	switch {
	case l.Reordered():
		odds += 3
	case l.Descending == 0:
		odds += math.Min(0.5*pairs, 3)
	case unsorted && numbers && pairs > 4:
		odds += 1.2
	default:
		odds -= 0.2
	}
	return odds
}

// singleMapOdds is mapOdds for a field that never had more than one entry in a message. It weighs how common
// maps and messages of two fields are in the definitions of public modules. A map rarely has exactly one entry
// each time, unless the file has no longer lists at all. fresh is the share of messages that are not copies,
// and plain the share of keys that are also values of other fields: such texts are names rather than keys.
func singleMapOdds(f *kind.Field, fresh float64, key, value *classField, h conventions, plain float64) float64 {
	// The prior: most messages of two fields are not entries, except those with a string as the key.
	odds := -3.5
	if key.judgement.Kind == wire.KindString {
		switch value.judgement.Kind {
		case wire.KindString:
			odds = 0.2
		case wire.KindMessage:
			odds = -0.2
		default:
			odds = -2
		}
	}

	// Each message with one entry more makes a map less likely.
	if !h.single {
		odds -= 0.4 + 0.5*math.Log(max(float64(f.Seen)*fresh, 1))
	}
	if zeros := countZeros(key.Field, key.judgement.Kind) + countZeros(value.Field, value.judgement.Kind); zeros > 0 && !h.zeros {
		odds += 2 + math.Min(0.5*float64(zeros), 2)
	}
	if plain > 0 {
		return odds - keyElsewhere*plain
	}
	return odds + keyNowhere
}

// Evidence, in nats, for or against a map from whether its keys also occur as texts in other fields.
const (
	// keyElsewhere is the evidence against a map, multiplied by the share of keys that other fields have.
	keyElsewhere = 2.0
	// keyNowhere is the evidence for a map if no other field has any of the keys.
	keyNowhere = 0.3
	// minKeyLength is the length in bytes below which texts are ignored, because they may occur in another
	// field by chance.
	minKeyLength = 3
)

// keyTexts are the hashes of texts that may be map keys: those in field 1 of messages with two fields. The
// value is true if another field has the text, too.
type keyTexts map[uint64]bool

// keyTexts collects the texts in field 1 of messages that look like map entries, and marks those that occur in
// another string field.
func (g *graph) keyTexts() keyTexts {
	all := keyTexts{}
	reached := g.reachable()
	for _, c := range reached {
		if f := c.fields[1]; c.isPair() && f.Len != nil {
			for _, it := range f.Len.Values.Items {
				if it.Value >= minKeyLength {
					all[it.Hash] = false
				}
			}
		}
	}

	for _, c := range reached {
		for _, n := range c.numbers {
			f := c.fields[n]
			// Keys of other maps say nothing about names.
			if f.Len == nil || f.judgement.Kind != wire.KindString || n == 1 && c.isPair() {
				continue
			}
			for _, it := range f.Len.Values.Items {
				if _, ok := all[it.Hash]; ok {
					all[it.Hash] = true
				}
			}
		}
	}
	return all
}

// isPair reports whether the messages have exactly the fields 1 and 2, as map entries do.
func (c *class) isPair() bool {
	return len(c.numbers) == 2 && c.fields[1] != nil && c.fields[2] != nil
}

// share returns the share, from 0 to 1, of the field's texts that occur in other fields, too.
func (v keyTexts) share(f *classField) float64 {
	if f.Len == nil || len(f.Len.Values.Items) == 0 {
		return 0
	}
	n := 0
	for _, it := range f.Len.Values.Items {
		if v[it.Hash] {
			n++
		}
	}
	return float64(n) / float64(len(f.Len.Values.Items))
}

// LabelOfField returns the label of a declared field: Singular, Optional, Repeated or Map. Members of oneofs
// are Singular, and a required field is Optional.
func LabelOfField(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.IsMap():
		return Map
	case fd.IsList():
		return Repeated
	case schema.InOneof(fd) || fd.Message() != nil || !fd.HasPresence():
		return Singular
	}
	return Optional
}

// IsMany reports whether a field with this label can have several values in a message.
func IsMany(label string) bool { return label == Map || label == Repeated }

// confidentLabel is the probability from which on no observation is suggested to confirm a label.
const confidentLabel = 0.95

// alsoSettle adds text to d.Settle, the observations that would resolve doubts about the field.
func (d *declared) alsoSettle(text string) {
	switch {
	case text == "":
	case d.Settle == "":
		d.Settle = text
	default:
		d.Settle += "; " + text
	}
}

// settleLabel returns the observation that would decide whether the field is singular, repeated or a map. It
// returns "" if there is no doubt.
func (d *declared) settleLabel(f *classField) string {
	switch {
	case d.LabelP >= confidentLabel || d.skip != "":
		return ""
	case d.Label == Map && f.Most > 1:
		return "a message in which a key occurs twice would show that it is a list"
	case d.Label == Map:
		return "a message with several entries would help: if a key occurs twice, the field is a list; if never, probably a map"
	case d.Label == Repeated && f.Most > 1 && f.childClass != nil && f.childClass.find().isPair():
		return "if a key occurs twice in a message, the field is a list; if it never does in many messages, a map"
	case d.Label == Repeated:
		return ""
	case f.childClass != nil && f.childClass.find().isPair() && !f.Len.NotMap:
		return "a message with the field twice would show that it is repeated, or a map if the keys differ"
	}
	return "a message with the field twice would show that it is repeated"
}

// settleMembers adds, to each member of the oneof, the observation that would refute the oneof.
func (c *oneof) settleMembers(fields map[int32]*declared) {
	if c.p >= confidentLabel || len(c.numbers) == 1 {
		return
	}
	for _, n := range c.numbers {
		fields[n].alsoSettle("a message with two of " + numberList(c.numbers) + " would rule out the oneof")
	}
}
