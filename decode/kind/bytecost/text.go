package bytecost

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"
)

const (
	// costControl is the cost of a control character other than tab and newline. All costs are in thousandths of a
	// nat.
	costControl = 11 * Nat

	// costFirstSpace is added because text rarely begins with white space.
	costFirstSpace = 3 * Nat

	// costSameScript is the cost of a character outside ASCII of the same script as the one before.
	costSameScript = 4200

	// costOtherScript is the cost of a character of another script.
	costOtherScript = 9 * Nat

	// costUnassigned is for a code point that is not a character.
	costUnassigned = 14 * Nat

	// costNextDigit is for a digit behind a digit.
	costNextDigit = 2500

	// costHan is for an East Asian character in UTF-16.
	costHan = 10300

	// costMark is for an invisible character between letters.
	costMark = 4 * Nat
)

// costASCII is the cost of each ASCII character in text, in thousandths of a nat.
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

// A charCost is the cost of an ASCII character in text, with the flags charDigit and charControl.
type charCost uint16

const (
	// charDigit and charControl flag digits and control characters, and charCostMask selects the cost.
	charDigit    charCost = 1 << 14
	charControl  charCost = 1 << 15
	charCostMask          = charDigit - 1
)

// charCostOf is costASCII with the flags of each character.
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

// Text returns the cost (description length in thousandths of a nat) of p, which must be valid UTF-8, as text,
// judged by its first Head bytes. control reports whether these have control characters.
func Text(p []byte) (cost int64, control bool) {
	if c := p[0]; c == '\n' || c == ' ' || c == '\t' || c == '\r' {
		cost += costFirstSpace
	}
	if len(p) < ProseLen {
		cost += costUnwordlike(p)
	}

	p = p[:min(len(p), Head)]
	i, sum, kinds := costASCIIText(p)
	cost += sum
	control = kinds&charControl != 0
	// Characters outside ASCII cost less if they continue the script before them.
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
			// Head cut the character.
			break
		}
		i += n
		switch {
		case isMark(r):
			cost += costMark
			continue
		case !isLetterRange(r) && !strconv.IsPrint(r):
			cost += costUnassigned
			control = true
		case r>>9 == script>>9 || r >= 0x3000 && r < 0xa000 && script >= 0x3000 && script < 0xa000:
			cost += costSameScript + int64(n-2)*1300
		default:
			cost += costOtherScript
		}
		script = r
	}
	return cost, control
}

// costASCIIText sums the costs of the ASCII characters at the beginning of p. n is their number, and kinds has the
// union of their flags.
func costASCIIText(p []byte) (n int, cost int64, kinds charCost) {
	var last charCost
	// pairs counts digits behind digits, as multiples of the flag.
	pairs := int64(0)
	for _, c := range p {
		if c >= utf8.RuneSelf {
			break
		}
		t := charCostOf[c]
		cost += int64(t & charCostMask)
		pairs += int64(t & last & charDigit)
		last = t
		kinds |= t
		n++
	}
	return n, cost - pairs/int64(charDigit)*(costASCII['0']-costNextDigit), kinds
}

// costUnwordlike returns an extra cost for short texts whose sequence of characters does not resemble
// words: only signs, or several different signs in a row.
func costUnwordlike(p []byte) (cost int64) {
	letters, sign := false, false
	for i, c := range p {
		switch {
		case isAlnum(c) || c >= utf8.RuneSelf:
			letters, sign = true, false
		case c == '\r' && (i+1 == len(p) || p[i+1] != '\n'):
			cost += 4 * Nat
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

// commonSigns are the punctuation characters that are common next to each other in names, sentences, paths and
// JSON.
var commonSigns = []byte(`-_./:,'"()[]{}`)

const (
	// costSignSign is the extra cost of two different signs (neither letters nor digits) in a row.
	costSignSign = 1500

	// costSignsOnly is the extra cost of text without letters and digits.
	costSignsOnly = 2000
)

// costUTF16 returns the cost of p as UTF-16 in either byte order. Data that is not text costs more than raw bytes.
// So does text without any ASCII, since arbitrary 16-bit numbers are often assigned characters. The result is at most
// most.
func costUTF16(p []byte, most int64) int64 {
	best := most
	for first := range 2 {
		// Stating the byte order costs a constant.
		cost, script := int64(5*Nat), rune(0)
		ascii, han := 0, 0
		for i := 0; i+1 < len(p) && cost < best; i += 2 {
			r := rune(p[i+first]) | rune(p[i+1-first])<<8
			// A surrogate pair.
			if r >= 0xd800 && r < 0xdc00 && i+3 < len(p) {
				low := rune(p[i+2+first]) | rune(p[i+3-first])<<8
				if low < 0xdc00 || low > 0xdfff {
					cost += 3 * RawByte
					continue
				}
				r, i = (r-0xd800)<<10+(low-0xdc00)+0x10000, i+2
			}
			switch {
			case r < utf8.RuneSelf:
				ascii++
				cost += costASCII[r] + 200
				continue
			case !isUTF16Char(r):
				cost += 3 * RawByte
			// Half of all 16-bit units are East Asian characters, so each is weak evidence.
			case isHan(r):
				han++
				if cost += costHan; (r >= 0xac00) != (script >= 0xac00) {
					cost += 3 * Nat
				}
			case r>>8 == script>>8:
				cost += costSameScript
			default:
				cost += 2*RawByte + 500
			}
			script = r
		}

		// Text in UTF-16 has spaces and punctuation from ASCII, unless it is East Asian.
		if 32*ascii >= len(p) || 4*han >= len(p) {
			best = min(best, cost)
		}
	}
	return best
}

// isUTF16Char reports whether r is a character that text in UTF-16 contains: no lone surrogate, and printable or a mark.
func isUTF16Char(r rune) bool {
	return (r < 0xd800 || r >= 0xe000) && (isLetterRange(r) || strconv.IsPrint(r) || isMark(r))
}

// isHan reports whether r is of an East Asian script. These scripts are mixed in one text.
func isHan(r rune) bool { return r >= 0x3000 && r < 0xa000 || r >= 0xac00 && r < 0xd7a4 }

// isMark reports whether r is an invisible character that is common between letters, such as a joiner.
func isMark(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r == 0xfe0f || r == 0xfeff || r == 0xad || r != 0x85 && r > 0x7f && unicode.IsSpace(r)
}

// isLetterRange is a fast test for printable characters of the most common scripts, and for those that pairs of ASCII
// characters are in UTF-16.
func isLetterRange(r rune) bool {
	return r >= 0x3220 && r <= 0x9fff || r >= 0x410 && r <= 0x44f || r >= 0x3041 && r <= 0x3096 || r >= 0xac00 && r <= 0xd7a3 || r >= 0xc0 && r <= 0x17f ||
		r >= 0x3001 && r <= 0x303f || r >= 0x3131 && r <= 0x318e
}

// isDigit reports whether c is an ASCII digit.
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isAlnum reports whether c is an ASCII letter or digit.
func isAlnum(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
