package kind

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// Costs are description lengths in thousandths of a nat: what a value costs to
// write down if a hypothesis is true. The hypothesis with the smallest sum over
// all samples is the most likely. They are integers so that sums of them do not
// depend on order.
//
// What was tuned on what: the text costs are round figures for the letter
// frequencies of English prose and source text; the number costs follow from
// the shape of the encodings. The priors in kind.go, and the odds in label.go
// and unify.go, were chosen by hand while looking at the random schemas of
// corpus_test.go with seeds below 3,000 and at the descriptors of google/protobuf
// and google/rpc; digests, empty messages and empty payloads were mended after looking
// at a recording of the stand-in (TestInferTraps). TestRandomSchemas measures on
// other seeds. No traffic of a live server was used: the random values are ours,
// and so is their idea of what is usual.
const (
	nat         = 1000
	costRawByte = 5545 // ln 256

	costControl     = 11 * nat // a control character other than tab and newline
	costFirstSpace  = 3 * nat  // text rarely begins with white space
	costSameScript  = 4200     // a rune outside ASCII near the one before it
	costOtherScript = 9 * nat
	costUnassigned  = 14 * nat
	costNextDigit   = 2500    // a digit behind a digit
	costMark        = 4 * nat // what stands between letters and is not seen
	costFull        = 120     // that a number fills its width
	costSameByte    = 500     // a byte that is like the one two before
	costOtherByte   = 900     // and one that is not, beyond its eight bits
)

// costASCII is the cost of each ASCII character in text.
var costASCII = func() (t [128]int64) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = 3000
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			t[c] = 3700
		case c == ' ':
			t[c] = 2200
		case c == '\n' || c == '\t' || c == '\r':
			t[c] = 4500
		case c < 0x20 || c == 0x7f:
			t[c] = costControl
		default:
			t[c] = 4400
		}
	}
	for _, c := range "etaoinsrhl" {
		t[c] = 2600
	}
	for _, c := range "-_./:" {
		t[c] = 3900
	}
	return t
}()

// A charCost is what an ASCII character costs in text, with what it is.
type charCost uint16

const (
	charDigit   charCost = 1 << 14
	charControl charCost = 1 << 15
	charCosts            = charDigit - 1
)

// charCostOf is costASCII with what costText must know besides.
var charCostOf = func() (t [128]charCost) {
	for c := range t {
		t[c] = charCost(costASCII[c])
		switch {
		case c >= '0' && c <= '9':
			t[c] |= charDigit
		case c < 0x20 && c != '\n' && c != '\t' && c != '\r':
			t[c] |= charControl
		}
	}
	return t
}()

// costText is the cost of valid UTF-8 as text, by its first costBytes bytes.
func costText(p []byte) (cost int64, control bool) {
	if c := p[0]; c == '\n' || c == ' ' || c == '\t' || c == '\r' {
		cost += costFirstSpace
	}
	p = p[:min(len(p), costBytes)]
	i, sum, kinds := costASCIIText(p)
	cost += sum
	control = kinds&charControl != 0
	var script rune
	for i < len(p) {
		if p[i] < utf8.RuneSelf {
			n, sum, kinds := costASCIIText(p[i:])
			cost += sum
			control = control || kinds&charControl != 0
			i += n
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && n == 1 {
			break // cut by costBytes
		}
		i += n
		switch {
		case r >= 0x200b && r <= 0x200f, r == 0xfe0f, r == 0xfeff, r == 0xad, r != 0x85 && r > 0x7f && unicode.IsSpace(r):
			cost += costMark
			continue
		case !isLetterRange(r) && !unicode.IsPrint(r):
			cost += costUnassigned
			control = control || unicode.IsControl(r)
		case r>>9 == script>>9 || r >= 0x3000 && r < 0xa000 && script >= 0x3000 && script < 0xa000:
			cost += costSameScript + int64(n-2)*1300
		default:
			cost += costOtherScript
		}
		script = r
	}
	return cost, control
}

// costASCIIText sums the costs of the n ASCII characters that p begins with; kinds is
// what any of them is.
func costASCIIText(p []byte) (n int, cost int64, kinds charCost) {
	var last charCost
	pairs := int64(0) // of digits
	for _, c := range p {
		if c >= utf8.RuneSelf {
			break
		}
		t := charCostOf[c]
		cost += int64(t & charCosts)
		pairs += int64(t & last & charDigit)
		last = t
		kinds |= t
		n++
	}
	return n, cost - pairs/int64(charDigit)*(costASCII['0']-costNextDigit), kinds
}

// costUTF16 is the cost of text in UTF-16 of little or big end first, ASCII in most of it.
func costUTF16(p []byte) (cost int64, ok bool) {
	for first := range 2 {
		cost, wide := int64(3*nat), 0
		for i := 0; i+1 < len(p); i += 2 {
			c, high := p[i+first], p[i+1-first]
			switch {
			case high == 0 && c < utf8.RuneSelf:
				cost += costASCII[c] + 200
			default:
				wide++
				cost += 2 * costRawByte
			}
		}
		if 16*wide < len(p) {
			return cost, true
		}
	}
	return 0, false
}

// isLetterRange is a quick test for the scripts that are written most.
func isLetterRange(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x410 && r <= 0x44f || r >= 0x3041 && r <= 0x3096 || r >= 0xac00 && r <= 0xd7a3 || r >= 0xc0 && r <= 0x17f
}

// magics begin the file formats that are sent in bytes fields.
var magics = [...]string{
	"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF8", "PK\x03\x04", "%PDF-",
	"\x7fELF", "\x00asm", "RIFF", "SQLite format 3\x00", "OggS", "ID3", "BZh", "\xfd7zXZ\x00",
}

// magicFirst holds the first bytes of magics.
var magicFirst = func() (t [256]bool) {
	for _, m := range magics {
		t[m[0]] = true
	}
	return t
}()

// repeats counts the bytes that are the same as the one two before, and the zeros.
func repeats(p []byte) (same, zeros int) {
	zeros = zeroBytes(word(p[:2]) | ^uint64(0xffff))
	i := 2
	for ; i+8 <= len(p); i += 8 {
		v := binary.LittleEndian.Uint64(p[i:])
		zeros += zeroBytes(v)
		same += zeroBytes(v ^ binary.LittleEndian.Uint64(p[i-2:]))
	}
	for ; i < len(p); i++ {
		if p[i] == 0 {
			zeros++
		}
		if p[i] == p[i-2] {
			same++
		}
	}
	return same, zeros
}

// zeroBytes counts the bytes of v that are zero.
func zeroBytes(v uint64) int {
	const low = 0x7f7f7f7f7f7f7f7f
	return bits.OnesCount64(^((v&low + low) | v | low))
}

// headLen is how many bytes of a file's head say nothing new behind a magic of so
// many: of gzip's, the flags, the level, the system, and a time that is not set.
func headLen(p []byte, magic int) int {
	if magic != 3 || p[1] != 0x8b || len(p) < 18 || p[3] >= 0x20 || p[8] > 4 || p[9] > 13 && p[9] != 0xff {
		return magic
	}
	if string(p[4:8]) == "\x00\x00\x00\x00" {
		return 10
	}
	return 6
}

// costRaw is the cost of bytes without a structure that we know: eight bits
// each, or less where many are zero or the same as two before, as in padding, UTF-16
// and samples of sound. It is not looked for in
// what is known to be text or a message.
func costRaw(p []byte, known bool) int64 {
	flat := int64(len(p)) * costRawByte
	if known || len(p) < 6 {
		return flat
	}
	if magicFirst[p[0]] {
		for _, m := range magics {
			if p[0] == m[0] && len(p) > len(m) && string(p[:len(m)]) == m {
				// As unlikely by chance as its bits, and one of a few formats.
				return flat - int64(headLen(p, len(m)))*costRawByte + 4*nat
			}
		}
	}
	head := p[:min(len(p), costBytes)]
	same, zeros := repeats(head)
	if 5*zeros > 2*len(head) && len(p)%2 == 0 {
		if cost, ok := costUTF16(head); ok {
			return whole(cost, len(p))
		}
	}
	if len(p)%2 == 0 && len(head) >= minWords && 12*same >= len(head) {
		if cost := costWords(head); cost < int64(len(head))*costRawByte {
			flat = min(flat, whole(cost, len(p)))
		}
	}
	most := int64(max(same, zeros))
	return min(flat, whole(most*costSameByte+(int64(len(head))-most)*(costRawByte+costOtherByte)+3*nat, len(p)))
}

// minWords is from how many bytes on they are looked at as words of 16 bits.
const minWords = 20

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

// costVarintLen is the cost of a packed varint by its encoded length: how rare
// the length is, and seven bits for each byte.
var costVarintLen = func() (t [11]int64) {
	share := [11]float64{1: .66, 2: .2, 3: .06, 4: .025, 5: .03, 6: .005, 7: .003, 8: .003, 9: .005, 10: .009}
	for n := 1; n < len(t); n++ {
		t[n] = int64(nat * (-math.Log(share[n]) + float64(7*n)*math.Ln2))
	}
	return t
}()

// costLengths is the cost, in nats, of varints by their length, and of describing
// how those lengths are distributed: in bits, of which those below the top one
// are free, or in bytes, of which seven bits are. There are scale times as many, and
// one of thin was looked at.
func costLengths(s *Varints, scale, thin float64) (values, shape float64) {
	var sizes [11]float64
	used, usedSizes := 0.0, 0.0
	n := float64(s.N)
	each := 0.5 * math.Log(n+1)
	for length, count := range s.Bits {
		if count == 0 {
			continue
		}
		c := float64(count)
		used++
		shape += 1.5 + each
		values -= c * math.Log(c/n)
		if length > 1 {
			values += c * float64(length-1) * math.Ln2
		}
		sizes[max(length+6, 7)/7] += c
	}
	// Below zero the ten bytes hold fewer bits than they could; that is not told here.
	coarse, coarseShape := 0.0, 0.0
	for size, c := range sizes {
		if c > 0 {
			usedSizes++
			coarseShape += 0.7 + each
			coarse += c * (float64(7*size)*math.Ln2 - math.Log(c/n))
		}
	}
	values = values*scale + costUnseen(used, scale*thin)
	coarse = coarse*scale + costUnseen(usedSizes, scale*thin)
	if coarse+coarseShape < values+shape {
		return coarse, coarseShape
	}
	return values, shape
}

// costVarints is the cost, in nats, of a field's varints one by one, and where
// few distinct values are each written once and then chosen.
func costVarints(s *Varints) (each, least float64) {
	if s.N == 0 {
		return 0, 0
	}
	values, shape := costLengths(s, 1, 1)
	odd := float64(s.Overlong) * costOverlong
	each = values + shape
	least = each
	if !s.Values.Full {
		least = min(each, costDistinct(s.Values, each/float64(s.N)))
	}
	return each + odd, least + odd
}

// costFixeds is costVarints for fixed-width values.
func costFixeds(s *Fixeds) (each, least float64) {
	each = float64(min(s.Float, s.Int)) / nat
	least = each
	if !s.Values.Full {
		least = min(each, costDistinct(s.Values, each/float64(s.N)))
	}
	return each, least
}

// costDistinct is the cost of values out of a small set: each is described
// once at the given price, and every occurrence then chooses one.
func costDistinct(s *Sketch, each float64) float64 {
	var n, cost float64
	for _, it := range s.Items {
		n += float64(it.Count)
	}
	for _, it := range s.Items {
		cost += each - float64(it.Count)*math.Log(float64(it.Count)/n)
	}
	return cost + math.Log(n)
}

// costFixed is the cost of a fixed-width integer, by its length in bits.
func costFixed(v uint64, width int) int64 {
	if width == 32 && int32(v) < 0 && int32(v) > -1<<20 {
		v = uint64(-int64(int32(v)))
	} else if width == 64 && int64(v) < 0 && int64(v) > -1<<48 {
		v = uint64(-int64(v))
	}
	// Hashes fill the width: they cost what bytes do, and that they are such.
	return min(costBits[bits.Len64(v)], int64(width/8)*costRawByte+costFull)
}

// costBits is the cost of a number of so many bits, where nothing is known of
// the field's others: of its length, and of the bits below the top one.
var costBits = func() (t [65]int64) {
	for n := range t {
		t[n] = int64(nat * (1 + 1.2*math.Log(float64(n+1)) + float64(max(n-1, 0))*math.Ln2))
	}
	return t
}()

// costDouble is the cost of 8 bytes as a double: exponents near one are
// likely, and so are values with few binary or decimal digits.
func costDouble(v uint64) int64 {
	f := math.Float64frombits(v)
	exp := int(v>>52&0x7ff) - 1023
	return costReal(f, exp, bits.TrailingZeros64(v|1<<52), 52, func() bool {
		s := f * 1e4
		return math.Abs(s) >= 1 && math.Abs(s) < 1<<50 && math.Abs(s-math.Round(s)) < 1e-7*math.Max(1, math.Abs(s))
	})
}

// costFloat is costDouble for 4 bytes.
func costFloat(v uint32) int64 {
	f := float64(math.Float32frombits(v))
	exp := int(v>>23&0xff) - 127
	return costReal(f, exp, bits.TrailingZeros32(v|1<<23), 23, func() bool {
		s := f * 1e3
		return math.Abs(s) >= 1 && math.Abs(s) < 1<<22 && math.Abs(s-math.Round(s)) < 1e-4
	})
}

func costReal(f float64, exp, trailing, mantissa int, short func() bool) int64 {
	full := float64(mantissa) * math.Ln2
	var cost float64
	switch {
	case f == 0:
		return 2500
	case math.IsNaN(f) || math.IsInf(f, 0):
		return int64(nat * (full + 12))
	case exp >= -20 && exp <= 33:
		cost = 4.4
	case exp >= -64 && exp <= 64:
		cost = 7.5
	default:
		cost = 13
	}
	if f < 0 {
		cost++
	}
	bitsLeft := full - float64(trailing)*math.Ln2 + 1.5
	if trailing < 8 && short() {
		bitsLeft = min(bitsLeft, math.Log(math.Abs(f)*1e4+2)+2.5)
	}
	return int64(nat * (cost + min(full, bitsLeft)))
}
