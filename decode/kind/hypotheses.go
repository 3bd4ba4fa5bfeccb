package kind

import (
	"math"
	"slices"

	"unwire/decode/kind/bytecost"
	"unwire/decode/wire"
)

// mostHypotheses is the number of hypotheses about a length-delimited field if no payload refutes any.
const mostHypotheses = 16

// hypotheses returns the possible types of a length-delimited field that no payload refutes, with their description
// lengths. messageCost is the description length of the payloads as messages, in nats. The result must not be
// changed, and is valid until the next call. The statistics of a single message are complete, so the hypotheses about
// them are computed once.
func (l *Payloads) hypotheses(messageCost float64) []hypothesis {
	if l.recycler == nil {
		return l.testHypotheses(make([]hypothesis, 0, mostHypotheses), messageCost)
	}
	if l.only != nil {
		k := l.recycler.memo.payload(l.only, l.place)
		if len(k.tested) == 0 {
			l.complete()
			k.tested = l.testHypotheses(k.tested, messageCost)
		}
		return k.tested
	}
	if len(l.tested) == 0 {
		l.complete()
		l.tested = l.testHypotheses(l.tested, messageCost)
	}
	return l.tested
}

// testHypotheses appends to list, which is empty, the hypotheses that no payload refutes. See hypotheses.
func (l *Payloads) testHypotheses(list []hypothesis, messageCost float64) []hypothesis {
	c := newContenders(l, list)
	// Payloads that parse as messages, too, are judged by their characters: nothing else separates the two.
	clean := l.cleanText() && l.NotMessage
	c.addPlain(messageCost, clean)
	if l.Empty == l.N {
		return c.list
	}
	c.addBlocks()
	c.addVarints()
	c.addFixed()
	if clean {
		describeTextAsBest(c.list)
	}
	// Files may contain anything.
	if c.allFiles {
		least := c.raw
		for i := range c.list {
			h := &c.list[i]
			least = min(least, h.cost-h.prior-h.empty-h.sizes)
		}
		c.addHypothesis(wire.KindBytes, notPacked, priorBytes, emptyBytes, 0, least)
	}
	return c.list
}

// contenders collects the hypotheses about the type of a length-delimited field, with quantities from which their
// costs are computed.
type contenders struct {
	// Payloads are the statistics of the field's payloads, from which the costs of the hypotheses are computed.
	*Payloads

	// list are the hypotheses about the field's type that were added so far, with their costs.
	list []hypothesis

	// empty is the factor by which the cost of one empty payload is multiplied. It grows with the logarithm of
	// their number.
	empty float64

	// allFiles is set if all payloads that are not empty have a file format.
	allFiles bool

	// novelty is the share, from 0 to 1, of the payloads' bytes that belong to the first occurrence of each value. factor
	// is the ratio of all bytes to the weighted sampled bytes, about 1; costs of the sample are multiplied by it. thin is
	// the average number of bytes that a sampled byte represents; above 1, the evidence counts less.
	novelty, factor, thin float64

	// unit converts a cost sum of the sampled payloads (in thousandths of a nat) to nats for all payloads, without
	// repeated values.
	unit float64

	// masked is the cost in nats of the payloads as bytes some of which are the same in all payloads, as in
	// identifiers with a time inside; +Inf if that is not possible.
	masked float64

	// repeated is the cost in nats as bytes, using only regularities that encoded numbers share.
	repeated float64

	// raw is the cost in nats as bytes without known structure, or as masked if that is less.
	raw float64

	// differ is the number of distinct payload sizes minus one; addFixed sets it. If the sizes differ
	// and all are multiples of the width of a number, that supports packed numbers: under other
	// hypotheses, except blocks of a cipher or a file, it would be a coincidence.
	differ float64
}

// newContenders returns contenders for the payloads l without hypotheses. list is the memory for them.
func newContenders(l *Payloads, list []hypothesis) contenders {
	c := contenders{Payloads: l, list: list, allFiles: l.files(), novelty: l.Novelty()}
	// An empty payload is evidence, and further ones add less.
	if l.Empty > 0 {
		c.empty = min(1+bytecost.Log(float64(l.Empty)), mostEmpty)
	}
	c.factor, c.thin = l.scale()
	c.unit = c.novelty / bytecost.Nat * c.factor
	c.masked = l.costMasked(c.novelty)
	c.repeated = float64(l.Repeated)*c.unit + costRepeated
	c.raw = min(float64(l.Raw)*c.unit, c.masked)
	return c
}

// addHypothesis adds the hypothesis that the type is k, with elements e if it is packed. Its cost in nats is the
// sum of prior (how rare the type is), ifEmpty for empty payloads, sizes, and content.
func (c *contenders) addHypothesis(k wire.Kind, e Element, prior, ifEmpty, sizes, content float64) {
	h := hypothesis{kind: k, element: e, prior: prior, empty: ifEmpty * c.empty, sizes: sizes}
	if c.allFiles && k != wire.KindBytes {
		h.file = costMagic
		h.prior += h.file
	}
	h.cost = h.prior + h.empty + h.sizes + content
	c.list = append(c.list, h)
}

// addPlain adds the hypotheses of raw bytes, text and messages. Bytes may also contain text or a message.
// messageCost is the description length of the payloads as messages, in nats. clean means that all payloads are
// text and none of them can be a message.
func (c *contenders) addPlain(messageCost float64, clean bool) {
	text, sizes := float64(c.Text)*c.unit, c.costSize()
	if clean {
		// Usual sizes of digests are no evidence for bytes if all payloads are text, which has any size.
		sizes = max(sizes, 0)
		text = min(text, c.raw)
	}
	if !c.NotText {
		c.addHypothesis(wire.KindString, notPacked, priorString, emptyString, 0, text)
	}
	c.addHypothesis(wire.KindBytes, notPacked, priorBytes, emptyBytes, sizes, c.raw)
	if !c.NotMessage {
		c.addHypothesis(wire.KindMessage, notPacked, priorMessage, emptyMessage, 0, messageCost)
		c.addHypothesis(wire.KindBytes, notPacked, priorBytes+bytesOfMessage, emptyBytes, 0, messageCost)
	}
	if !c.NotText {
		rarer := bytesOfText
		if c.Forms.JSON == c.N-c.Empty {
			rarer = bytesOfJSON
		}
		c.addHypothesis(wire.KindBytes, notPacked, priorBytes+rarer, emptyBytes, 0, text)
	}
}

// addBlocks adds the hypotheses that bytes consist of blocks or of 16-bit words.
func (c *contenders) addBlocks() {
	if block := c.block(); block >= leastBlock {
		// Sizes that are multiples of a block are a coincidence unless there is a block.
		fit := min(float64(c.sizes()-1), maxSizes) * bytecost.Log(float64(block))
		c.addHypothesis(wire.KindBytes, notPacked, priorBytes+bytesOfBlocks, emptyBytes, -fit, c.raw)
	}
	if !c.NotWide {
		c.addHypothesis(wire.KindBytes, notPacked, priorBytes+bytesOfWords, emptyBytes, 0, float64(c.UTF16)*c.unit)
		c.addHypothesis(wire.KindBytes, notPacked, priorBytes+bytesOfWords, emptyBytes, 0, float64(c.Words)*c.unit)
	}
}

// addVarints adds the hypothesis of packed varints.
func (c *contenders) addVarints() {
	if c.NotVarints {
		return
	}
	values, shape := costLengths(c.Elements, c.factor, c.thin)
	again := c.repeated - c.varintOrder()*c.novelty
	if e := c.Elements; e.N >= 16 && e.Lowest == 0 && e.Max > 0 && e.Max < smallNumber {
		// Few small numbers are unusual for arbitrary bytes.
		again -= costSmallNumbers
	}
	// The last byte of each number has its top bit clear.
	one := c.masked - float64(c.N-c.Empty)*c.novelty*math.Ln2
	c.addHypothesis(wire.KindPacked, PackedVarint, priorVarints+c.costZeroColumns(), emptyPacked, c.costOneSize(), min(float64(c.Varints)*c.unit, values*c.novelty+shape, again, one))
}

// addFixed adds the hypotheses of packed 4-byte and 8-byte numbers.
func (c *contenders) addFixed() {
	c.differ = float64(min(max(c.sizes()-1, 0), maxSizes))
	if !c.NotFixed32 {
		c.addWidth(PackedFixed32, 32, c.Float32, c.Int32, c.Tops32)
		if c.Numbers > 0 {
			c.addHypothesis(wire.KindBytes, notPacked, priorBytes+bytesOfEach, emptyBytes, -c.differ*bytecost.Log(4), float64(c.Numbers)*c.unit)
		}
	}
	if !c.NotFixed64 {
		c.addWidth(PackedFixed64, 64, c.Float64, c.Int64, c.Tops64)
	}
}

// addWidth adds the hypothesis of packed numbers of width bits. reals and ints are the cost sums as floating-point
// numbers and as integers, and tops counts the numbers' top bits.
func (c *contenders) addWidth(e Element, width int, reals, ints int64, tops *histogram) {
	// Numbers that are hashes cost as much as raw bytes.
	whole := min(float64(ints)*c.unit, costTops(tops, width, c.Bytes, c.thin)*c.novelty, (float64(c.Bytes)*bytecost.RawByte/bytecost.Nat)*c.novelty+costHashes, c.repeated, c.masked+costHashes)
	if c.highSame(width / 8) {
		whole = min(whole, c.masked)
	}
	// A list that always has the size of one number is rarer than bytes that contain a number.
	asReal, single := float64(reals)*c.unit, 0.0
	least := min(asReal, whole)
	cost := least
	if c.oneNumber(width / 8) {
		if cost, single = asReal, costSingleReal; whole+costSingleNumber < cost+single {
			cost, single = whole, costSingleNumber
		}
	}
	fit := -c.differ * bytecost.Log(float64(width)/8)
	c.addHypothesis(wire.KindPacked, e, priorFixed+single+c.costAlwaysOne(width/8), emptyPacked, fit, cost)
	c.addHypothesis(wire.KindBytes, notPacked, priorBytes+bytesOfNumbers, emptyBytes, fit, least)
}

// cleanText reports whether all payloads are text without control characters, and not all are empty.
func (l *Payloads) cleanText() bool { return !l.NotText && l.Control == 0 && l.N > l.Empty }

// describeTextAsBest reduces the cost of text to the shortest description of the content that a hypothesis other
// than message has. The characters of patterns, tables and lists of signs follow no common statistics, so these
// must not reject text that nothing refutes: the priors decide.
func describeTextAsBest(list []hypothesis) {
	content := func(h *hypothesis) float64 { return h.cost - h.prior - h.empty - h.sizes }
	least := math.Inf(1)
	for i := range list {
		if h := &list[i]; h.kind == wire.KindBytes || h.kind == wire.KindPacked {
			least = min(least, content(h)+min(h.sizes, 0))
		}
	}
	for i := range list {
		if h := &list[i]; h.kind == wire.KindString && content(h) > least {
			h.cost = h.prior + h.empty + h.sizes + least
		}
	}
}

// oneNumber reports whether all payloads have width bytes, or eight, which are rather one number than two of four bytes.
func (l *Payloads) oneNumber(width int) bool {
	return l.Shortest == l.Longest && (l.Longest == int64(width) || l.Longest == 8)
}

// costAlwaysOne returns the extra cost in nats of a packed list of elements of width bytes that has the size of one
// number each time. It grows with the number of payloads.
func (l *Payloads) costAlwaysOne(width int) float64 {
	if l.oneNumber(width) {
		return min(bytecost.Log(float64(max(len(l.Values.Items), 1))), mostAlwaysOne)
	}
	return 0
}

// costZeroColumns returns the extra cost in nats of packed varints if all payloads have 4 or 8 bytes and begin or
// end with two zero bytes: these are numbers of fixed width in either byte order.
func (l *Payloads) costZeroColumns() float64 {
	n := len(l.Anys)
	if n != 4 && n != 8 {
		return 0
	}
	if l.Anys[0]|l.Anys[1] == 0 || l.Anys[n-1]|l.Anys[n-2] == 0 {
		return costZeroBytes
	}
	return 0
}

// files reports whether all payloads that are not empty begin like a known file format.
func (l *Payloads) files() bool { return l.N > l.Empty && l.Forms.FileCount() == l.N-l.Empty }

// mostZeros is the maximum share of zero bytes that varintOrder assumes for arbitrary bytes, because zeros are
// clustered.
const mostZeros = 0.25

// fewVarints is the minimum number of varints whose positions in the payloads are evidence.
const fewVarints = 16

// varintOrder returns the evidence in nats for packed varints from the fact that all are complete and minimal.
// Arbitrary bytes would often end inside a varint and have zero bytes at the end of one.
func (l *Payloads) varintOrder() float64 {
	all, ends, zeros, filled := float64(l.Scored), float64(l.Elements.N), float64(l.Elements.Zero), float64(l.N-l.Empty)
	switch {
	case ends >= all:
		return 0
	case ends < fewVarints || all > 3*ends:
		// Few bytes are no evidence about their order.
		return filled * math.Ln2
	}
	return -filled*bytecost.Log(ends/all) - (1-ends/all)*float64(l.Bytes)*math.Log1p(-min(zeros/all, mostZeros))
}

// costOneSize returns the extra cost in nats of packed varints if all payloads have the same size, as identifiers
// do.
func (l *Payloads) costOneSize() float64 {
	if l.Shortest < l.Longest || l.Elements.N >= l.Scored || l.Longest != 2 && l.Longest != 4 && l.Longest != 8 && !isDigestLen(l.Longest) {
		return 0
	}
	return costSameSize * min(float64(len(l.Values.Items)-1), 4)
}

// leastBlock is the minimum size in bytes that counts as the block of a cipher or the record of a file.
const leastBlock = 16

// block returns the greatest common divisor of the payloads' sizes, or 0 if all have the same size.
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

// costSize returns the cost in nats of the payloads' sizes under the hypothesis of bytes; it may be negative.
// Digests, keys and identifiers have one size, and uneven or tiny sizes are rare.
func (l *Payloads) costSize() float64 {
	switch {
	case l.Longest < 4:
		return costShort
	case l.Shortest < l.Longest && l.Longest < 12:
		return costShort * float64(12-l.Longest) / 12
	case l.Shortest < l.Longest:
		return 0
	// A packed number of eight bytes has the same size.
	case l.Longest == 8:
		return -min(bytecost.Log(float64(l.N)), 3)
	case isDigestLen(l.Longest):
		return -costDigest - min(bytecost.Log(float64(l.N)), 3)/2
	case l.Longest < 64 && l.Longest%4 != 0:
		return costUneven
	}
	return 0
}

// isDigestLen reports whether n is a usual size of digests, keys and identifiers.
func isDigestLen(n int64) bool {
	switch n {
	case 12, 16, 20, 24, 28, 32, 48, 64:
		return true
	}
	return false
}

// costTops returns the cost in nats of fixed-width values, estimated from the histogram h of their top six bits;
// the other bits cost one bit each. width is in bits. size is the size of all payloads in bytes, while the
// histogram covers only their beginnings. thin is as in Payloads.scale.
func costTops(h *histogram, width int, size int64, thin float64) float64 {
	left := int64(0)
	for _, c := range h {
		left += c
	}
	n, used, cost := float64(left), 0.0, 0.0
	for i := 0; left > 0; i++ {
		if c := h[i]; c > 0 {
			left -= c
			used++
			cost -= float64(c) * bytecost.Log(float64(c)/n)
		}
	}
	all := float64(size) * 8 / float64(width)
	return (cost/n+float64(width-6)*math.Ln2)*all + costUnseen(used, all/n*thin) + used*(bytecost.Log(64)+0.5*bytecost.Log(n+1))
}

// costUnseen returns the correction, in nats, of a cost that a histogram of a sample yields. A histogram with used
// classes fits its own sample better than the remaining data. times is the ratio of all values to the counted ones.
func costUnseen(used, times float64) float64 {
	return max(used-1, 0) * max(times-1, 0)
}

// sizes returns the number of distinct sizes of the payloads in the sketch, without empty ones.
func (l *Payloads) sizes() int {
	seen := make([]uint64, 0, sketchSize)
	for _, it := range l.Values.Items {
		if it.Value > 0 && !slices.Contains(seen, it.Value) {
			seen = append(seen, it.Value)
		}
	}
	return len(seen)
}

// Novelty returns the share, from 0 to 1, of the payloads' bytes that belong to the first occurrence of each value.
// Repetitions are no evidence for any hypothesis.
func (l *Payloads) Novelty() float64 {
	if l.Values.Full || len(l.Values.Items) == 0 {
		return 1
	}
	var first, all float64
	for _, it := range l.Values.Items {
		// The length prefix is a byte, too.
		first += float64(it.Value) + 1
		all += (float64(it.Value) + 1) * float64(it.Count)
	}
	return first / all
}
