// Package charset has the sets of bytes that secrets and their names consist of, and what
// can be said of a run of such bytes. Packages keyshape, names and syntax use it.
package charset

import (
	"bytes"
	"strings"
)

// A Set is a set of bytes.
type Set [256]bool

// Has reports whether c is in the set.
func (s *Set) Has(c byte) bool { return s[c] }

func of(chars string) *Set {
	var s Set
	for i := range len(chars) {
		s[chars[i]] = true
	}
	return &s
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Read-only after this.
var (
	Alnum  = of(digits + letters)
	Upper  = of(digits + "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	Word   = of(digits + letters + "_-")  // base64url
	Dotted = of(digits + letters + "_-.") // a JWT

	// Token are those of RFC 6750 and others that tokens have.
	Token = of(digits + letters + "_-.~+/=%|:")

	// Login are those of a name and a password with a colon between them.
	Login = of(digits + letters + "_-.~+=%:@!")

	// Base64 are those of base64 with its line breaks, or their escapes.
	Base64 = of(digits + letters + "+/=\r\n\\")

	Hex     = of("0123456789abcdef")
	URLPath = of(digits + letters + "_-/")

	// Name are those of the names of parameters and members.
	Name = of(digits + letters + "_-.")

	// Member are those of the names of members of JSON.
	Member = of(digits + letters + "_-. [:$/]")

	// User are those of a URL's userinfo.
	User = of(digits + letters + "_-.~!$&'()*+%=")

	// Bare are those of a value without quotes, as in a line of a configuration.
	Bare = func() *Set {
		var s Set
		for c := range 256 {
			s[c] = c > ' ' && c != 0x7f && bytes.IndexByte([]byte("\"'`,;<>()[]{}&\\"), byte(c)) < 0
		}
		return &s
	}()

	// BeforeSign are the bytes that may stand in front of the sign of an assignment or at
	// the end of a tag.
	BeforeSign = of(digits + letters + "_-. []\t\"':$/\\<&;")
)

// LooksRandom reports whether a value of a name that often means other things
// is a token after all: long, one word, with a digit.
func LooksRandom(v []byte) bool {
	digit := false
	for _, c := range v {
		if !Token.Has(c) {
			return false
		}
		digit = digit || c >= '0' && c <= '9'
	}
	return digit && len(v) >= 16
}

// LooksKey reports whether a value looks like a key at random: 32 digits of hex or more, or 20
// letters and digits or more whose kinds change as often as they do by chance.
func LooksKey(v []byte) bool {
	if len(v) < 20 || len(v) > 4<<10 {
		return false
	}
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
		if class != last {
			changes++
		}
		last = class
	}
	return digit && (hex || 3*changes >= len(v))
}

// IsHex reports whether s has no other bytes than digits of hex in lower case.
func IsHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// Unhex returns the value of a digit of hex.
func Unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
