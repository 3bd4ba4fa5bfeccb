package kind

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// repeats counts the bytes that are the same as the one so far before.
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

// zeroBytes counts the bytes of v that are zero.
func zeroBytes(v uint64) int {
	const low = 0x7f7f7f7f7f7f7f7f
	return bits.OnesCount64(^((v&low + low) | v | low))
}

// costRaw is the cost of bytes without a structure that we know: eight bits each, or less
// where many are the same as one or two before, as in padding, few of the 256, few bits of
// a mask, or words of text. It is not looked for in what is known to be text or a message.
// Repeated is the cost of the same bytes as what numbers are written with.
func costRaw(p []byte, known bool) (cost, repeated int64) {
	flat := int64(len(p)) * costRawByte
	if known || len(p) < 6 {
		return flat, flat
	}
	head := p[:min(len(p), costBytes)]
	last, before := repeats(head, 1), repeats(head, 2)
	best := int64(len(head)) * costRawByte
	text := best - textWithin(head)
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
	return min(flat, whole(best, len(p))), min(flat, whole(again, len(p)))
}

// costNoFile is what it costs that bytes begin as a file does and are none.
const costNoFile = 12 * nat

// textGain is what each character of text within bytes saves of their eight bits.
// The costs of characters are those of text, of which they are one nat too low for
// what may or may not be text.
var textGain = func() (t [256]int64) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = costRawByte - costASCII[c] - 1080
	}
	return t
}()

const (
	costTextRun = 6 * nat // of a run of text within bytes
	costNoText  = 20      // of each byte in which none begins
)

// textWithin is what is saved of the cost of bytes in which there are words, as in
// names and labels of other encodings.
func textWithin(p []byte) (saved int64) {
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

// costMask is the cost of bytes as bits of which few are set, the upper ones not less
// often than the lower ones, as they are in numbers.
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
	return int64(nat * (-logBeta(k+0.5, n-k+0.5) + logBeta(0.5, 0.5) + 8*math.Ln2 + 2))
}

// minFew is from how many bytes on it is looked at whether they are few of the 256.
const minFew = 64

// costRepeats is the cost of bytes of which so many are the same as one before.
func costRepeats(p []byte, same int) int64 {
	n, m := float64(len(p)-1), float64(same)
	flags := -logBeta(m+0.5, n-m+0.5) + logBeta(0.5, 0.5)
	first := int64(costRawByte)
	if p[0] == 0 {
		first = 1500
	}
	return int64(nat*(flags+2)) + first + int64(len(p)-same-1)*costRawByte
}

// logBeta is the logarithm of the beta function.
func logBeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}

// costFew is the cost of bytes that are few of the 256, some of them often: they are
// listed with their shares, and each then chosen. As numbers small ones are listed
// for less.
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
			small += min(costBits[bits.Len8(uint8(v))], costRawByte) - costRawByte
		}
	}
	list := used*(math.Log(256)+0.5*math.Log(n+1)) - used*math.Log(max(used/math.E, 1))
	cost = int64(nat * (each + list + 2))
	return cost, cost + small
}

// countLog is n times the logarithm of n.
var countLog = func() (t [costBytes + 1]float64) {
	for n := 2; n < len(t); n++ {
		t[n] = float64(n) * math.Log(float64(n))
	}
	return t
}()

// minWords is from how many bytes on they are looked at as words of 16 bits.
const minWords = 20

// costWide is the cost of a payload of words of 16 bits: of UTF-16, or of numbers.
func costWide(p []byte) (text, numbers int64) {
	head := p[:min(len(p), costBytes)]
	flat := int64(len(head)) * costRawByte
	text, numbers = min(costUTF16(head), flat+flat/8), flat
	if len(head) >= minWords {
		numbers = min(flat, costWords(head))
	}
	return whole(text, len(p)), whole(numbers, len(p))
}

// costWords is the cost of words of 16 bits, as samples of sound and of sensors
// are, whose upper or lower bytes are few of the 256: these are listed, and
// each then chosen. The other bytes cost their eight bits.
func costWords(p []byte) int64 {
	n := len(p) / 2
	best := int64(math.MaxInt64)
	for first := range 2 {
		var seen [256]bool
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
			best = min(best, int64(n)*(costRawByte+costChoice[few])+int64(few)*costRawByte+4*nat)
		}
	}
	return best
}

// costChoice is the cost of one of so many.
var costChoice = func() (t [129]int64) {
	for n := 2; n < len(t); n++ {
		t[n] = int64(nat * math.Log(float64(n)))
	}
	return t
}()
