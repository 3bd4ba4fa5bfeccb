package kind

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"unwire/decode/wire"
)

// A Feature is one reason for the probability of a possible type.
type Feature struct {
	// Name describes the reason in words, such as "characters of text".
	Name string `json:"feature"`

	// Weight is the log-odds of the reason in nats; positive values favour the type. For a payload they are
	// relative to bytes without structure, for a number relative to equally likely types.
	Weight float64 `json:"weight"`
}

// A Reading is one possible type of a field with its probability.
//
// Shape: Type is more specific than Kind. For varint it is int64, uint64, sint64, bool, enum or
// timestamp-s, -ms, -us, -ns. For fixed32 it is float, fixed32, sfixed32 or timestamp-s, for fixed64
// double, fixed64, sfixed64 or a timestamp. For packed it is "packed varint" or "packed " and a
// fixed-width type. Otherwise it equals the kind. Users may choose any packed type, such as "packed
// sint64".
type Reading struct {
	// Kind is the kind of value, such as a varint number or a message.
	Kind wire.Kind

	// Type is the protobuf type, such as sint64.
	Type string

	// P is the probability of the type, from 0 to 1.
	P float64

	// Value is the decoded value, set by Reader.Readings: a string, []byte, int64, uint64, bool, float32,
	// float64 or a list of numbers. It is nil for messages and groups.
	Value any

	// Why are the reasons for the probability; empty unless requested.
	Why []Feature
}

// leastP is the probability below which possible types are omitted.
const leastP = 0.001

// readings returns the possible types of the field, based on all its occurrences, most probable first and without
// reasons. The probabilities sum to 1.
func (f *Field) readings() []Reading { return Costs{}.readings(nil, f) }

// readings appends to out, which is empty, the possible types of the field; see Field.readings. It uses cached costs:
// one Costs should be used for all fields of a tree. explain adds the reasons.
func (c Costs) readings(out []Reading, f *Field) []Reading {
	if known := f.remembered(); known != nil && len(*known) > 0 {
		return append(out, *known...)
	}
	if f.Len != nil {
		f.Len.complete()
	}
	v := JudgeField(f, c.Payloads(f))
	if out == nil {
		out = make([]Reading, 0, 4)
	}

	// Numbers have several types, which share the probability of their kind.
	add := func(k wire.Kind, e Element, p float64) {
		switch k {
		case wire.KindVarint, wire.KindFixed32, wire.KindFixed64:
			var buf [mostScalars]scalarType
			for _, s := range scalarsOf(buf[:0], f, k, false) {
				out = append(out, Reading{Kind: k, Type: s.Type, P: s.P * p})
			}
		case wire.KindPacked:
			out = append(out, Reading{Kind: k, Type: packedType(f, e), P: p})
		default:
			out = append(out, Reading{Kind: k, Type: string(k), P: p})
		}
	}
	add(v.Kind, v.Element, v.P)
	for _, a := range v.Others {
		add(a.Kind, a.element, a.P)
	}
	out = normalize(out)
	// The messages inside a payload may have taken its place in the memo.
	if known := f.remembered(); known != nil {
		*known = append((*known)[:0], out...)
	}
	return out
}

// explain adds the reasons for their probabilities to the possible types of a field.
func (c Costs) explain(f *Field, list []Reading) {
	var why map[string][]Feature
	if f.Len != nil {
		f.Len.complete()
		why = c.reasons(f)
	}
	for i := range list {
		typ := list[i].Type
		if isNumber(list[i].Kind) {
			for _, s := range scalarsOf(nil, f, list[i].Kind, true) {
				if s.Type == typ {
					list[i].Why = s.Why
				}
			}
		}
		if w := why[typ]; w != nil {
			list[i].Why = w
		}
	}
}

// reasons returns the reasons for the probability of each type that the payloads of f may have, by type.
func (c Costs) reasons(f *Field) map[string][]Feature {
	all := map[string][]Feature{}
	// Of several hypotheses of one type, the cheapest one has the reasons.
	least := map[string]float64{}
	list := f.Len.hypotheses(c.Payloads(f))
	content := func(h *hypothesis) float64 { return h.cost - h.prior - h.empty - h.sizes }
	raw := 0.0
	if at := slices.IndexFunc(list, func(h hypothesis) bool { return h.kind == wire.KindBytes }); at >= 0 {
		// Bytes without structure are the first hypothesis of their kind.
		raw = content(&list[at])
	}
	for i := range list {
		h := &list[i]
		typ := string(h.kind)
		if h.kind == wire.KindPacked {
			typ = packedType(f, h.element)
		}
		if cost, has := least[typ]; has && cost <= h.cost {
			continue
		}
		least[typ] = h.cost

		// All reasons are relative to bytes without structure.
		w := []Feature{{contentWords[h.kind], round2(raw - content(h))}, {priorReason, round2(h.file - h.prior)}}
		if h.kind == wire.KindBytes && f.Len.files() {
			w = append(w, Feature{"payloads begin like files of a known format", costMagic})
		}
		if h.empty != 0 {
			w = append(w, Feature{"some payloads are empty", round2(-h.empty)})
		}
		if h.sizes != 0 {
			w = append(w, Feature{"the sizes of the payloads", round2(-h.sizes)})
		}

		all[typ] = w
	}
	return all
}

// priorReason is the reason whose weight is the log-odds of a type before any value was examined.
const priorReason = "how frequent the type is in protobuf messages in general"

// contentWords describe, in the reasons for a type, how well the content fits it.
var contentWords = map[wire.Kind]string{
	wire.KindMessage: "payloads parse as fields with plausible numbers, types and values",
	wire.KindString:  "payloads consist of characters that occur in text",
	wire.KindBytes:   "any payload can be bytes",
	wire.KindPacked:  "payloads parse as numbers of similar size",
}

// round2 rounds x to two decimals.
func round2(x float64) float64 { return math.Round(x*100) / 100 }

// normalize removes improbable types, sorts the rest by probability, and scales the probabilities so
// that they sum to 1.
func normalize(in []Reading) []Reading {
	sum := 0.0
	for i := range in {
		sum += in[i].P
	}
	out := slices.DeleteFunc(in, func(r Reading) bool { return r.P < leastP*sum })
	sum = 0
	for i := range out {
		sum += out[i].P
	}
	for i := range out {
		out[i].P /= sum
	}
	slices.SortStableFunc(out, func(a, b Reading) int { return cmp.Compare(b.P, a.P) })
	return out
}

// ResolvingEvidence describes, in words, values that would decide between the two most probable types of a field.
// list are its possible types, most probable first. It returns "" if there is no ambiguity.
func ResolvingEvidence(f *Field, list []Reading) string {
	if f == nil || len(list) < 2 {
		return ""
	}
	a, b := list[0], list[1]
	if strings.HasPrefix(a.Type, "timestamp-") || strings.HasPrefix(b.Type, "timestamp-") {
		return "a value that is not a time between 2001 and 2065 would rule out the timestamp"
	}
	if isNumber(a.Kind) && isNumber(b.Kind) {
		return NumberType(f, Judgement{Kind: a.Kind}, Use{}).ResolvedBy
	}

	// Kinds of payloads are refuted by their bytes.
	refute := []string{}
	for _, r := range [...]Reading{a, b} {
		switch r.Kind {
		case wire.KindString:
			refute = append(refute, "a value that is not UTF-8 would rule out the type string")
		case wire.KindMessage:
			refute = append(refute, "a value that does not parse as a message would rule out the type message")
		case wire.KindPacked:
			refute = append(refute, "a value that does not parse as "+r.Type+" would rule out the type "+r.Type)
		}
	}
	switch {
	case len(refute) == 0:
		return ""
	case f.Occurs < 10:
		refute = append(refute, "more values of this field would also help")
	}
	return strings.Join(refute, "; ")
}

// isNumber reports whether k is a kind of number.
func isNumber(k wire.Kind) bool {
	return k == wire.KindVarint || k == wire.KindFixed32 || k == wire.KindFixed64
}
