package bytecost

import (
	"encoding/binary"
	"math/bits"
)

const (
	// clearMargin is by how much text must be cheaper than any other hypothesis to be clearly text, in thousandths of a
	// nat. With the priors of package kind, the probability of text is then above 0.97.
	clearMargin = 6 * Nat

	// leastVarintBit is the minimum cost of a bit below the top one of a varint, in thousandths of a nat.
	leastVarintBit = 693

	// leastTopBits is the minimum cost per byte of 4-byte numbers that are described by their top six bits.
	leastTopBits = 4500

	// leastFloat is the minimum cost of four ASCII characters as a float whose decimal digits cannot be cheap.
	leastFloat = 21_200
)

// ClearlyText reports whether p, of at most Head bytes, is printable ASCII, and costs much less as text than under any
// other hypothesis of package kind. It compares the cost of text with lower bounds of the other costs, so that most
// words and identifiers need no exact costs. False means that the exact costs decide.
func ClearlyText(p []byte) bool {
	if len(p) < 4 || len(p) > Head || p[0] == '{' || p[0] == '[' {
		return false
	}
	least, signs := int64(0), int64(0)
	for _, c := range p {
		if c < ' ' || c > '~' {
			return false
		}
		// As a varint, a character costs the bits below its top one, whatever their distribution is.
		least += int64(bits.Len8(c)-1) * leastVarintBit
		if c < '0' {
			signs++
		}
	}

	// A pair of characters in UTF-16 is East Asian, unless one of them is below '0'. Then it may continue a script.
	n := int64(len(p))
	if n%2 == 0 {
		if n >= minWords && !isVaried(p) {
			return false
		}
		least = min(least, costHan*n/2-(costHan-costSameScript)*signs)
	}
	if n%4 == 0 {
		least = min(least, leastTopBits*n, leastFloats(p))
	}
	if n%8 == 0 && maybeDoubles(p) {
		return false
	}
	cost, control := Text(p)
	if control || cost > least-clearMargin {
		return false
	}
	raw, repeated := Raw(p, false)
	return cost <= min(raw, repeated)-clearMargin
}

// isVaried reports whether p, which is ASCII, has too many distinct bytes at even and at odd offsets to be cheap as
// 16-bit words. See costWords.
func isVaried(p []byte) bool {
	var seen [2][2]uint64
	for i, c := range p {
		seen[i&1][c>>6] |= 1 << (c & 63)
	}
	for _, s := range seen {
		if 4*(bits.OnesCount64(s[0])+bits.OnesCount64(s[1])) <= len(p)/2 {
			return false
		}
	}
	return true
}

// leastFloats returns a lower bound of the cost of p, which is ASCII, as 4-byte floating-point numbers. Only those
// between about 1e-6 and 1e15 may have cheap decimal digits.
func leastFloats(p []byte) (least int64) {
	for ; len(p) >= 4; p = p[4:] {
		if top := p[3]; top >= '5' && top <= 'X' {
			least += Float(binary.LittleEndian.Uint32(p))
		} else {
			least += leastFloat
		}
	}
	return least
}

// maybeDoubles reports whether one of the doubles in p is of usual magnitude, between about 1e-20 and 1e20.
func maybeDoubles(p []byte) bool {
	for i := 7; i < len(p); i += 8 {
		if p[i] >= ';' && p[i] <= 'C' {
			return true
		}
	}
	return false
}
