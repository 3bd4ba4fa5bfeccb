package kind

import (
	"cmp"
	"math"
	"slices"

	"unwire/decode/wire"
)

// A Feature is one piece of the evidence for a reading.
//
// Shape: the weight is in nats, log-odds: of a payload, against bytes without
// any structure; of a scalar's type, against all its types being alike.
type Feature struct {
	Name   string  `json:"feature"`
	Weight float64 `json:"weight"`
}

// A Reading is one way to understand a field, with its probability.
//
// Shape: Type is finer than Kind: for varint int64, uint64, sint64, bool, enum
// or timestamp-s, -ms, -us, -ns; for fixed32 float, fixed32, sfixed32, timestamp-s; for
// fixed64 double, fixed64, sfixed64 or timestamp-ns …; for packed "packed varint" or
// "packed " and a type of fixed numbers, as "packed float"; else the kind. Somebody may
// choose any packed type: "packed sint64". Value is set by a Reader: a string, []byte,
// int64, uint64, bool, float32, float64 or a list of one of these numbers; nil for a
// message or a group, whose fields are the node's children.
type Reading struct {
	Kind  wire.Kind
	Type  string
	P     float64
	Value any
	Why   []Feature
}

// leastP is the probability below which a reading is left out.
const leastP = 0.001

// readings returns the readings of the field by all that was seen of it, the
// best first, with the evidence for each. Their probabilities sum to 1.
func (f *Field) readings() []Reading { return Costs{}.explainedReadings(f) }

// explainedReadings is Field.explainedReadings; one Costs should serve for all fields of a tree.
func (c Costs) explainedReadings(f *Field) []Reading {
	out := c.readings(f)
	c.explain(f, out)
	return out
}

// readings is Readings without what explain adds.
func (c Costs) readings(f *Field) []Reading {
	v := JudgeField(f, c.Payloads(f))
	out := make([]Reading, 0, 4)
	add := func(k wire.Kind, e Element, p float64) {
		switch k {
		case wire.KindVarint, wire.KindFixed32, wire.KindFixed64:
			for _, s := range scalarsOf(f, k) {
				out = append(out, Reading{Kind: k, Type: s.Type, P: s.P * p, Why: s.Why})
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
	return normalize(out)
}

// explain adds the pieces of evidence for the readings of payloads.
func (c Costs) explain(f *Field, list []Reading) {
	if f.Len == nil {
		return
	}
	why := c.why(f)
	for i := range list {
		if w := why[list[i].Type]; w != nil {
			list[i].Why = w
		}
	}
}

// why lists the pieces of evidence for each reading of the payloads of f.
func (c Costs) why(f *Field) map[string][]Feature {
	all := map[string][]Feature{}
	least := map[string]float64{}
	list := hypotheses(f.Len, c.Payloads(f))
	content := func(h *hypothesis) float64 { return h.cost - h.prior - h.empty - h.sizes }
	raw := 0.0
	if at := slices.IndexFunc(list, func(h hypothesis) bool { return h.kind == wire.KindBytes }); at >= 0 {
		raw = content(&list[at]) // bytes of no structure come first
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
		w := []Feature{{contentWords[h.kind], round2(raw - content(h))}, {"how common it is", round2(h.file - h.prior)}}
		if h.kind == wire.KindBytes && f.Len.files() {
			w = append(w, Feature{"it begins as a file does", costMagic})
		}
		if h.empty != 0 {
			w = append(w, Feature{"empty payloads", round2(-h.empty)})
		}
		if h.sizes != 0 {
			w = append(w, Feature{"sizes of the payloads", round2(-h.sizes)})
		}
		all[typ] = w
	}
	return all
}

var contentWords = map[wire.Kind]string{
	wire.KindMessage: "fields with plausible numbers, types and values",
	wire.KindString:  "characters of text",
	wire.KindBytes:   "bytes of a known format, or nothing better",
	wire.KindPacked:  "numbers that are alike",
}

func round2(x float64) float64 { return math.Round(x*100) / 100 }

// normalize sorts, drops what is too unlikely, and makes the sum 1.
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
