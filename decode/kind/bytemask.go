package kind

import (
	"math"

	"unwire/decode/kind/bytecost"
)

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
