package kind

import (
	"math"
	"unicode/utf8"

	"unwire/decode/kind/bytecost"
	"unwire/decode/kind/mapkey"
	"unwire/decode/value"
)

// Payloads has the statistics of a field's length-delimited payloads, with a cost and a refutation flag for each
// hypothesis. A refutation is final and clears the sums of its hypothesis, so that the order of samples does not
// matter.
type Payloads struct {
	// N is the number of payloads.
	N int64 `json:"n" pb:"1"`

	// Empty is the number of empty payloads.
	Empty int64 `json:"empty,omitempty" pb:"2"`

	// Overlong is the number of length prefixes with more bytes than necessary.
	Overlong int64 `json:"overlong,omitempty" pb:"3"`

	// Bytes is the total size of all payloads in bytes.
	Bytes int64 `json:"bytes" pb:"4"`

	// Shortest is the size in bytes of the shortest payload.
	Shortest int64 `json:"shortest" pb:"5"`

	// Longest is the size in bytes of the longest payload.
	Longest int64 `json:"longest" pb:"6"`

	// Skipped is the number of payloads that were not added to Values.
	Skipped int64 `json:"skipped,omitempty" pb:"7"`

	// costSums are the summed costs of the scored payloads, i.e. those whose sampling level is at least Threshold.
	costSums

	// Threshold is the lowest sampling level whose messages are included in the sums; see
	// samplingLevel.
	Threshold int `json:"floor,omitempty" pb:"8"`

	// Levels has the sums of the payloads in messages of each sampling level above Threshold, ascending.
	Levels []levelSums `json:"tiers,omitempty" pb:"9"`

	// NotWide means that some payload does not consist of 16-bit words.
	NotWide bool `json:"not_wide,omitempty" pb:"10"`

	// NotMessage means that some payload does not parse as a message.
	NotMessage bool `json:"not_message,omitempty" pb:"11"`

	// NotMap means that the field is not a map: some payload is not a map entry, or a key occurs twice in a
	// message.
	NotMap bool `json:"not_map,omitempty" pb:"12"`

	// NotText means that some payload is not valid UTF-8.
	NotText bool `json:"not_text,omitempty" pb:"13"`

	// NotVarints means that some payload is not a packed list of varints.
	NotVarints bool `json:"not_varints,omitempty" pb:"14"`

	// NotFixed32 means that some payload is not a packed list of 4-byte values.
	NotFixed32 bool `json:"not_fixed32,omitempty" pb:"15"`

	// NotFixed64 means that some payload is not a packed list of 8-byte values.
	NotFixed64 bool `json:"not_fixed64,omitempty" pb:"16"`

	// Ascending is the number of pairs of neighbouring map keys in ascending order.
	Ascending int64 `json:"ascending,omitempty" pb:"17"`

	// Descending is the number of pairs of neighbouring map keys in descending order.
	Descending int64 `json:"descending,omitempty" pb:"18"`

	// KeyOrders records in which order pairs of map keys were seen.
	KeyOrders mapkey.Orders `json:"key_orders,omitempty" pb:"24"`

	// Ones are the bits that are set in every payload. It is empty unless all payloads have one size of at most
	// maskLen bytes.
	Ones []byte `json:"ones,omitempty" pb:"19"`

	// Anys are the bits that are set in at least one payload. It is empty in the same cases as Ones: if the
	// payloads differ in size or are longer than maskLen bytes.
	Anys []byte `json:"anys,omitempty" pb:"20"`

	// Prefix is the common beginning of all payloads, at most PrefixLen bytes.
	Prefix []byte `json:"prefix,omitempty" pb:"21"`

	// Values is a sample of the distinct payloads with their counts.
	Values *sketch `json:"values,omitempty" pb:"22"`

	// Forms counts payloads by recognisable text format, such as UUID.
	Forms value.Forms `json:"forms,omitzero" pb:"23"`

	// recycler provides the memory of further statistics. It is nil for evidence that is kept.
	recycler *recycler

	// tested caches the hypotheses about the payloads of a single message.
	tested []hypothesis

	// only is the payload, if it is the only one and a memo may already have what is inferred from it; otherwise nil.
	// place is its place in the memo, and onlyMessage means that it parses as a message.
	only        []byte
	place       int
	onlyMessage bool

	// deferred means that the statistics have only the size of the payload only. The method complete adds the rest.
	deferred bool
}

// PrefixLen is the maximum length of Prefix in bytes.
const PrefixLen = 24

// newPayloads returns statistics without payloads.
func newPayloads() *Payloads {
	return &Payloads{Shortest: math.MaxInt64, Values: &sketch{}}
}

// addPayload adds a payload that occurred in a message of the given sampling level. message means that it is not
// empty and parses as a message. If weight is 0, or if level is below the threshold, the payload may only refute
// hypotheses. Otherwise its costs are computed, and it represents weight payloads.
func (l *Payloads) addPayload(p []byte, message bool, weight int64, level int) {
	if l.N == 0 && weight == 1 && level == 0 {
		if place, ok := l.recycler.remember(p); ok {
			size := int64(len(p))
			l.only, l.onlyMessage, l.place, l.deferred = p, message, place, true
			l.N, l.Bytes, l.Shortest, l.Longest = 1, size, size, size
			return
		}
	}
	l.complete()
	l.only = nil
	l.add(p, message, weight, level)
}

// complete adds the payload whose statistics were deferred, if any.
func (l *Payloads) complete() {
	if l.deferred {
		l.deferred = false
		l.N, l.Bytes, l.Shortest, l.Longest = 0, 0, math.MaxInt64, 0
		l.add(l.only, l.onlyMessage, 1, 0)
	}
}

// add adds a payload at once. The parameters are those of addPayload.
func (l *Payloads) add(p []byte, message bool, weight int64, level int) {
	if l.N == 0 {
		l.addPrefix(p, true)
		l.addMask(p, p, true)
	}
	if weight > 0 {
		// Examples are for evidence that is kept.
		l.Values.addBytes(p, weight, l.recycler == nil)
	} else {
		l.Skipped++
	}

	// Everything is counted, but only a sample is scored.
	file := l.countPayload(p)
	switch {
	case len(p) == 0:
		l.Empty++
	case weight == 0:
		l.checkOnly(p, message)
	default:
		known := l.refute(p, message, level >= l.Threshold)
		if level < l.Threshold {
			return
		}
		l.score(&l.costSums, p, known, file, weight)
		if level > l.Threshold {
			t := l.level(level)
			t.Payloads++
			l.score(&t.costSums, p, known, file, weight)
			l.adaptThreshold()
		}
	}
}

// refute marks the hypotheses that payload p refutes; message means that it parses as a message. known reports
// whether p is certainly text or a message, which is examined only if it may refute something or if all is true.
func (l *Payloads) refute(p []byte, message, all bool) (known bool) {
	if (!l.NotText || len(p) >= bytecost.ProseLen) && !utf8.Valid(p) {
		l.notText()
	} else if len(p) >= bytecost.ProseLen && (all || !l.NotWide || !l.NotVarints || !l.NotFixed32) {
		cost, _ := bytecost.Text(p)
		known = cost <= proseCost*int64(min(len(p), bytecost.Head))
	}
	if known = known || message && len(p) >= messageLen; known {
		l.notWide()
		l.notVarints()
		l.notFixed()
		return true
	}
	l.checkNumbers(p)
	return false
}

// checkNumbers marks the hypotheses of packed numbers and 16-bit words that p refutes.
func (l *Payloads) checkNumbers(p []byte) {
	if len(p)%2 != 0 {
		l.notWide()
	}
	if len(p)%8 != 0 {
		l.notFixed64()
	}
	if len(p)%4 != 0 {
		l.notFixed()
	}
	l.widenRange(p)
}

// countPayload counts a payload and its text format, and reports whether it begins like a known file
// format.
func (l *Payloads) countPayload(p []byte) (file bool) {
	l.N++
	n := int64(len(p))
	l.Bytes += n
	l.Shortest, l.Longest = min(l.Shortest, n), max(l.Longest, n)
	if len(l.Prefix) > 0 {
		l.addPrefix(p, false)
	}
	if len(l.Ones) > 0 {
		l.addMask(p, p, false)
	}
	return n > 0 && l.Forms.Count(p)
}

// checkOnly marks the hypotheses that payload p refutes, without computing the cost of text. It is for payloads
// that are not scored. message means that p parses as a message.
func (l *Payloads) checkOnly(p []byte, message bool) {
	if message && len(p) >= messageLen {
		l.notWide()
		l.notVarints()
		l.notFixed()
	} else {
		l.checkNumbers(p)
	}
	if !l.NotText && !utf8.Valid(p) {
		l.notText()
	}
}

// scale returns two factors that correct for sampling. scale is the ratio of all bytes to the weighted sampled
// bytes, about one; thin is the average number of bytes that a sampled byte represents. If thin is above 1, the
// evidence is weaker than the weighted size suggests.
func (l *Payloads) scale() (scale, thin float64) {
	if l.Scored == 0 {
		return 1, 1
	}
	return float64(l.Bytes) / float64(l.Scored), float64(l.Uneven) / float64(l.Scored)
}

// extrapolate extrapolates the cost of the scored payloads to all payloads.
func (l *Payloads) extrapolate(cost int64) int64 {
	scale, _ := l.scale()
	return int64(float64(cost) * scale)
}

// messageLen is the minimum size in bytes of a payload that, if it parses as a message, certainly is not a list of
// numbers. At ten bytes, one list in a few thousand parses by accident, and fewer do with every further byte.
const messageLen = 64

// proseCost is the maximum cost for each byte, in thousandths of a nat, of payloads that are certainly text. They
// must also have at least bytecost.ProseLen bytes. Numbers never look like that.
const proseCost = 3400

// notWide refutes the hypothesis that payloads consist of 16-bit words.
func (l *Payloads) notWide() {
	if !l.NotWide {
		l.NotWide = true
		l.eachSums((*costSums).noWords)
	}
}

// notVarints refutes the hypothesis of packed varints.
func (l *Payloads) notVarints() {
	if !l.NotVarints {
		l.NotVarints = true
		l.eachSums((*costSums).noVarints)
	}
}

// notFixed refutes the hypotheses of packed numbers of 4 and of 8 bytes.
func (l *Payloads) notFixed() {
	if !l.NotFixed32 {
		l.NotFixed32 = true
		l.eachSums((*costSums).noFixed32)
		l.notFixed64()
	}
}

// notFixed64 refutes the hypothesis of packed numbers of 8 bytes.
func (l *Payloads) notFixed64() {
	if !l.NotFixed64 {
		l.NotFixed64 = true
		l.eachSums((*costSums).noFixed64)
	}
}

// addPrefix shortens the common prefix of the payloads to the part that p also begins with. first means
// that p is the first payload.
func (l *Payloads) addPrefix(p []byte, first bool) {
	if first {
		l.Prefix = append(l.Prefix[:0], p[:min(len(p), PrefixLen)]...)
		return
	}
	i := 0
	for i < len(l.Prefix) && i < len(p) && l.Prefix[i] == p[i] {
		i++
	}
	l.Prefix = l.Prefix[:i]
}

// notMap refutes the hypothesis that the payloads are map entries.
func (l *Payloads) notMap() {
	l.NotMap = true
	l.Ascending, l.Descending, l.KeyOrders = 0, 0, nil
}

// notText refutes the hypothesis that the payloads are text.
func (l *Payloads) notText() {
	if !l.NotText {
		l.NotText = true
		l.eachSums((*costSums).noText)
	}
}

// merge adds the statistics of other payloads.
func (l *Payloads) merge(o *Payloads) {
	if o.N == 0 {
		return
	}
	l.addPrefix(o.Prefix, l.N == 0)
	l.addMask(o.Ones, o.Anys, l.N == 0)
	l.N += o.N
	l.Empty += o.Empty
	l.Overlong += o.Overlong
	l.Bytes += o.Bytes
	l.Skipped += o.Skipped
	l.Shortest, l.Longest = min(l.Shortest, o.Shortest), max(l.Longest, o.Longest)
	l.NotMessage = l.NotMessage || o.NotMessage
	if l.NotMap || o.NotMap {
		l.notMap()
	} else {
		l.Ascending += o.Ascending
		l.Descending += o.Descending
		l.KeyOrders.Merge(o.KeyOrders)
	}
	l.mergeSums(o)
	l.Values.merge(o.Values)
	l.Forms.Merge(&o.Forms)
}

// maskLen is the maximum size in bytes of payloads whose bytes are compared position by position.
const maskLen = 64

// addMask adds payloads to Ones and Anys: ones are the bits that are set in all of them, anys those set in any.
// first means that there are no earlier payloads.
func (l *Payloads) addMask(ones, anys []byte, first bool) {
	switch {
	case first && len(ones) <= maskLen:
		l.Ones, l.Anys = append(l.Ones[:0], ones...), append(l.Anys[:0], anys...)
	// Payloads of several sizes have no common positions.
	case len(l.Ones) == 0:
	case len(ones) != len(l.Ones):
		l.Ones, l.Anys = nil, nil
	default:
		for i := range ones {
			l.Ones[i] &= ones[i]
			l.Anys[i] |= anys[i]
		}
	}
}

// The costs in nats of stating that a byte (costSameColumn) or its upper half (costSameNibble) is the same in all
// payloads.
const (
	costSameColumn = 3.0
	costSameNibble = 4.5
)

// costMasked returns the cost in nats of the payloads, all of one size, as bytes some of which are the same in all
// payloads: identifiers with a time or a version inside, headers, padding. It is infinite for texts and messages,
// which have constant bytes for other reasons. novelty is the result of Novelty.
func (l *Payloads) costMasked(novelty float64) float64 {
	n := float64(l.N) * novelty
	if len(l.Ones) == 0 || n < 1.5 || !l.NotText || !l.NotMessage {
		return math.Inf(1)
	}
	cost := float64(l.Bytes) * novelty * bytecost.RawByte / bytecost.Nat
	// Start with 8 bits per byte and subtract what constant bytes save.
	for i, one := range l.Ones {
		switch same := ^(one ^ l.Anys[i]); {
		case same == 0xff:
			cost -= max((n-1)*8*math.Ln2-costSameColumn, 0)
		case same>>4 == 0xf:
			cost -= max((n-1)*4*math.Ln2-costSameNibble, 0)
		}
	}
	return cost
}

// highSame reports whether, if the payloads consist of numbers of width bytes, only upper bytes of the numbers are
// the same in all payloads. That suggests similar numbers rather than identifiers.
func (l *Payloads) highSame(width int) bool {
	for i := range l.Ones {
		same, above := l.Ones[i] == l.Anys[i], (i+1)%width
		if same && above != 0 && i+1 < len(l.Ones) && l.Ones[i+1] != l.Anys[i+1] {
			return false
		}
	}
	return true
}
