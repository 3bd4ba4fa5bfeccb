package infer

import (
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
)

// Labels in the contract's words.
const (
	Singular = "singular"
	Optional = "optional"
	Repeated = "repeated"
	Map      = "map"
)

// labelOf judges how often a field occurs in a message, maps aside.
//
// Seen twice in one message is proof of a repeated field. Never seen twice is
// weak proof of the contrary, weaker for messages, of which lists are made.
// A zero that was written proves explicit presence: proto3 leaves zeros out.
func labelOf(f *kind.Field, v kind.Judgement, fresh float64, h habit) (label string, p float64) {
	if v.Kind == wire.KindPacked {
		return Repeated, v.P
	}
	if f.Most > 1 {
		return Repeated, 0.998
	}
	repeated := oftenRepeated(v.Kind, float64(f.Seen)*fresh, h)
	if zerosOf(f, v.Kind) > 0 {
		return Optional, round((1 - repeated) * writtenZero)
	}
	return Singular, round(1 - repeated)
}

// writtenZero is how sure a zero makes explicit presence: some writers leave none out.
const writtenZero = 0.97

// oftenRepeated is the probability that a field is repeated that was in n messages, in
// none of them twice: how many were lists of those fields of which the same was seen
// in the tuning corpora. Where no list ever had two elements, n says nothing.
func oftenRepeated(k wire.Kind, n float64, h habit) float64 {
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
	return max(one/math.Pow(max(n, 1), power), leastRepeated)
}

// leastRepeated is what is held back however often a field was seen.
const leastRepeated = 0.0005

// zeros counts the occurrences that a field with implicit presence would have left out.
func zerosOf(f *kind.Field, k wire.Kind) int64 {
	switch {
	case k == wire.KindVarint && f.Varint != nil:
		return f.Varint.Zero
	case k == wire.KindFixed32 && f.Fixed32 != nil:
		return f.Fixed32.Zero
	case k == wire.KindFixed64 && f.Fixed64 != nil:
		return f.Fixed64.Zero
	case (k == wire.KindString || k == wire.KindBytes) && f.Len != nil:
		return f.Len.Empty
	}
	return 0
}

// A habit is what the fields of a file show of how all of them are used.
type habit struct {
	single bool // of many fields none was ever seen twice in a message
	zeros  bool // zeros are written as a rule, not only where presence is explicit
	order  bool // fields have an order, so that one out of it says something
	late   bool // and some are out of it as Go writes oneofs
}

// habits looks at all fields that are reached.
func (g *graph) habits() habit {
	fields, many, scalars, zeros := 0, 0, 0, 0
	out, of, order := 0, 0, true
	for _, c := range g.reached() {
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
				if zerosOf(f.Field, f.judgement.Kind) > 0 {
					zeros++
				}
			}
		}
	}
	return habit{single: fields >= 20 && many == 0, zeros: scalars >= 10 && 4*zeros > scalars, order: order && 3*out <= 2*of, late: out > 0}
}

// mapOdds is the log-odds of a field of entries being a map. The shape alone,
// unique keys with values, is common to maps and to lists of named things. Zeros
// that are written out, and keys in order, are not. Pairs of numbers are mostly
// ranges, but not where the second is the smaller, or where they are unsorted.
func mapOdds(f *kind.Field, key, value *classField, h habit) float64 {
	l := f.Len
	numbers := key.Len == nil && value.Len == nil
	zeros := zerosOf(key.Field, key.judgement.Kind) + zerosOf(value.Field, value.judgement.Kind)
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
	if zeros > 0 && !h.zeros {
		odds += 2 + math.Min(0.5*float64(zeros), 2)
	}
	switch {
	case l.Descending == 0:
		odds += math.Min(0.5*pairs, 3)
	case unsorted && numbers && pairs > 4:
		odds += 1.2
	default:
		odds -= 0.2
	}
	return odds
}

// singleMapOdds is mapOdds for a field that had one entry in each message. It is
// told from a message of two fields by how common each is in the definitions of
// public modules, and hardly ever has just one entry each time, unless all lists have.
// A name that stands elsewhere too, and is no key there, is a name here.
func singleMapOdds(f *kind.Field, fresh float64, key, value *classField, h habit, plain float64) float64 {
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
	if !h.single {
		odds -= 0.4 + 0.5*math.Log(max(float64(f.Seen)*fresh, 1))
	}
	if zeros := zerosOf(key.Field, key.judgement.Kind) + zerosOf(value.Field, value.judgement.Kind); zeros > 0 && !h.zeros {
		odds += 2 + math.Min(0.5*float64(zeros), 2)
	}
	if plain > 0 {
		return odds - keyElsewhere*plain
	}
	return odds + keyNowhere
}

// What it tells, in nats, that the keys of what may be a map are texts of other fields, or are not.
const (
	keyElsewhere = 2.0
	keyNowhere   = 0.3
	leastKey     = 3 // bytes of a key that is no accident elsewhere
)

// A vocabulary is the texts that come first in pairs, as far as they are remembered:
// whether each is a text of another field too.
type vocabulary map[uint64]bool

// vocabulary looks for the first texts of pairs in all other strings.
func (g *graph) vocabulary() vocabulary {
	all := vocabulary{}
	reached := g.reached()
	for _, c := range reached {
		if f := c.fields[1]; c.isPair() && f.Len != nil {
			for _, it := range f.Len.Values.Items {
				if it.Value >= leastKey {
					all[it.Hash] = false
				}
			}
		}
	}
	for _, c := range reached {
		for _, n := range c.numbers {
			f := c.fields[n]
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

// isPair reports whether the type has the fields of a map's entry.
func (c *class) isPair() bool {
	return len(c.numbers) == 2 && c.fields[1] != nil && c.fields[2] != nil
}

// share is the part of the field's texts that are known.
func (v vocabulary) share(f *classField) float64 {
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

// LabelOfField is the declared label, in the contract's words. A oneof's
// members are singular; a required field is optional with a promise.
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

// IsMany reports whether a field with this label can have several values.
func IsMany(label string) bool { return label == Map || label == Repeated }
