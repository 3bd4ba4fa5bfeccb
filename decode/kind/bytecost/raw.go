package bytecost

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// repeats counts the bytes of p that equal the byte distance positions before them.
func repeats(p []byte, distance int) (same int) {
	i := distance
	for ; i+8 <= len(p); i += 8 {
		same += zeroBytes(binary.LittleEndian.Uint64(p[i:]) ^ binary.LittleEndian.Uint64(p[i-distance:]))
	}
	for ; i < len(p); i++ {
		if p[i] == p[i-distance] {
			same++
		}
	}
	return same
}

// zeroBytes returns the number of zero bytes in v.
func zeroBytes(v uint64) int {
	const low = 0x7f7f7f7f7f7f7f7f
	return bits.OnesCount64(^((v&low + low) | v | low))
}

// Raw returns the cost (description length in thousandths of a nat) of p as bytes without known structure: eight
// bits each, or less if the bytes repeat (padding), use few of the 256 values, have few bits set (a mask), or
// contain words of text. If known is true, p is certainly text or a message, and such regularities are not
// searched. repeated is the cost if only regularities that encoded numbers may have, too, are used.
func Raw(p []byte, known bool) (cost, repeated int64) {
	flat := int64(len(p)) * RawByte
	if known || len(p) < 6 {
		return flat, flat
	}
	head := p[:min(len(p), Head)]

	// Try each regularity and keep the cheapest.
	last, before := repeats(head, 1), repeats(head, 2)
	best := int64(len(head)) * RawByte
	text := best - textSaving(head)
	if 5*last > len(head) || 5*before > len(head) {
		best = min(best, costRepeats(head, max(last, before)))
	}
	again := best
	if len(head) >= minFew {
		few, asNumbers := costFew(head)
		best, again = min(best, few), min(best, asNumbers)
	}
	best = min(best, text)
	if 3*last > len(head) || 3*before > len(head) || len(head) <= minFew {
		best = min(best, costMask(head))
	}
	return min(flat, Extrapolate(best, len(p))), min(flat, Extrapolate(again, len(p)))
}

// NoFile is the cost, in thousandths of a nat, of the assumption that bytes begin like a known file format by
// coincidence.
const NoFile = 12 * Nat

// textGain is the cost that each printable character within bytes saves in comparison with a random byte.
// Characters are one nat more expensive than in text, because the text may be accidental.
var textGain = func() (t [256]int64) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = RawByte - costASCII[c] - 1080
	}
	return t
}()

const (
	// costTextRun is the cost of stating that a run of text begins within bytes.
	costTextRun = 6 * Nat

	// costNoText is the extra cost of each byte at which no run of text begins.
	costNoText = 20
)

// textSaving returns the cost that is saved if words inside the bytes p are coded as text. Such words are, for
// example, field names in another serialization format.
func textSaving(p []byte) (saved int64) {
	run := int64(0)
	for _, c := range p {
		if gain := textGain[c]; gain > 0 {
			run += gain
			continue
		}
		if run > costTextRun {
			saved += run - costTextRun
		}
		run = 0
	}
	return max(saved+max(run-costTextRun, 0)-costNoText*int64(len(p)), 0)
}

// costMask returns the cost of p as a bit mask: few bits are set, and upper bits as often as lower ones. In numbers
// the lower bits would be set more often. It is math.MaxInt64 if p does not look like a mask.
func costMask(p []byte) int64 {
	var any byte
	ones, high := 0, 0
	for _, c := range p {
		any |= c
		ones += bits.OnesCount8(c)
		high += bits.OnesCount8(c & 0xf0)
	}
	used, usedHigh := bits.OnesCount8(any), bits.OnesCount8(any&0xf0)
	n, k := float64(len(p)*used), float64(ones)
	if any < 0x40 || 3*ones > len(p)*used || 3*high*used < 2*ones*usedHigh || ones < 6 {
		return math.MaxInt64
	}
	return int64(Nat * (-logBeta(k+0.5, n-k+0.5) + logBeta(0.5, 0.5) + 8*math.Ln2 + 2))
}

// minFew is the minimum number of bytes for which costFew is examined.
const minFew = 64

// costRepeats returns the cost of p if same is the number of its bytes that repeat an earlier byte.
func costRepeats(p []byte, same int) int64 {
	n, m := float64(len(p)-1), float64(same)
	// Which bytes repeat costs as much as a sequence of coin flips with an unknown bias.
	flags := -logBeta(m+0.5, n-m+0.5) + logBeta(0.5, 0.5)
	first := int64(RawByte)
	if p[0] == 0 {
		first = 1500
	}
	return int64(Nat*(flags+2)) + first + int64(len(p)-same-1)*RawByte
}

// logBeta returns the logarithm of the beta function.
func logBeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}

// costFew returns the cost of bytes that use few of the 256 possible values: the values are listed with their
// frequencies, and each byte selects one. asNumbers lists small values for less.
func costFew(p []byte) (cost, asNumbers int64) {
	var count [256]int
	for _, c := range p {
		count[c]++
	}
	n := float64(len(p))
	used, each, small := 0.0, n*math.Log(n), int64(0)
	for v, c := range count {
		if c > 0 {
			used++
			each -= countLog[c]
			small += min(costBits[bits.Len8(uint8(v))], RawByte) - RawByte
		}
	}
	list := used*(math.Log(256)+0.5*Log(n+1)) - used*math.Log(max(used/math.E, 1))
	cost = int64(Nat * (each + list + 2))
	return cost, cost + small
}

// countLog caches n ln n by n, for costFew.
var countLog = func() (t [Head + 1]float64) {
	for n := 2; n < len(t); n++ {
		t[n] = float64(n) * math.Log(float64(n))
	}
	return t
}()

// minWords is the minimum number of bytes that are examined as 16-bit words.
const minWords = 20

// Wide returns the costs of payload p, which consists of 16-bit words, as UTF-16 text and as 16-bit numbers, in
// thousandths of a nat.
func Wide(p []byte) (text, numbers int64) {
	head := p[:min(len(p), Head)]
	flat := int64(len(head)) * RawByte
	text, numbers = costUTF16(head, flat+flat/8), flat
	if len(head) >= minWords {
		numbers = min(flat, costWords(head))
	}
	return Extrapolate(text, len(p)), Extrapolate(numbers, len(p))
}

// costWords returns the cost of p as 16-bit words whose upper or lower bytes have few distinct values, as in audio
// or sensor samples. The distinct values are listed once, and each word selects one. The other bytes cost eight
// bits.
func costWords(p []byte) int64 {
	n := len(p) / 2
	best := int64(math.MaxInt64)
	for first := range 2 {
		var seen [256]bool
		// Count the distinct values of both halves of the words.
		few, many := 0, 0
		for i := first; i < len(p); i += 2 {
			if !seen[p[i]] {
				seen[p[i]] = true
				few++
			}
		}
		clear(seen[:])
		for i := 1 - first; i < len(p); i += 2 {
			if !seen[p[i]] {
				seen[p[i]] = true
				many++
			}
		}
		if 4*few <= n && 2*many >= min(n, 128) {
			best = min(best, int64(n)*(RawByte+costChoice[few])+int64(few)*RawByte+4*Nat)
		}
	}

	return best
}

// costChoice is the cost, in thousandths of a nat, of selecting one of n values, by n.
var costChoice = func() (t [129]int64) {
	for n := 2; n < len(t); n++ {
		t[n] = int64(Nat * math.Log(float64(n)))
	}
	return t
}()
