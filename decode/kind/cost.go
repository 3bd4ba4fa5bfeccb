package kind

import (
	"bytes"
	"math"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// Costs are description lengths in thousandths of a nat: what a value costs to write down
// if a hypothesis is true. The hypothesis with the smallest sum over all samples is the
// most likely. They are integers so that sums of them do not depend on order.
//
// What was tuned on what: the text costs are round figures for the letter frequencies of
// English prose and source text; the number costs follow from the shape of the encodings.
// The priors in kind.go, and the odds in fieldlabel.go and unify.go, were chosen by hand
// while looking at the random schemas of corpus_test.go with seeds below 3,000 and at the
// descriptors of google/protobuf and google/rpc; digests, empty messages and empty
// payloads were mended after looking at a recording of the stand-in (TestInferTraps).
// TestRandomSchemas measures on other seeds. No traffic of a live server was used: the
// random values are ours, and so is their idea of what is usual.
const (
	nat         = 1000
	costRawByte = 5545 // ln 256

	costControl     = 11 * nat // a control character other than tab and newline
	costFirstSpace  = 3 * nat  // text rarely begins with white space
	costSameScript  = 4200     // a rune outside ASCII near the one before it
	costOtherScript = 9 * nat
	costUnassigned  = 14 * nat
	costNextDigit   = 2500    // a digit behind a digit
	costHan         = 10300   // one of a script of East Asia in UTF-16
	costMark        = 4 * nat // what stands between letters and is not seen
	costFull        = 120     // that a number fills its width

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
	if len(p) < proseLen {
		cost += costUnlike(p)
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
		case isMark(r):
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

// costUnlike is what a short text costs beyond its characters, where they follow each
// other as they do in numbers and not in words: signs alone, or one after the other.
func costUnlike(p []byte) (cost int64) {
	letters, sign := false, false
	for i, c := range p {
		switch {
		case isAlnum(c) || c >= utf8.RuneSelf:
			letters, sign = true, false
		case c == '\r' && (i+1 == len(p) || p[i+1] != '\n'):
			cost += 4 * nat
		case c <= ' ' || bytes.IndexByte(commonSigns, c) >= 0:
			sign = false
		default:
			if sign && c != p[i-1] {
				cost += costSignSign
			}
			sign = true
		}
	}
	if !letters && len(p) > 1 {
		cost += costSignsOnly
	}
	return cost
}

// commonSigns stand in names, sentences, paths and JSON beside each other.
var commonSigns = []byte(`-_./:,'"()[]{}`)

const (
	costSignSign  = 1500 // two different signs that do not stand together
	costSignsOnly = 2000
)

// costUTF16 is the cost of text in UTF-16 of little or big end first. What is no
// text costs more than its bytes, and so do letters with nothing between them, as
// any numbers of 16 bits could be.
func costUTF16(p []byte) int64 {
	best := int64(math.MaxInt64)
	for first := range 2 {
		cost, script := int64(5*nat), rune(0)
		ascii, han := 0, 0
		for i := 0; i+1 < len(p); i += 2 {
			r := rune(p[i+first]) | rune(p[i+1-first])<<8
			if r >= 0xd800 && r < 0xdc00 && i+3 < len(p) {
				low := rune(p[i+2+first]) | rune(p[i+3-first])<<8
				if low < 0xdc00 || low > 0xdfff {
					cost += 3 * costRawByte
					continue
				}
				r, i = (r-0xd800)<<10+(low-0xdc00)+0x10000, i+2
			}
			switch {
			case r < utf8.RuneSelf:
				ascii++
				cost += costASCII[r] + 200
				continue
			case r >= 0xd800 && r < 0xe000 || !isLetterRange(r) && !unicode.IsPrint(r) && !isMark(r):
				cost += 3 * costRawByte
			case isHan(r): // a half of all units are: an accident tells little
				han++
				if cost += costHan; (r >= 0xac00) != (script >= 0xac00) {
					cost += 3 * nat
				}
			case r>>8 == script>>8:
				cost += costSameScript
			default:
				cost += 2*costRawByte + 500
			}
			script = r
		}
		if 32*ascii >= len(p) || 4*han >= len(p) {
			best = min(best, cost)
		}
	}
	return best
}

// isHan is for the scripts of East Asia, which are written in turn.
func isHan(r rune) bool { return r >= 0x3000 && r < 0xa000 || r >= 0xac00 && r < 0xd7a4 }

// isMark is for what stands between letters and is not seen.
func isMark(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r == 0xfe0f || r == 0xfeff || r == 0xad || r != 0x85 && r > 0x7f && unicode.IsSpace(r)
}

// isLetterRange is a quick test for the scripts that are written most.
func isLetterRange(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x410 && r <= 0x44f || r >= 0x3041 && r <= 0x3096 || r >= 0xac00 && r <= 0xd7a3 || r >= 0xc0 && r <= 0x17f
}

// costVarintLen is the cost of a packed varint by its encoded length: how rare
// the length is, and seven bits for each byte.
var costVarintLen = func() (t [11]int64) {
	share := [11]float64{1: .66, 2: .2, 3: .06, 4: .025, 5: .03, 6: .005, 7: .003, 8: .003, 9: .005, 10: .009}
	for n := 1; n < len(t); n++ {
		t[n] = int64(nat * (-math.Log(share[n]) + float64(7*n)*math.Ln2))
	}
	return t
}()

// costLengths is the cost, in nats, of varints by their length, and of describing how those
// lengths are distributed: in bits, of which those below the top one are free, or in bytes,
// of which seven bits are. There are scale times as many, and one of thin was looked at.
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
func costFixeds(s *fixeds) (each, least float64) {
	each = float64(min(s.Float, s.Int)) / nat
	least = each
	if !s.Values.Full {
		least = min(each, costDistinct(s.Values, each/float64(s.N)))
	}
	return each, least
}

// costDistinct is the cost of values out of a small set: each is described
// once at the given price, and every occurrence then chooses one.
func costDistinct(s *sketch, each float64) float64 {
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
	if width == 64 || v < 1<<32 {
		for _, t := range times {
			if v-t.from < t.span {
				return t.cost
			}
		}
	}
	// Hashes fill the width: they cost what bytes do, and that they are such.
	return min(costBits[bits.Len64(v)], int64(width/8)*costRawByte+costFull)
}

// times are the ranges of Unix times of 2010 to 2037 in seconds and parts of them, each
// with what a number costs that is one of these times.
var times = func() (t [4]struct {
	from, span uint64
	cost       int64
},
) {
	per := uint64(1)
	for i := range t {
		t[i].from, t[i].span = 1_262_304_000*per, 852_000_000*per
		t[i].cost = int64(nat * (3.5 + math.Log(float64(t[i].span))))
		per *= 1000
	}
	return t
}()

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
	return costReal(f, exp, bits.TrailingZeros64(v|1<<52), 52, 1e-15)
}

// costFloat is costDouble for 4 bytes.
func costFloat(v uint32) int64 {
	f := float64(math.Float32frombits(v))
	exp := int(v>>23&0xff) - 127
	return costReal(f, exp, bits.TrailingZeros32(v|1<<23), 23, 6.5e-8)
}

// costDecimal is the cost, in nats, of a number by its digits, if it has no more than
// five behind the point as exactly as it is written.
func costDecimal(f, precision float64) (cost float64, ok bool) {
	s := math.Abs(f)
	for digits := range 6 {
		off := s * precision
		if off > 0.01 { // any number is near one that is whole
			return 0, false
		}
		if s >= 1 && math.Abs(s-math.Round(s)) <= off {
			return math.Log(s+2) + 1.5 + 0.5*float64(digits), true
		}
		s *= 10
	}
	return 0, false
}

func costReal(f float64, exp, trailing, mantissa int, precision float64) int64 {
	full := float64(mantissa) * math.Ln2
	var cost float64
	switch {
	case f == 0:
		return 2500
	case math.IsNaN(f) || math.IsInf(f, 0):
		return int64(nat * (full + 12))
	case exp >= -8 && exp <= 11: // a thousandth to a thousand are most
		cost = 3.4
	case exp >= -14 && exp <= 20:
		cost = 4.4
	case exp >= -20 && exp <= 33:
		cost = 5.5
	case exp >= -64 && exp <= 64:
		cost = 8
	default:
		cost = 13
	}
	if f < 0 {
		cost++
	}
	bitsLeft := full - float64(trailing)*math.Ln2 + 1.5
	if trailing < 8 && exp >= -20 && exp <= 50 {
		if short, ok := costDecimal(f, precision); ok {
			bitsLeft = min(bitsLeft, short)
		}
	}
	return int64(nat * (cost + min(full, bitsLeft)))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
