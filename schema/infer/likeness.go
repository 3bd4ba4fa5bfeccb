package infer

import (
	"math"

	"unwire/decode/kind"
	"unwire/decode/value"
	"unwire/decode/wire"
	"unwire/schema/infer/sizes"
)

// Evidence, in nats, for or against merging two classes (candidate message types) from the values of a field
// that both have: log-likelihood ratios of the hypothesis that both are one type. The numbers were chosen by
// hand on the tuning corpora.
const (
	// bitAgainstNumber is the evidence against merging two classes from a field that is at most 1 in
	// one class and always greater in the other.
	bitAgainstNumber = 1.8
	// sameLengths is the evidence for merging from messages of the same average length.
	sameLengths = 0.2
	// otherLengths is the maximum evidence against merging from different average lengths.
	otherLengths = 0.6
	// sameEntrySizes is the maximum evidence for merging from the sizes of values in possible entries of maps.
	sameEntrySizes = 0.2
	// sameForm is the evidence for merging from texts that all have one format, such as UUID; otherForm
	// is the evidence against it if only the texts of one class have the format.
	sameForm, otherForm = 1.0, 1.2
	// commonValue is the evidence for merging from each value that occurs in both and is long enough not to be
	// a coincidence. mostCommon is the maximum number of such values that count.
	commonValue, mostCommon = 0.7, 3
	// listAgainstSingle scales the evidence against merging from a field that is a list in one class and occurs
	// once in all messages of the other. mostListAgainst is its maximum.
	listAgainstSingle, mostListAgainst = 0.6, 2.4
)

// numberEvidence returns the evidence, in nats, for merging two classes because both have a field with the
// number n. High numbers rarely coincide.
func numberEvidence(n int32) float64 { return min(0.8+0.45*math.Log(float64(n)), 3) }

// fieldLikeness returns the evidence, in nats, for merging two classes from the values of one field, which has
// the same number and kind in both. entries means that both classes can be entries of maps, of which each map has a
// type of its own: what is as long there is as likely two maps.
func fieldLikeness(x, y *classField, entries bool) float64 {
	most := math.Inf(1)
	if entries {
		most = sameEntrySizes
	}
	score := listEvidence(x, y)
	if bitBesideNumber(x.Varint, y.Varint) {
		score -= bitAgainstNumber
	}
	if x.Varint != nil && y.Varint != nil {
		score += min(magnitudeEvidence(x.Varint, y.Varint), most)
	}
	if x.Len != nil && y.Len != nil && x.judgement.Kind == wire.KindString {
		score += formEvidence(x.Len, y.Len)
	}
	// Equal values have equal lengths, which say nothing more.
	length, values := min(lengthEvidence(x, y), most), valueEvidence(x, y)
	if values > 0 && length > 0 {
		return score + max(values, length)
	}
	return score + values + length
}

// bitBesideNumber reports whether one of two fields is always 0 or 1, and the other always greater.
func bitBesideNumber(x, y *kind.Varints) bool {
	return x != nil && y != nil && (x.Max <= 1 && y.Min > 1 || y.Max <= 1 && x.Min > 1)
}

// magnitudeEvidence returns the evidence, in nats, for or against merging from the lengths in bits of two fields'
// numbers.
func magnitudeEvidence(x, y *kind.Varints) float64 {
	var a, b sizes.Counts
	for bits := range a {
		a[bits], b[bits] = float64(x.Bits[bits]), float64(y.Bits[bits])
	}
	return sizes.Evidence(a, b)
}

// payloadSizes returns the sizes of the distinct payloads in the sample.
func payloadSizes(l *kind.Payloads) (counts sizes.Counts) {
	for _, it := range l.Values.Items {
		counts[sizes.OfLength(it.Value)]++
	}
	return counts
}

// listEvidence returns the evidence, in nats, against merging (0 or less) from one of two fields being a list
// and the other not.
func listEvidence(x, y *classField) float64 {
	if x.Most > y.Most {
		x, y = y, x
	}
	if x.Most > 1 || y.Most < 2 {
		return 0
	}
	// A list that is seldom longer than one element may be single in a few messages.
	long := 1 - math.Exp(-(float64(y.Occurs)/float64(max(y.Seen, 1)) - 1))
	return -min(listAgainstSingle*long*math.Log(1+float64(x.Seen))*2, mostListAgainst)
}

// formEvidence returns the evidence, in nats, for or against merging from the formats, such as UUID, of two
// fields' texts.
func formEvidence(x, y *kind.Payloads) float64 {
	if x.N < 2 || y.N < 2 {
		return 0
	}
	a, b := commonForm(x), commonForm(y)
	switch {
	case a == "" && b == "":
		return 0
	case a == b:
		return sameForm
	}
	return -otherForm
}

// commonForm returns the format, such as UUID, that all payloads have, or "".
func commonForm(l *kind.Payloads) string {
	f := value.Forms{UUID: l.Forms.UUID, URL: l.Forms.URL, JSON: l.Forms.JSON, Time: l.Forms.Time}
	return f.Of(l.N)
}

// Values that two fields have in common are no coincidence from this size on: leastCommonText is the length of
// a text in bytes, and leastCommonNumber the value of a number.
const (
	leastCommonText   = 4
	leastCommonNumber = 1 << 10
)

// valueEvidence returns the evidence, in nats, for merging from values that both fields have, as found in the
// sketches (samples) of their distinct values.
func valueEvidence(x, y *classField) float64 {
	var a, b []uint64
	switch {
	case x.Len != nil && y.Len != nil && x.judgement.Kind != wire.KindMessage:
		a, b = x.Len.LongHashes(leastCommonText), y.Len.LongHashes(leastCommonText)
	case x.Varint != nil && y.Varint != nil:
		a, b = x.Varint.LargeHashes(leastCommonNumber), y.Varint.LargeHashes(leastCommonNumber)
	}
	common := 0
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i] < b[k]:
			i++
		case a[i] > b[k]:
			k++
		default:
			common++
			i++
			k++
		}
	}
	return commonValue * float64(min(common, mostCommon))
}

// lengthEvidence returns the evidence, in nats, for or against merging from the lengths of two fields' payloads. Only the
// average length of messages counts, because their lengths depend on which fields they have.
func lengthEvidence(x, y *classField) float64 {
	l, o := x.Len, y.Len
	if l == nil || o == nil || l.N == 0 || o.N == 0 {
		return 0
	}
	if !x.isMessage() {
		return sizes.Evidence(payloadSizes(l), payloadSizes(o))
	}
	// One is added to each length, so that empty payloads have a logarithm.
	ratio := math.Abs(math.Log(float64(l.Bytes+l.N) / float64(l.N) * float64(o.N) / float64(o.Bytes+o.N)))
	return max(sameLengths-0.4*ratio, -otherLengths)
}

// Limits, in nats, of the evidence against merging two classes from a field that only one of them has.
const (
	// minAbsence is the minimum evidence against merging, in nats, for any field that only one of the classes
	// has.
	minAbsence = 0.3
	// rareAbsence is the maximum for a field that is sometimes absent in its own class, because the messages of
	// one type at different paths may differ in the fields that are set. coreAbsence is the maximum for a field
	// that is always set in its class.
	rareAbsence, coreAbsence = 0.3, 2.4
	// corePresence is the share of messages from which on a field counts as always set.
	corePresence = 0.85
)

// absenceEvidence returns the evidence, in nats, against merging two classes from a field f that only one of
// them has: the expected number of messages of the other class that would contain it, within limits. samples
// and others are the numbers of messages of the two classes.
func absenceEvidence(f *classField, samples, others int64) float64 {
	share := float64(f.Seen) / float64(max(samples, 1))
	most := rareAbsence
	// Of few messages, all may have a rare field by chance.
	if (float64(f.Seen)+0.5)/(float64(samples)+1) >= corePresence {
		most = coreAbsence
	}
	return minAbsence + min(share*float64(others), most)
}
