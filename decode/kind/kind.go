// Package kind decides what the fields of unknown protobuf are, from all that
// was seen of them, with a probability.
//
// Evidence pools samples of root types: Add enters a message, Merge the
// evidence of another machine. Message.At(path...) is the Field at a place;
// Field.Readings ranks how it can be read, each with its probability and its
// pieces of evidence. A Reader gives the readings of the nodes of one tree, by
// its own repeats or by Evidence of a whole capture.
//
// Source: RESEARCH.md#inference
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
	mostEmpty                  = 2.4 // times one that all empty payloads tell: who writes one writes many

	// Costs of the shape of a message: a field is described once, its presence
	// and its length every time.
	costNewField   = 2.3
	costNumber     = 1.6 // times the logarithm of how far its number is from the one before
	costOutOfOrder = 2.5
	costOddWire    = 8.0 // an occurrence with another wire type than the field's
	costNewGroup   = 12.0
	costFixedField = 2.5 // fixed-width fields are rarer than others
	costOverlong   = 8.0

	bytesOfText    = 2.5 // bytes that hold text, a message or numbers are rarer than other bytes
	bytesOfJSON    = 1.3
	bytesOfMessage = 2.5
	bytesOfWords   = 1.0
	bytesOfNumbers = 4.2
	bytesOfEach    = 5.4 // of other numbers in each
	bytesOfBlocks  = 1.5 // and so are those of a cipher
	costMagic      = 10  // of anything else that starts as a file or a compressed frame does
	costShort      = 2.0 // bytes that are too few for what bytes are used for
	costDigest     = 3.3
	costUneven     = 1.6
	costHashes     = 3.0
	costRepeated   = 0.5 // that numbers repeat byte by byte

	smallNumber      = 32
	costSmallNumbers = 2.5
	mixedBonus       = 2.5 // for packed, of a field whose numbers also came one by one
	mixedMost        = 3.0 // and more the more of them
	costSameSize     = 2.0 // that numbers of several lengths have one size together
	maxSizes         = 6   // sizes that count as a coincidence
)

// Samples of one field resemble each other, so their costs do not simply add
// up to certainty: a sum over n samples counts as n to the power of poolPower.
const (
	poolPower = 0.75
	heat      = 0.55 // how much of a difference in cost is believed

	doubtOfOne = 0.015 // what is held back for what was not thought of
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
	cost    float64 // all of it

	prior, empty, sizes float64 // parts of cost
	file                float64 // the part of prior that tells against all but bytes
}

// JudgeField judges a field. messageCost is the cost of its payloads as messages.
func JudgeField(f *Field, messageCost float64) Verdict {
	counts := [...]struct {
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
	best := counts[0]
	for _, c := range counts[1:] {
		if c.n > best.n {
			best = c
		}
	}
	if f.Len == nil {
		odd := f.Occurs - best.n
		return Verdict{Kind: best.kind, Odd: odd, P: share(best.n, odd)}
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
		empty = min(1+math.Log(float64(l.Empty)), mostEmpty)
	}
	files := l.files()
	list := make([]hypothesis, 0, 6)
	add := func(k Kind, e Element, prior, ifEmpty, sizes, content float64) {
		h := hypothesis{kind: k, element: e, prior: prior, empty: ifEmpty * empty, sizes: sizes}
		if files && k != wire.KindBytes {
			h.file = costMagic
			h.prior += h.file
		}
		h.cost = h.prior + h.empty + h.sizes + content
		list = append(list, h)
	}
	novelty := l.Novelty()
	scale, thin := l.scale()
	unit := novelty / nat * scale
	masked := l.costMasked(novelty)
	repeated := float64(l.Repeated)*unit + costRepeated
	raw := min(float64(l.Raw)*unit, masked)
	text := float64(l.Text) * unit
	if !l.NotText {
		add(wire.KindString, NotPacked, priorString, emptyString, 0, text)
	}
	add(wire.KindBytes, NotPacked, priorBytes, emptyBytes, l.costSize(), raw)
	if !l.NotMessage {
		add(wire.KindMessage, NotPacked, priorMessage, emptyMessage, 0, messageCost)
		add(wire.KindBytes, NotPacked, priorBytes+bytesOfMessage, emptyBytes, 0, messageCost)
	}
	if !l.NotText {
		rarer := bytesOfText
		if l.Forms.JSON == l.N-l.Empty {
			rarer = bytesOfJSON
		}
		add(wire.KindBytes, NotPacked, priorBytes+rarer, emptyBytes, 0, text)
	}
	if l.Empty == l.N {
		return list
	}
	if block := l.block(); block >= leastBlock {
		fit := min(float64(l.sizes()-1), maxSizes) * math.Log(float64(block))
		add(wire.KindBytes, NotPacked, priorBytes+bytesOfBlocks, emptyBytes, -fit, raw)
	}
	if !l.NotWide {
		add(wire.KindBytes, NotPacked, priorBytes+bytesOfWords, emptyBytes, 0, float64(l.UTF16)*unit)
		add(wire.KindBytes, NotPacked, priorBytes+bytesOfWords, emptyBytes, 0, float64(l.Words)*unit)
	}
	if !l.NotVarints {
		values, shape := costLengths(l.Elements, scale, thin)
		again := repeated - l.varintOrder()*novelty
		if e := l.Elements; e.N >= 16 && e.Lowest == 0 && e.Max > 0 && e.Max < smallNumber {
			again -= costSmallNumbers // few and small, as bytes hardly are
		}
		one := masked - float64(l.N-l.Empty)*novelty*math.Ln2 // what ends a number has its top bit clear
		add(wire.KindPacked, PackedVarint, priorVarints, emptyPacked, l.costOneSize(), min(float64(l.Varints)*unit, values*novelty+shape, again, one))
	}
	// That sizes differ and all are multiples of the width is a coincidence under
	// any other hypothesis, but for blocks of a cipher or a file.
	sizes := float64(min(max(l.sizes()-1, 0), maxSizes))
	full := min((float64(l.Bytes)*costRawByte/nat)*novelty+costHashes, repeated) // numbers that are hashes
	fixed := func(e Element, width int, reals, ints int64, tops *histogram) {
		fit := -sizes * math.Log(float64(width)/8)
		cost := min(float64(min(reals, ints))*unit, costTops(tops, width, l.Bytes, thin)*novelty, full)
		switch likeNumbers := l.highSame(width / 8); {
		case likeNumbers:
			cost = min(cost, masked)
		default:
			cost = min(cost, masked+costHashes)
		}
		add(wire.KindPacked, e, priorFixed, emptyPacked, fit, cost)
		add(wire.KindBytes, NotPacked, priorBytes+bytesOfNumbers, emptyBytes, fit, cost)
	}
	if !l.NotFixed32 {
		fixed(PackedFixed32, 32, l.Float32, l.Int32, l.Tops32)
		if l.Numbers > 0 {
			add(wire.KindBytes, NotPacked, priorBytes+bytesOfEach, emptyBytes, -sizes*math.Log(4), float64(l.Numbers)*unit)
		}
	}
	if !l.NotFixed64 {
		fixed(PackedFixed64, 64, l.Float64, l.Int64, l.Tops64)
	}
	if files { // which hold anything
		least := raw
		for i := range list {
			h := &list[i]
			least = min(least, h.cost-h.prior-h.empty-h.sizes)
		}
		add(wire.KindBytes, NotPacked, priorBytes, emptyBytes, 0, least)
	}
	return list
}

// files reports whether all payloads but the empty ones are files.
func (l *Payloads) files() bool { return l.N > l.Empty && l.Forms.files() == l.N-l.Empty }

// mostZeros bounds the share of zeros that is counted on: they stand together.
const mostZeros = 0.25

// fewVarints is from how many numbers on their order is looked at.
const fewVarints = 16

// varintOrder is how much, in nats, it tells that varints are whole, and none longer
// than it need be: bytes in any order end with some that do not end one, and have
// zeros behind some.
func (l *Payloads) varintOrder() float64 {
	all, ends, zeros, filled := float64(l.Scored), float64(l.Elements.N), float64(l.Elements.Zero), float64(l.N-l.Empty)
	switch {
	case ends >= all:
		return 0
	case ends < fewVarints || all > 3*ends: // what few bytes are like says nothing of their order
		return filled * math.Ln2
	}
	return -filled*math.Log(ends/all) - (1-ends/all)*float64(l.Bytes)*math.Log1p(-min(zeros/all, mostZeros))
}

// costOneSize is what it tells against numbers of several lengths that all payloads
// have one size: those of identifiers do.
func (l *Payloads) costOneSize() float64 {
	if l.Shortest < l.Longest || l.Elements.N >= l.Scored || l.Longest != 8 && !isDigestLen(l.Longest) {
		return 0
	}
	return costSameSize * min(float64(len(l.Values.Items)-1), 4)
}

// leastBlock is the least size of a block of a cipher, or a record of a file.
const leastBlock = 16

// block is what all sizes of payloads are multiples of, if there are several.
func (l *Payloads) block() (block uint64) {
	if l.sizes() < 2 {
		return 0
	}
	for _, it := range l.Values.Items {
		for a := it.Value; a > 0; {
			block, a = a, block%a
		}
	}
	return block
}

// costSize is what the sizes of payloads say of bytes: digests, keys and
// identifiers have one size, few have an uneven one, or three bytes.
func (l *Payloads) costSize() float64 {
	switch {
	case l.Longest < 4:
		return costShort
	case l.Shortest < l.Longest && l.Longest < 12:
		return costShort * float64(12-l.Longest) / 12
	case l.Shortest < l.Longest:
		return 0
	case l.Longest == 8: // one number of eight bytes is as long
		return -min(math.Log(float64(l.N)), 3)
	case isDigestLen(l.Longest):
		return -costDigest - min(math.Log(float64(l.N)), 3)/2
	case l.Longest < 64 && l.Longest%4 != 0:
		return costUneven
	}
	return 0
}

// isDigestLen reports the sizes of digests, keys and identifiers.
func isDigestLen(n int64) bool {
	switch n {
	case 12, 16, 20, 24, 28, 32, 48, 64:
		return true
	}
	return false
}

// costTops is the cost, in nats, of fixed values of so many bits in so many bytes
// by the histogram of their top six bits; the others are free. The histogram is
// of the payloads' heads.
func costTops(h *histogram, width int, size int64, thin float64) float64 {
	n, used := 0.0, 0.0
	for _, c := range h {
		n += float64(c)
		if c > 0 {
			used++
		}
	}
	cost := 0.0
	for _, c := range h {
		if c > 0 {
			cost -= float64(c) * math.Log(float64(c)/n)
		}
	}
	all := float64(size) * 8 / float64(width)
	return (cost/n+float64(width-6)*math.Ln2)*all + costUnseen(used, all/n*thin) + used*(math.Log(64)+0.5*math.Log(n+1))
}

// costUnseen is what values cost more, where there are times as many as were counted:
// a histogram of so many classes fits those that made it better than others.
func costUnseen(used, times float64) float64 {
	return max(used-1, 0) * max(times-1, 0)
}

// sizes counts the distinct sizes of payloads, as far as they are remembered.
func (l *Payloads) sizes() int {
	seen := make([]uint64, 0, sketchSize)
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

// judge turns costs over n samples into probabilities: how common a kind is
// counts in full, the content less, the more samples there are.
func judge(list []hypothesis, n int64) Verdict {
	scale := heat * math.Pow(float64(max(n, 1)), poolPower-1)
	score := func(h *hypothesis) float64 {
		return -(h.prior + (h.empty+h.sizes)*heat + scale*(h.cost-h.prior-h.empty-h.sizes))
	}
	best := math.Inf(-1)
	for i := range list {
		best = max(best, score(&list[i]))
	}
	type one struct {
		kind        Kind
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
	v := Verdict{Kind: kinds[0].kind, Element: kinds[0].element}
	// Nothing is certain from few samples: another kind may still show.
	doubt := doubtOfOne / (float64(n) + 1)
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

// A Cost is what samples of a message cost, in nats: what is described once; the
// values, one by one and with their repetition accounted for; and the shape,
// which fields there are how often.
type Cost struct {
	Once, Each, Values, Shape float64
}

// Of is the cost of payloads of which only a share is new: there is no need to
// tell twice what repeats, be it the payload or the values in it.
func (c Cost) Of(novelty float64) float64 {
	return c.Once + min(c.Values, c.Each*novelty) + c.Shape*novelty
}

// Add adds the cost of what is described beside it.
func (c *Cost) Add(o Cost) {
	c.Once += o.Once
	c.Each += o.Each
	c.Values += o.Values
	c.Shape += o.Shape
}

// A Costs computes the costs of messages, each once.
type Costs map[*Message]Cost

// Message is the cost of all samples of m.
func (c Costs) Message(m *Message) Cost {
	sum, ok := c[m]
	if ok {
		return sum
	}
	tally := NewTally(m.Samples)
	for _, n := range m.Numbers() {
		f := m.Field(n)
		tally.Add(f, n, c.Payloads(f))
		if f.Group != nil {
			inner := c.Message(f.Group)
			inner.Once += costNewGroup
			sum.Add(inner)
		}
	}
	sum.Add(tally.Sum())
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

// A Tally sums the cost of the fields of one message type.
type Tally struct {
	samples int64
	last    int32 // the number that was added last
	sum     Cost
	ends    []end
}

// An end is what the lengths of a field's payloads cost.
type end struct {
	seen         int64
	each, values float64 // of one
}

// NewTally is for fields of so many messages.
func NewTally(samples int64) *Tally { return &Tally{samples: samples} }

// Add adds a field, given the cost of its payloads as messages. Numbers ascend.
func (t *Tally) Add(f *Field, number int32, messageCost float64) {
	c := Cost{
		Once:  costNewField + costNumber*math.Log(float64(number-t.last)),
		Shape: costPresence(f.Seen, t.samples),
	}
	t.last = number
	if !f.pure() {
		c.Once += costOddWire * float64(JudgeField(f, messageCost).Odd)
	}
	if f.Most > 1 {
		c.Shape += 0.7 * float64(f.Occurs)
	}
	if f.outOfOrder(number) {
		c.Once += costOutOfOrder
	}
	if f.Varint != nil {
		each, values := costVarints(f.Varint)
		c.Each += each
		c.Values += values
		c.Shape += float64(f.Varint.Zero) / 2
	}
	for _, s := range []*Fixeds{f.Fixed32, f.Fixed64} {
		if s != nil {
			each, values := costFixeds(s)
			if c.Once += costFixedField; s.random() {
				c.Once += costHashes
			}
			c.Each += each
			c.Values += values
			c.Shape += float64(s.Zero)
		}
	}
	last := end{seen: f.Seen}
	if l := f.Len; l != nil {
		least := math.Inf(1)
		for _, h := range hypotheses(l, messageCost) {
			least = min(least, h.cost)
		}
		mean := float64(l.Bytes) / float64(l.N)
		novelty := l.Novelty()
		size := 1 + math.Log(1+mean)
		odd := costOverlong * float64(l.Overlong)
		c.Each += least/novelty + size*float64(l.N) + odd
		c.Values += least + size*float64(l.N)*novelty + odd
		last.each, last.values = size, size*novelty
	}
	t.ends = append(t.ends, last)
	t.sum.Add(c)
}

// Sum is the cost of the messages. How long a message is is known, so the length of
// what ends it need not be told: that it reaches just to the end is no accident.
func (t *Tally) Sum() Cost {
	sum, rest := t.sum, t.samples
	for _, e := range slices.Backward(t.ends) {
		n := min(rest, e.seen)
		rest -= n
		sum.Each -= float64(n) * e.each
		sum.Values -= float64(n) * e.values
	}
	return sum
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
