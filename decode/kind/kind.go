package kind

import (
	"cmp"
	"math"
	"slices"

	"unwire/decode/wire"
)

// A Kind is how a field's bytes are read.
type Kind = wire.Kind

// An Alternative is a kind with its probability.
type Alternative struct {
	Kind Kind    `json:"kind"`
	P    float64 `json:"p"`
}

// The prior cost, in nats, of what a length-delimited field is, and of an empty
// payload under each hypothesis: writers of proto3 leave empty strings out, but
// not empty messages and elements; packed fields are never empty.
const (
	priorString, emptyString   = 0.6, 3.0
	priorMessage, emptyMessage = 1.0, 0.7
	priorBytes, emptyBytes     = 2.7, 3.2
	priorVarints               = 4.8
	priorFixed                 = 5.0
	emptyPacked                = 8.0

	// Costs of the shape of a message: a field is described once, its presence
	// and its length every time.
	costNewField   = 2.5
	costNumber     = 2.0 // times the logarithm of the number
	costOutOfOrder = 2.5
	costOddWire    = 8.0 // an occurrence with another wire type than the field's
	costNewGroup   = 12.0
	costOverlong   = 8.0
)

// Samples of one field resemble each other, so their costs do not simply add
// up to certainty: a sum over n samples counts as n to the power of poolPower.
const (
	poolPower = 0.75
	heat      = 0.55 // how much of a difference in cost is believed
)

// An Element is what a packed field holds.
type Element uint8

const (
	NotPacked Element = iota
	PackedVarint
	PackedFixed32
	PackedFixed64
)

// A Verdict is what a field's occurrences are, pooled.
type Verdict struct {
	Kind    Kind
	Element Element // of packed numbers
	P       float64
	Others  []Alternative // best first
	Odd     int64         // occurrences whose wire type contradicts the kind
}

// A hypothesis is one reading of a length-delimited field with its cost in nats.
type hypothesis struct {
	kind    Kind
	element Element
	cost    float64
}

// JudgeField judges a field. messageCost is the cost of its payloads as messages.
func JudgeField(f *Field, messageCost float64) Verdict {
	counts := []struct {
		kind    Kind
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
	slices.SortStableFunc(counts, func(a, b struct {
		kind    Kind
		element Element
		n       int64
	},
	) int {
		return cmp.Compare(b.n, a.n)
	})
	best := counts[0]
	if f.Len == nil {
		odd := f.Occurs - best.n
		return Verdict{Kind: best.kind, Odd: odd, P: share(best.n, odd)}
	}
	list := hypotheses(f.Len, messageCost)
	if best.n == 0 {
		return judge(list, f.Len.N)
	}
	for _, h := range list {
		if h.kind == wire.KindPacked && h.element == best.element {
			// Written packed and one by one: readers accept both.
			odd := f.Occurs - best.n - f.Len.N
			return Verdict{Kind: wire.KindPacked, Element: h.element, Odd: odd, P: share(best.n+f.Len.N, odd)}
		}
	}
	// A list of numbers would have readers take the payloads for packed ones, and
	// fail; a single number, and a payload, have them skip what does not fit.
	if best.n > f.Len.N && f.Most == 1 {
		odd := f.Occurs - best.n
		return Verdict{Kind: best.kind, Odd: odd, P: share(best.n, odd)}
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

// hypotheses lists what the payloads do not refute, with costs.
func hypotheses(l *Payloads, messageCost float64) []hypothesis {
	empty := 0.0
	if l.Empty > 0 { // the second says less than the first
		empty = 1 + math.Log(float64(l.Empty))
	}
	unit := l.Novelty() / nat
	list := []hypothesis{{wire.KindBytes, NotPacked, priorBytes + emptyBytes*empty + float64(l.Raw)*unit}}
	if !l.NotText {
		list = append(list, hypothesis{wire.KindString, NotPacked, priorString + emptyString*empty + float64(l.Text)*unit})
	}
	if !l.NotMessage {
		list = append(list, hypothesis{wire.KindMessage, NotPacked, priorMessage + emptyMessage*empty + messageCost})
	}
	if l.Empty == l.N {
		return list
	}
	packed := func(e Element, prior float64, cost float64) {
		list = append(list, hypothesis{wire.KindPacked, e, prior + emptyPacked*empty + cost})
	}
	if !l.NotVarints {
		values, shape := costLengths(l.Elements)
		packed(PackedVarint, priorVarints, min(float64(l.Varints)*unit, values*nat*unit+shape))
	}
	// That all sizes are multiples of the width is a coincidence under any other hypothesis.
	sizes := float64(l.sizes())
	if !l.NotFixed32 {
		packed(PackedFixed32, priorFixed-sizes*math.Log(4), float64(min(l.Float32, l.Int32))*unit)
	}
	if !l.NotFixed64 {
		packed(PackedFixed64, priorFixed-sizes*math.Log(8), float64(min(l.Float64, l.Int64))*unit)
	}
	return list
}

// sizes counts the distinct sizes of payloads, as far as they are remembered.
func (l *Payloads) sizes() int {
	var seen []uint64
	for _, it := range l.Values.Items {
		if it.Value > 0 && !slices.Contains(seen, it.Value) {
			seen = append(seen, it.Value)
		}
	}
	return len(seen)
}

// novelty is the share of the payloads' bytes that is in the first payload of
// each value: one that repeats says nothing new under any hypothesis.
func (l *Payloads) Novelty() float64 {
	if l.Values.Full || len(l.Values.Items) == 0 {
		return 1
	}
	var first, all float64
	for _, it := range l.Values.Items {
		first += float64(it.Value) + 1 // its length is a byte too
		all += (float64(it.Value) + 1) * float64(it.Count)
	}
	return first / all
}

// judge turns costs over n samples into probabilities.
func judge(list []hypothesis, n int64) Verdict {
	slices.SortStableFunc(list, func(a, b hypothesis) int { return cmp.Compare(a.cost, b.cost) })
	scale := heat * math.Pow(float64(max(n, 1)), poolPower-1)
	var sum float64
	weight := make([]float64, len(list))
	for i, h := range list {
		weight[i] = math.Exp(-scale * (h.cost - list[0].cost))
		sum += weight[i]
	}
	v := Verdict{Kind: list[0].kind, Element: list[0].element}
	// Nothing is certain from few samples: another kind may still show.
	doubt := 0.04 / (float64(n) + 1)
	byKind := map[Kind]float64{}
	for i, h := range list {
		byKind[h.kind] += weight[i] / sum
	}
	for i, h := range list {
		p, left := byKind[h.kind]
		if !left {
			continue
		}
		delete(byKind, h.kind)
		if p = round(p*(1-doubt) + doubt/8); i == 0 {
			v.P = p
		} else if p >= 0.001 {
			v.Others = append(v.Others, Alternative{h.kind, p})
		}
	}
	slices.SortStableFunc(v.Others, func(a, b Alternative) int { return cmp.Compare(b.P, a.P) })
	return v
}

// round keeps four digits of a probability.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }

// A Cost is what samples of a message cost, in nats: their values, in which
// repetition is accounted for, and their shape, which fields there are how often.
type Cost struct {
	Values, Shape float64
}

// Of is the cost of payloads of which only a share is new.
func (c Cost) Of(novelty float64) float64 { return c.Values + c.Shape*novelty }

// A Costs computes the costs of messages, each once.
type Costs map[*Message]Cost

// Message is the cost of all samples of m.
func (c Costs) Message(m *Message) Cost {
	sum, ok := c[m]
	if ok {
		return sum
	}
	for _, n := range m.Numbers() {
		f := m.Field(n)
		one := FieldCost(f, n, m.Samples, c.Payloads(f))
		if f.Group != nil {
			inner := c.Message(f.Group)
			one.Values += costNewGroup + inner.Values
			one.Shape += inner.Shape
		}
		sum.Values += one.Values
		sum.Shape += one.Shape
	}
	c[m] = sum
	return sum
}

// Payloads is the cost of a field's payloads as messages, in nats.
func (c Costs) Payloads(f *Field) float64 {
	if f.Child == nil {
		return 0
	}
	return c.Message(f.Child).Of(f.Len.Novelty())
}

// FieldCost is the cost of one field of messages, given that of its payloads as messages.
func FieldCost(f *Field, number int32, samples int64, messageCost float64) Cost {
	c := Cost{
		Values: costNewField + costNumber*math.Log(float64(number)) + costOddWire*float64(JudgeField(f, messageCost).Odd),
		Shape:  costPresence(f.Seen, samples),
	}
	if f.Most > 1 {
		c.Shape += 0.7 * float64(f.Occurs)
	}
	if f.outOfOrder(number) {
		c.Values += costOutOfOrder
	}
	if f.Varint != nil {
		c.Values += costVarints(f.Varint)
		c.Shape += float64(f.Varint.Zero) / 2
	}
	for _, s := range []*Fixeds{f.Fixed32, f.Fixed64} {
		if s != nil {
			c.Values += costFixeds(s)
			c.Shape += float64(s.Zero)
		}
	}
	if l := f.Len; l != nil {
		least := math.Inf(1)
		for _, h := range hypotheses(l, messageCost) {
			least = min(least, h.cost)
		}
		mean := float64(l.Bytes) / float64(l.N)
		c.Values += least + float64(l.N)*l.Novelty()*(1+math.Log(1+mean)) + costOverlong*float64(l.Overlong)
	}
	return c
}

// costPresence is the cost of saying which of n messages have the field.
func costPresence(seen, n int64) float64 {
	k, rest := float64(seen), float64(max(n-seen, 0))
	total := k + rest + 1
	return -k*math.Log((k+0.5)/total) - rest*math.Log((rest+0.5)/total)
}

// outOfOrder reports whether the field ever came behind a greater number,
// which no common encoder does, but for a oneof's.
func (f *Field) outOfOrder(number int32) bool {
	for _, n := range f.Before.List() {
		if n > number {
			return true
		}
	}
	return false
}
