package infer

import (
	"math"

	"unwire/decode/kind"
)

// Weights of the evidence for and against two types being one, in nats.
const (
	// what is needed for a type inside itself
	ownScore = 1.2
	// evidence against, in a field that is 1 in one and greater in the other
	bitAgainstNumber = 1.8
	// evidence for, in values that are both times, or addresses of types
	sameValues = 2.0
	// evidence against, in a field that one of them has not
	minAbsence = 0.3
	// evidence for, in a field that is of one type in both
	sameFieldType = 1.0
	// evidence for, in being types of two fields that came together, or against in two that never did
	fieldsOfOneMessage = 0.6
	// evidence for, in texts or bytes that are as long
	sameLengths = 0.2
	// the most against, where they are not
	otherLengths = 0.6
)

// contained reports whether nearly all fields of c are fields of o.
func contained(c, o *class) bool {
	shared := 0
	for _, n := range c.numbers {
		if o.fields[n] != nil {
			shared++
		}
	}
	return shared >= 2 && 4*shared >= 3*len(c.numbers)
}

// similarity is the evidence, in nats, for two classes being one type: fields
// of the same number and kind speak for it, the more the rarer the number;
// fields that are often seen in one and never in the other speak against it.
func similarity(a, b *class) float64 {
	score, shared := valueLikeness(a, b), 0
	score += kinshipEvidence(a, b)

	for _, n := range a.numbers {
		x, y := a.fields[n], b.fields[n]
		if y == nil {
			score -= absenceEvidence(x, a.samples, b.samples)
			continue
		}
		shared++
		if x.judgement.Kind != y.judgement.Kind && !(x.kid != nil && y.kid != nil) {
			score -= 3
			continue
		}
		score += min(0.8+0.4*math.Log(float64(n)), 2.5) + lengthEvidence(x.Len, y.Len)
		if x.kid != nil && y.kid != nil && x.likely() && y.likely() && x.kid.find() == y.kid.find() {
			score += sameFieldType
		}
		if bitBesideNumber(x.Varint, y.Varint) {
			score -= bitAgainstNumber
		}
	}

	if most := score - minAbsence*float64(len(b.numbers)-shared); most < ownScore {
		return most // no need to look at what may be very many fields
	}
	for _, n := range b.numbers {
		if a.fields[n] == nil {
			score -= absenceEvidence(b.fields[n], b.samples, a.samples)
		}
	}
	return score
}

// valueLikeness is the evidence in what the values are: times, or addresses of types.
func valueLikeness(a, b *class) float64 {
	switch {
	case isMoment(a) && isMoment(b) || isAny(a) && isAny(b):
		return sameValues
	case isMoment(a) != isMoment(b) || isAny(a) != isAny(b):
		return -sameValues
	}
	return 0
}

// bitBesideNumber reports whether one of two fields is 0 or 1 and the other never is.
func bitBesideNumber(x, y *kind.Varints) bool {
	return x != nil && y != nil && (x.Max <= 1 && y.Min > 1 || y.Max <= 1 && x.Min > 1)
}

// kinshipEvidence is the evidence in being types of two fields of one message: fields that
// come together are often of one type, and those that exclude each other of
// different ones.
func kinshipEvidence(a, b *class) float64 {
	if a.above == nil || b.above == nil || a.above.find() != b.above.find() || a.at == b.at {
		return 0
	}
	above := a.above.find()
	x, y := above.fields[a.at], above.fields[b.at]
	switch {
	case a.at >= kind.LowNumbers || b.at >= kind.LowNumbers || x == nil || y == nil:
		return 0
	case x.Before.Has(b.at) || y.Before.Has(a.at):
		return fieldsOfOneMessage
	case x.Seen > 2 && y.Seen > 2:
		return -fieldsOfOneMessage
	}
	return 0
}

// lengthEvidence is the evidence in how long the payloads of two fields are.
func lengthEvidence(x, y *kind.Payloads) float64 {
	if x == nil || y == nil || x.N == 0 || y.N == 0 {
		return 0
	}
	ratio := math.Abs(math.Log(float64(x.Bytes+x.N) / float64(x.N) * float64(y.N) / float64(y.Bytes+y.N)))
	return max(sameLengths-0.4*ratio, -otherLengths)
}

// absenceEvidence is the evidence in a field of one class, of samples messages, being
// unseen in another's.
func absenceEvidence(f *classField, samples, others int64) float64 {
	expected := float64(f.Seen) / float64(max(samples, 1)) * float64(others)
	return minAbsence + min(expected, 3)
}
