// Package kind infers the types of the fields of unknown protobuf messages, with probabilities. Messages go in,
// and Readings of fields come out.
//
//	r := kind.NewReader(tree, nil)
//	for i := range tree.Children(0) {
//		best := r.Readings(i)[0]
//		fmt.Println(tree.Node(i).Number, best.Type, best.P, best.Value)
//	}
//
// Evidence collects statistics over samples of root types. Add adds a message, Merge combines the evidence of
// several machines, and Doc converts it to JSON. A Field has statistics of numbers and payloads, a sketch of
// distinct values, and a few example texts. Of many payloads, only a sample is scored (see sampling.go).
//
// JudgeField, in this file, compares hypotheses: text, message, packed numbers, bytes. The cost of a hypothesis
// is its description length in nats plus a prior (minimum description length, see cost.go). A softmax over the
// costs yields probabilities. Then the type of numbers is chosen by their range and distribution.
//
// A Reader provides the readings of one tree's nodes, from the tree itself or from Evidence of a whole capture.
// It also detects well-known types such as Timestamp and Any. A Choice is a type that a user chose, which takes
// precedence.
//
// Package decode shows the readings, and package schema/infer makes schemas of the same Evidence.
//
// Source: decode/kind/README.md
package kind

import (
	"cmp"
	"math"
	"slices"

	"unwire/decode/kind/bytecost"
	"unwire/decode/wire"
)

// An Alternative is a possible kind of a field with its probability.
type Alternative struct {
	// Kind is the possible kind of the field.
	Kind wire.Kind `json:"kind"`

	// P is the probability of the kind, from 0 to 1.
	P float64 `json:"p"`

	// element is the encoding of a packed list's elements.
	element Element
}

// The prior costs, in nats, of the kinds of a length-delimited field, and the costs of an empty payload of each
// kind. Encoders of proto3 omit empty strings, but neither empty messages nor empty elements, and packed fields
// are never empty.
const (
	priorString, emptyString   = 0.6, 3.0
	priorMessage, emptyMessage = 1.0, 0.7
	priorBytes, emptyBytes     = 2.7, 3.2
	priorVarints               = 3.5
	priorFixed                 = 4.4
	emptyPacked                = 8.0

	// mostEmpty is the maximum factor by which the cost of one empty payload is multiplied if there are several. A
	// sender that writes one usually writes many.
	mostEmpty = 2.4

	// costNewField is the cost in nats of describing a field once.
	costNewField = 2.3

	// costNumber is the cost in nats of a field number, multiplied by the logarithm of the distance to the previous
	// number.
	costNumber = 1.6

	// costOutOfOrder is the cost of a field that occurs after one with a greater number.
	costOutOfOrder = 2.5

	// costOddWire is the cost of an occurrence with another wire type than the field's.
	costOddWire = 8.0

	// costNewGroup is the cost of a field that is a group, which is rare.
	costNewGroup = 12.0

	// costFixedField is for fixed-width fields, which are rarer than others.
	costFixedField = 2.5

	// costOverlong is for an overlong varint.
	costOverlong = 8.0

	// bytesOfText and the constants below are added to the log prior of bytes with a certain content,
	// because such bytes are rarer than arbitrary ones. bytesOfText is for bytes that contain text.
	bytesOfText = 2.5

	// bytesOfJSON is for JSON.
	bytesOfJSON = 1.3

	// bytesOfMessage is for a message.
	bytesOfMessage = 2.5

	// bytesOfWords is the log prior of bytes that consist of 16-bit words.
	bytesOfWords = 1.0

	// bytesOfNumbers is for fixed-width numbers.
	bytesOfNumbers = 4.2

	// bytesOfEach is for payloads with different kinds of numbers.
	bytesOfEach = 5.4

	// bytesOfBlocks is for sizes that are multiples of a cipher's block.
	bytesOfBlocks = 1.5

	// costMagic is for other kinds than bytes if all payloads begin with a magic number.
	costMagic = 10

	// costShort is for bytes that are shorter than usual data.
	costShort = 2.0

	// costDigest is subtracted for the sizes of digests.
	costDigest = 3.3

	// costUneven is for a small size that is not a multiple of four.
	costUneven = 1.6

	// costHashes is for numbers that look random.
	costHashes = 3.0

	// costRepeated is for describing numbers by their repeating bytes.
	costRepeated = 0.5

	// smallNumber is the limit of small packed numbers, and costSmallNumbers the evidence for varints if all are
	// small.
	smallNumber      = 32
	costSmallNumbers = 2.5

	// mixedBonus is subtracted for packed numbers if the field's numbers also occurred one by one.
	mixedBonus = 2.5

	// mixedMost is the maximum additional bonus for many such numbers.
	mixedMost = 3.0

	// costSameSize is for varints of several lengths whose payloads have one size.
	costSameSize = 2.0

	// costSingleNumber is for packed integers, and costSingleReal for packed floating-point numbers, if each
	// payload has the size of one number. mostAlwaysOne is the maximum cost of several payloads that all do.
	costSingleNumber, costSingleReal, mostAlwaysOne = 3.0, 2.0, 2.5

	// costZeroBytes is for varints that begin or end with zero bytes as fixed-width numbers do.
	costZeroBytes = 4.0

	// mostUnrefuted is the maximum probability of bytes if all payloads are text, which nothing refutes then.
	mostUnrefuted = 0.94

	// maxSizes is the maximum number of sizes that count as a coincidence.
	maxSizes = 6
)

// Parameters of the conversion of costs to probabilities. Samples of one field resemble each other, so their costs
// are not independent: the sum over n samples counts as much as n to the power of poolPower.
const (
	// poolPower is the exponent of the number of samples.
	poolPower = 0.75

	// inverseTemperature scales cost differences before the softmax. Below 1, the model trusts its own costs
	// less.
	inverseTemperature = 0.55

	// unmodelledMass is the probability that is reserved for hypotheses outside the model.
	unmodelledMass = 0.015
)

// An Element is the encoding of a packed field's elements.
type Element uint8

const (
	// notPacked: the field is not packed.
	notPacked Element = iota

	// PackedVarint: varints.
	PackedVarint

	// PackedFixed32: values of 4 bytes.
	PackedFixed32

	// PackedFixed64: values of 8 bytes.
	PackedFixed64
)

// A Judgement is the most probable kind of a field, judged by all its occurrences.
type Judgement struct {
	// Kind is the most probable kind of the field.
	Kind wire.Kind

	// Element is the encoding of the elements, if the field contains packed numbers.
	Element Element

	// P is the probability of Kind, from 0 to 1.
	P float64

	// Others are the other possible kinds, most probable first.
	Others []Alternative

	// Odd is the number of occurrences whose wire type contradicts the kind.
	Odd int64
}

// A hypothesis is a possible type of a length-delimited field, with its description length in nats.
type hypothesis struct {
	// kind is the possible kind of the field, such as string, message or packed numbers.
	kind wire.Kind

	// element is the encoding of the elements, if kind is packed; otherwise it is not used.
	element Element

	// cost is the total description length of the hypothesis, in nats.
	cost float64

	// prior, empty and sizes are summands of cost, in nats: for the kind itself, for empty payloads, and for the
	// payloads' sizes.
	prior, empty, sizes float64

	// file is the part of prior that is added because all payloads begin like a file format.
	file float64
}

// JudgeField determines the most probable kind of a field from its statistics. messageCost is the description
// length of its payloads as messages, in nats.
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

	// Without payloads, the most frequent wire type decides.
	best := counts[0]
	for _, c := range counts[1:] {
		if c.n > best.n {
			best = c
		}
	}
	if f.Len == nil {
		odd := f.Occurs - best.n
		return Judgement{Kind: best.kind, Odd: odd, P: wireTypeConfidence(best.n, odd)}
	}
	list := f.Len.hypotheses(messageCost)
	if best.n == 0 {
		if f.Most > 1 || f.Len.Empty > 0 {
			// Encoders write a packed list once, and not if it is empty. Decoders would join two lists, so that
			// encoding again would give other bytes.
			var buf [mostHypotheses]hypothesis
			list = slices.DeleteFunc(append(buf[:0], list...), func(h hypothesis) bool { return h.kind == wire.KindPacked })
		}
		return boundUnrefuted(f.Len, judge(list, f.Len.N))
	}
	// The field occurs packed and one by one. Decoders accept both, but few encoders do it.
	mixed := slices.Clone(list)
	for i := range mixed {
		if h := &mixed[i]; h.kind == wire.KindPacked && h.element == best.element {
			bonus := mixedBonus + min(bytecost.Log(float64(best.n)), mixedMost)
			h.prior -= bonus
			h.cost -= bonus
		}
	}
	if v := judge(mixed, f.Len.N); v.Kind == wire.KindPacked && v.Element == best.element {
		v.Odd = f.Occurs - best.n - f.Len.N
		v.P *= wireTypeConfidence(best.n+f.Len.N, v.Odd)
		return v
	}
	// For a list of numbers, decoders would interpret the payloads as packed numbers and fail. For a single
	// number, they would skip the payloads.
	if best.n > f.Len.N && f.Most == 1 {
		odd := f.Occurs - best.n
		return Judgement{Kind: best.kind, Odd: odd, P: wireTypeConfidence(best.n, odd)}
	}
	v := judge(list, f.Len.N)
	v.Odd = f.Occurs - f.Len.N
	v.P *= wireTypeConfidence(f.Len.N, v.Odd)
	return v
}

// boundUnrefuted limits the probability of bytes in v to mostUnrefuted if all payloads are text without a file
// format: as long as no payload refutes text, bytes cannot be certain.
func boundUnrefuted(l *Payloads, v Judgement) Judgement {
	l.complete()
	if v.Kind != wire.KindBytes || v.P <= mostUnrefuted || !l.cleanText() || l.files() {
		return v
	}
	rest := v.P - mostUnrefuted
	v.P = mostUnrefuted
	v.Others = slices.Clone(v.Others)
	i := slices.IndexFunc(v.Others, func(a Alternative) bool { return a.Kind == wire.KindString })
	if i < 0 {
		v.Others = append(v.Others, Alternative{Kind: wire.KindString})
		i = len(v.Others) - 1
	}
	v.Others[i].P = round(v.Others[i].P + rest)
	slices.SortStableFunc(v.Others, func(a, b Alternative) int { return cmp.Compare(b.P, a.P) })
	return v
}

// wireTypeConfidence returns the confidence, from 0 to 1, in a kind whose wire type n occurrences have and odd
// occurrences do not.
func wireTypeConfidence(n, odd int64) float64 {
	return round((float64(n) + 1) / (float64(n) + 1 + 1.5*float64(odd)))
}

// leastOdds are log-odds against the best hypothesis below which a hypothesis does not count.
const leastOdds = -60

// mostKinds is the number of kinds of length-delimited fields.
const mostKinds = 4

// judge converts the costs of the hypotheses over n samples to probabilities by a softmax. Priors count in full,
// while the cost of the content counts less with more samples, because samples of one field are not independent.
func judge(list []hypothesis, n int64) Judgement {
	// The total cost of n samples counts as much as n^poolPower samples.
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

	// Add up the hypotheses of each kind.
	var buf [mostKinds]one
	kinds := buf[:0]
	sum := 0.0
	for i := range list {
		h := &list[i]
		w := 0.0
		// Smaller weights do not change the sum, which is at least 1.
		if odds := score(h) - best; odds > leastOdds {
			w = math.Exp(odds)
		}
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
	// Few samples leave more probability for other kinds.
	doubt := unmodelledMass / (float64(n) + 1)
	for i, k := range kinds {
		p := round(k.weight/sum*(1-doubt) + doubt/8)
		if i == 0 {
			v.P = p
		} else if p >= leastP {
			if v.Others == nil {
				v.Others = make([]Alternative, 0, len(kinds)-1)
			}
			v.Others = append(v.Others, Alternative{Kind: k.kind, P: p, element: k.element})
		}
	}
	return v
}

// round rounds a probability to four decimals.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
