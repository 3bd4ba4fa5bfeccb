package kind

import (
	"math"
	"slices"

	"unwire/decode/wire"
)

// hypotheses lists what the payloads do not refute, with costs.
func hypotheses(l *Payloads, messageCost float64) []hypothesis {
	empty := 0.0
	if l.Empty > 0 { // the second says less than the first
		empty = min(1+math.Log(float64(l.Empty)), mostEmpty)
	}
	files := l.files()
	list := make([]hypothesis, 0, 6)
	add := func(k wire.Kind, e Element, prior, ifEmpty, sizes, content float64) {
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
		add(wire.KindString, notPacked, priorString, emptyString, 0, text)
	}
	add(wire.KindBytes, notPacked, priorBytes, emptyBytes, l.costSize(), raw)
	if !l.NotMessage {
		add(wire.KindMessage, notPacked, priorMessage, emptyMessage, 0, messageCost)
		add(wire.KindBytes, notPacked, priorBytes+bytesOfMessage, emptyBytes, 0, messageCost)
	}
	if !l.NotText {
		rarer := bytesOfText
		if l.Forms.JSON == l.N-l.Empty {
			rarer = bytesOfJSON
		}
		add(wire.KindBytes, notPacked, priorBytes+rarer, emptyBytes, 0, text)
	}
	if l.Empty == l.N {
		return list
	}
	if block := l.block(); block >= leastBlock {
		fit := min(float64(l.sizes()-1), maxSizes) * math.Log(float64(block))
		add(wire.KindBytes, notPacked, priorBytes+bytesOfBlocks, emptyBytes, -fit, raw)
	}
	if !l.NotWide {
		add(wire.KindBytes, notPacked, priorBytes+bytesOfWords, emptyBytes, 0, float64(l.UTF16)*unit)
		add(wire.KindBytes, notPacked, priorBytes+bytesOfWords, emptyBytes, 0, float64(l.Words)*unit)
	}
	if !l.NotVarints {
		values, shape := costLengths(l.Elements, scale, thin)
		again := repeated - l.varintOrder()*novelty
		if e := l.Elements; e.N >= 16 && e.Lowest == 0 && e.Max > 0 && e.Max < smallNumber {
			again -= costSmallNumbers // few and small, as bytes hardly are
		}
		// What ends a number has its top bit clear.
		one := masked - float64(l.N-l.Empty)*novelty*math.Ln2
		add(wire.KindPacked, PackedVarint, priorVarints, emptyPacked, l.costOneSize(), min(float64(l.Varints)*unit, values*novelty+shape, again, one))
	}
	// That sizes differ and all are multiples of the width is a coincidence under
	// any other hypothesis, but for blocks of a cipher or a file.
	sizes := float64(min(max(l.sizes()-1, 0), maxSizes))
	// Numbers that are hashes.
	full := min((float64(l.Bytes)*costRawByte/nat)*novelty+costHashes, repeated)
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
		add(wire.KindBytes, notPacked, priorBytes+bytesOfNumbers, emptyBytes, fit, cost)
	}
	if !l.NotFixed32 {
		fixed(PackedFixed32, 32, l.Float32, l.Int32, l.Tops32)
		if l.Numbers > 0 {
			add(wire.KindBytes, notPacked, priorBytes+bytesOfEach, emptyBytes, -sizes*math.Log(4), float64(l.Numbers)*unit)
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
		add(wire.KindBytes, notPacked, priorBytes, emptyBytes, 0, least)
	}
	return list
}

// files reports whether all payloads but the empty ones are files.
func (l *Payloads) files() bool { return l.N > l.Empty && l.Forms.FileCount() == l.N-l.Empty }

// mostZeros bounds the share of zeros that is counted on: they stand together.
const mostZeros = 0.25

// fewVarints is from how many numbers on their order is looked at.
const fewVarints = 16

// varintOrder is how much, in nats, it tells that varints are whole, and none longer than it
// need be: bytes in any order end with some that do not end one, and have zeros behind some.
func (l *Payloads) varintOrder() float64 {
	all, ends, zeros, filled := float64(l.Scored), float64(l.Elements.N), float64(l.Elements.Zero), float64(l.N-l.Empty)
	switch {
	case ends >= all:
		return 0
	case ends < fewVarints || all > 3*ends:
		// What few bytes are like says nothing of their order.
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

// Novelty is the share of the payloads' bytes that is in the first payload of
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
