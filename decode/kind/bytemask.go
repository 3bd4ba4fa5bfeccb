package kind

import "math"

// maskLen is up to which size payloads are looked at column by column.
const maskLen = 64

// addMask enters the bits that all of some payloads have, and those that any has;
// first says that they are all there is.
func (l *Payloads) addMask(ones, anys []byte, first bool) {
	switch {
	case first && len(ones) <= maskLen:
		l.Ones, l.Anys = append([]byte(nil), ones...), append([]byte(nil), anys...)
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

// What it costs to say, in nats, that a byte is the same in all payloads, or its upper half.
const (
	costSameColumn = 3.0
	costSameNibble = 4.5
)

// costMasked is the cost of the payloads as bytes of which some are the same in all
// of one size: identifiers with a time or a version in them, headers, padding. Text
// and messages have such bytes too, and are not looked at in this way.
func (l *Payloads) costMasked(novelty float64) float64 {
	n := float64(l.N) * novelty
	if len(l.Ones) == 0 || n < 1.5 || !l.NotText || !l.NotMessage {
		return math.Inf(1)
	}
	cost := float64(l.Bytes) * novelty * costRawByte / nat
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

// highSame reports whether, in numbers of so many bytes, it is the upper ones that are
// the same in all payloads, if any: as in numbers that are alike, and not in identifiers.
func (l *Payloads) highSame(width int) bool {
	for i := range l.Ones {
		same, above := l.Ones[i] == l.Anys[i], (i+1)%width
		if same && above != 0 && i+1 < len(l.Ones) && l.Ones[i+1] != l.Anys[i+1] {
			return false
		}
	}
	return true
}
