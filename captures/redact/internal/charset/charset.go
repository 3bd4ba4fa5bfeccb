// Package charset has the sets of bytes of which secrets and their names consist, and checks for runs of such
// bytes. Packages keyshape, names and syntax use it.
package charset

import (
	"bytes"
	"strings"
)

// A Set is a set of byte values, indexed by the byte.
type Set [256]bool

// Has reports whether c is in the set.
func (s *Set) Has(c byte) bool { return s[c] }

// of returns the set of the characters in a string.
func of(chars string) *Set {
	var s Set
	for i := range len(chars) {
		s[chars[i]] = true
	}
	return &s
}

const (
	// digits and letters are the ASCII digits and letters.
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Sets of characters for the search. They must not be changed.
var (
	Alnum = of(digits + letters)
	Upper = of(digits + "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	// Word contains the characters of base64url, and Dotted those of a JSON Web Token.
	Word   = of(digits + letters + "_-")
	Dotted = of(digits + letters + "_-.")

	// Token contains the characters of bearer tokens (RFC 6750) and of other common tokens.
	Token = of(digits + letters + "_-.~+/=%|:")

	// opaque contains the characters of tokens, including those that consist of several parts.
	opaque = of(digits + letters + "_-.~+/=%|:;@!*,")

	// Login contains the characters of a user name and password joined by a colon.
	Login = of(digits + letters + "_-.~+=%:@!")

	// Base64 contains the characters of base64, and its line breaks and their escapes.
	Base64 = of(digits + letters + "+/=\r\n\\")

	// Crypt contains the characters of hashes of passwords.
	Crypt = of(digits + letters + "./$+=,-_")

	Hex     = of("0123456789abcdef")
	URLPath = of(digits + letters + "_-/")

	// Name contains the characters of names of parameters and variables.
	Name = of(digits + letters + "_-.")

	// Member contains the characters of names of JSON members: ASCII ones, and all bytes of others.
	Member = func() *Set {
		s := of(digits + letters + "_-. [:$/]#")
		for c := 0x80; c < len(s); c++ {
			s[c] = true
		}
		return s
	}()

	// User contains the characters of the user information in a URL.
	User = of(digits + letters + "_-.~!$&'()*+%=")

	// Bare contains the characters of a value without quotes, as in a configuration file.
	Bare = func() *Set {
		var s Set
		for c := range 256 {
			s[c] = c > ' ' && c != 0x7f && bytes.IndexByte([]byte("\"'`,;<>()[]{}&\\"), byte(c)) < 0
		}
		return &s
	}()

	// BeforeSign contains the characters that may precede an assignment's sign (':' or '=') or the '>' of a
	// tag.
	BeforeSign = of(digits + letters + "_-. []\t\"':$/\\<&;")
)

// LooksRandom reports whether a value looks like a token rather than words: at least 16 bytes, one word, and
// with a digit. It is used if the value's name does not always denote a secret.
func LooksRandom(v []byte) bool {
	digit := false
	for _, c := range v {
		if !opaque.Has(c) {
			return false
		}
		digit = digit || c >= '0' && c <= '9'
	}
	return digit && len(v) >= leastRandom
}

// LooksToken reports whether a value with the name of a token looks like one: it looks random, as a whole or after a
// word such as "Bearer", or it is shorter and mixes letters and digits as words do not. A time is no token.
func LooksToken(v []byte) bool {
	if LooksTime(v) {
		return false
	}
	if LooksRandom(v) || len(v) >= leastMixed && len(v) < leastRandom && looksMixed(v, 1) {
		return true
	}
	word, rest, ok := bytes.Cut(v, []byte(" "))
	return ok && len(word) > 1 && len(word) <= maxSchemeWord && LooksRandom(rest) && len(bytes.Trim(word, letters)) == 0
}

// LooksTime reports whether a value begins with a date, as in 2024-01-31.
func LooksTime(v []byte) bool {
	return len(v) >= 10 && v[4] == '-' && v[7] == '-' && len(bytes.Trim(v[:4], digits)) == 0 && len(bytes.Trim(v[8:10], digits)) == 0
}

const (
	// leastRandom is the smallest length of a value that looks random, leastMixed that of one that mixes letters of
	// both cases and digits, in bytes.
	leastRandom = 16
	leastMixed  = 12

	// maxSchemeWord is the greatest length of the word before a token, in bytes.
	maxSchemeWord = 16
)

// looksMixed reports whether a value consists of letters and digits that alternate more often than in words, with at
// least so many runs of digits.
func looksMixed(v []byte, runs int) bool {
	changes, last := 0, byte(0)
	var upper, lower bool
	for _, c := range v {
		if !Alnum.Has(c) {
			return false
		}
		class := c & 0x60
		upper, lower = upper || class == 'A'&0x60, lower || class == 'a'&0x60
		if class != last {
			changes++
			if class == '0'&0x60 {
				runs--
			}
		}
		last = class
	}
	return upper && lower && runs <= 0 && 5*changes > 2*len(v)
}

// LooksPIN reports whether a value consists of 4 to 12 digits.
func LooksPIN(v []byte) bool {
	return len(v) >= 4 && len(v) <= 12 && len(bytes.Trim(v, digits)) == 0
}

// LooksCard reports whether a value is the number of a payment card: 12 to 19 digits, perhaps in groups, whose last one checks
// the others.
//
// Source: ISO/IEC 7812-1, annex B
func LooksCard(v []byte) bool {
	count, sum := 0, 0
	for i := len(v) - 1; i >= 0; i-- {
		c := v[i]
		if c == ' ' || c == '-' {
			continue
		}
		if c < '0' || c > '9' {
			return false
		}
		n := int(c - '0')
		if count%2 == 1 {
			n *= 2
		}
		sum += n/10 + n%10
		count++
	}
	return count >= 12 && count <= 19 && sum%10 == 0 && sum > 0
}

// LooksKey reports whether a value looks like a random key: at least 32 hexadecimal digits, or at least 20
// letters and digits that alternate as often as random ones do, or 16 if they alternate more often.
func LooksKey(v []byte) bool {
	if len(v) < leastKey {
		return len(v) >= leastRandom && looksMixed(v, 2)
	}
	return len(v) <= 4<<10 && alternates(v)
}

// LooksMixedKey reports whether a value of at least 20 bytes mixes letters of both cases and digits as a random key does. An
// identifier in hexadecimal digits does not, nor does a title in camel case.
func LooksMixedKey(v []byte) bool { return len(v) >= leastKey && looksMixed(v, 2) }

// LooksShortKey reports whether a value of 8 to 15 bytes mixes letters of both cases and digits as a random key does.
func LooksShortKey(v []byte) bool {
	return len(v) >= LeastShortKey && len(v) < leastRandom && looksMixed(v, 1)
}

// LeastShortKey is the smallest length of a value for LooksShortKey, in bytes.
const LeastShortKey = 8

// leastKey is the smallest length of a value of which LooksKey expects as few changes as in random text, in bytes.
const leastKey = 20

// alternates reports whether a value consists of hexadecimal digits, or of letters and digits that alternate as often as
// random ones do.
func alternates(v []byte) bool {
	changes, digit, hex := 0, false, len(v) >= 32
	last := byte(0)
	for _, c := range v {
		class := byte(0)
		switch {
		case c >= '0' && c <= '9':
			class, digit = '0', true
		case c >= 'a' && c <= 'z':
			class = 'a'
			hex = hex && c <= 'f'
		case c >= 'A' && c <= 'Z':
			class, hex = 'A', false
		case c == '+' || c == '/' || c == '=' || c == '_' || c == '-':
			class, hex = last, false
		default:
			return false
		}
		// Random text changes its character class often; words do not.
		if class != last {
			changes++
		}
		last = class
	}
	return digit && (hex || 3*changes >= len(v))
}

// IsIdentifier reports whether a value has the form of a public identifier: an address on a blockchain ("0x" and 40
// hexadecimal digits), or two capital letters and 32 hexadecimal digits, as Twilio's identifiers.
func IsIdentifier(v []byte) bool {
	switch len(v) {
	case 42:
		return v[0] == '0' && v[1] == 'x' && IsHex(strings.ToLower(string(v[2:])))
	case 34:
		return v[0] >= 'A' && v[0] <= 'Z' && v[1] >= 'A' && v[1] <= 'Z' && IsHex(string(v[2:]))
	}
	return false
}

// LooksCode reports whether a value looks like a code that a person types: 4 to 64 letters, digits and dashes, with
// only capital letters or at least one digit.
func LooksCode(v []byte) bool {
	if len(v) < 4 || len(v) > 64 {
		return false
	}
	digit, lower := false, false
	for _, c := range v {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= 'A' && c <= 'Z' || c == '-' || c == '_':
		default:
			return false
		}
	}
	return digit || !lower
}

// IsHex reports whether s consists of hexadecimal digits in lower case only.
func IsHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// IsHexDigit reports whether c is a hexadecimal digit, in either case.
func IsHexDigit(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// Unhex returns the value, 0 to 15, of a hexadecimal digit.
func Unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
