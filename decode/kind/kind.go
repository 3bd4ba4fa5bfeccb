// Package kind decides what the fields of unknown protobuf are, from all that was seen of
// them, with a probability. Messages go in, Readings of fields come out.
//
// Evidence pools samples of root types: Add enters a message, Merge the evidence of
// another machine, and it can be kept as JSON. Per field it has statistics of its numbers
// and its payloads, a sketch of its distinct values, and a few texts as examples. Of many
// payloads a stratified sample is scored. The number of fields is limited.
//
// JudgeField, in this file, makes a Judgement of the hypotheses' costs and priors: a cost
// is how many nats the samples take if they are text, a message, packed numbers, bytes
// with a mask, or raw bytes. Then the type is chosen by the range or the elements.
//
// A Reader gives the readings of the nodes of one tree, by its own repeats or by Evidence
// of a whole capture, and what well-known shape a message has, such as Timestamp or Any. A
// Choice is a reading that a user has chosen; it comes first.
//
// Package decode shows the readings, and package schema/infer makes definitions of the
// same Evidence. This package knows neither definitions nor captures.
//
// Source: decode/kind/README.md
package kind

import (
	"cmp"
	"math"
	"slices"

	"unwire/decode/wire"
)

// An Alternative is a kind with its probability.
type Alternative struct {
	Kind wire.Kind `json:"kind"`
	P    float64   `json:"p"`

	element Element
}

// The prior cost, in nats, of what a length-delimited field is, and of an empty
// payload under each hypothesis: writers of proto3 leave empty strings out, but
// not empty messages and elements; packed fields are never empty.
const (
	priorString, emptyString   = 0.6, 3.0
	priorMessage, emptyMessage = 1.0, 0.7
	priorBytes, emptyBytes     = 2.7, 3.2
	priorVarints               = 3.5
	priorFixed                 = 4.4
	emptyPacked                = 8.0

	// Times one that all empty payloads tell: who writes one writes many.
	mostEmpty = 2.4

	// Costs of the shape of a message: a field is described once, its presence
	// and its length every time.
	costNewField = 2.3

	// Times the logarithm of how far its number is from the one before.
	costNumber = 1.6

	costOutOfOrder = 2.5
	costOddWire    = 8.0 // an occurrence with another wire type than the field's
	costNewGroup   = 12.0
	costFixedField = 2.5 // fixed-width fields are rarer than others
	costOverlong   = 8.0

	// Bytes that hold text, a message or numbers are rarer than other bytes.
	bytesOfText = 2.5

	bytesOfJSON    = 1.3
	bytesOfMessage = 2.5
	bytesOfWords   = 1.0
	bytesOfNumbers = 4.2
	bytesOfEach    = 5.4 // of other numbers in each
	bytesOfBlocks  = 1.5 // and so are those of a cipher

	// Of anything else that starts as a file or a compressed frame does.
	costMagic = 10

	costShort    = 2.0 // bytes that are too few for what bytes are used for
	costDigest   = 3.3
	costUneven   = 1.6
	costHashes   = 3.0
	costRepeated = 0.5 // that numbers repeat byte by byte

	smallNumber      = 32
	costSmallNumbers = 2.5

	// For packed, of a field whose numbers also came one by one.
	mixedBonus = 2.5

	mixedMost = 3.0 // and more the more of them

	// That numbers of several lengths have one size together.
	costSameSize = 2.0

	maxSizes = 6 // sizes that count as a coincidence
)

// Samples of one field resemble each other, so their costs do not simply add
// up to certainty: a sum over n samples counts as n to the power of poolPower.
const (
	poolPower          = 0.75
	inverseTemperature = 0.55 // how much of a difference in cost is believed

	unmodelledMass = 0.015 // what is held back for what was not thought of
)

// An Element is what a packed field holds.
type Element uint8

const (
	notPacked Element = iota
	PackedVarint
	PackedFixed32
	PackedFixed64
)

// A Judgement is what a field's occurrences are, pooled.
type Judgement struct {
	Kind    wire.Kind
	Element Element // of packed numbers
	P       float64
	Others  []Alternative // best first
	Odd     int64         // occurrences whose wire type contradicts the kind
}

// A hypothesis is one reading of a length-delimited field with its cost in nats.
type hypothesis struct {
	kind    wire.Kind
	element Element
	cost    float64 // all of it

	prior, empty, sizes float64 // parts of cost

	// The part of prior that tells against all but bytes.
	file float64
}

// JudgeField judges a field. messageCost is the cost of its payloads as messages.
func JudgeField(f *Field, messageCost float64) Judgement {
	counts := [...]struct {
		kind    wire.Kind
		element Element
		n       int64
	}{
		{kind: wire.KindVarint, element: PackedVarint},
		{kind: wire.KindFixed32, element: PackedFixed32},
		{kind: wire.KindFixed64, element: PackedFixed64},
		{kind: wire.KindGroup, n: f.Groups},
	}
	if f.Varint != nil {
		counts[0].n = f.Varint.N
	}
	if f.Fixed32 != nil {
		counts[1].n = f.Fixed32.N
	}
	if f.Fixed64 != nil {
		counts[2].n = f.Fixed64.N
	}
	best := counts[0]
	for _, c := range counts[1:] {
		if c.n > best.n {
			best = c
		}
	}
	if f.Len == nil {
		odd := f.Occurs - best.n
		return Judgement{Kind: best.kind, Odd: odd, P: share(best.n, odd)}
	}
	list := hypotheses(f.Len, messageCost)
	if best.n == 0 {
		return judge(list, f.Len.N)
	}
	// Written packed and one by one: readers accept both, few writers do it.
	mixed := slices.Clone(list)
	for i := range mixed {
		if h := &mixed[i]; h.kind == wire.KindPacked && h.element == best.element {
			bonus := mixedBonus + min(math.Log(float64(best.n)), mixedMost)
			h.prior -= bonus
			h.cost -= bonus
		}
	}
	if v := judge(mixed, f.Len.N); v.Kind == wire.KindPacked && v.Element == best.element {
		v.Odd = f.Occurs - best.n - f.Len.N
		v.P *= share(best.n+f.Len.N, v.Odd)
		return v
	}
	// A list of numbers would have readers take the payloads for packed ones, and
	// fail; a single number, and a payload, have them skip what does not fit.
	if best.n > f.Len.N && f.Most == 1 {
		odd := f.Occurs - best.n
		return Judgement{Kind: best.kind, Odd: odd, P: share(best.n, odd)}
	}
	v := judge(list, f.Len.N)
	v.Odd = f.Occurs - f.Len.N
	v.P *= share(f.Len.N, v.Odd)
	return v
}

// share is how sure a wire type is that n occurrences have and odd have not.
func share(n, odd int64) float64 {
	return round((float64(n) + 1) / (float64(n) + 1 + 1.5*float64(odd)))
}

// judge turns costs over n samples into probabilities: how common a kind is
// counts in full, the content less, the more samples there are.
func judge(list []hypothesis, n int64) Judgement {
	scale := inverseTemperature * math.Pow(float64(max(n, 1)), poolPower-1)
	score := func(h *hypothesis) float64 {
		return -(h.prior + (h.empty+h.sizes)*inverseTemperature + scale*(h.cost-h.prior-h.empty-h.sizes))
	}
	best := math.Inf(-1)
	for i := range list {
		best = max(best, score(&list[i]))
	}
	type one struct {
		kind        wire.Kind
		element     Element
		weight, top float64
	}
	kinds := make([]one, 0, 4)
	sum := 0.0
	for i := range list {
		h := &list[i]
		w := math.Exp(score(h) - best)
		sum += w
		at := slices.IndexFunc(kinds, func(k one) bool { return k.kind == h.kind })
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, one{kind: h.kind})
		}
		k := &kinds[at]
		if k.weight += w; w > k.top {
			k.top, k.element = w, h.element
		}
	}
	slices.SortStableFunc(kinds, func(a, b one) int { return cmp.Compare(b.weight, a.weight) })
	v := Judgement{Kind: kinds[0].kind, Element: kinds[0].element}
	// Nothing is certain from few samples: another kind may still show.
	doubt := unmodelledMass / (float64(n) + 1)
	for i, k := range kinds {
		p := round(k.weight/sum*(1-doubt) + doubt/8)
		if i == 0 {
			v.P = p
		} else if p >= leastP {
			v.Others = append(v.Others, Alternative{Kind: k.kind, P: p, element: k.element})
		}
	}
	return v
}

// round keeps four digits of a probability.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
