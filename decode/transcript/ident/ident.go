// Package ident recognizes identifiers and other values that differ in every run: UUIDs, hex digests, random
// ids, signed tokens, times. A text goes in, and a Class comes out:
//
//	ident.Of("3f2504e0-4f89-41d3-9a0c-0305e82c3301") // ident.UUID
//
// Packages diff and transcript use it to ignore such values, or to connect the messages that share one.
package ident

import (
	"strings"
	"time"
)

// A Class is a kind of identifier or other value that differs in each run, such as "uuid". "" means that a text is
// none.
type Class string

// The classes of identifiers.
const (
	// UUID is a UUID with dashes.
	UUID Class = "uuid"

	// Hex is 16 hex digits or more, or groups of them.
	Hex Class = "hex id"

	// ID is a ULID, or a prefix with a random part: toolu_01ABcd…
	ID Class = "id"

	// Token is a JWT, or a long random text.
	Token Class = "token"

	// Time is a time in the format of RFC 3339.
	Time Class = "timestamp"

	// Bytes is 16, 20, 32 or 64 random bytes.
	Bytes Class = "binary id"
)

// firstTime and lastTime limit the numbers that count as Unix times in seconds: 2015 to 2045. Numbers outside this
// range are more often counts.
const (
	firstTime = 1420070400
	lastTime  = 2366841600
)

// maxWord is the maximum length in bytes of a word that is examined, so that texts are processed in linear time.
const maxWord = 4096

// IsTime reports whether v is a plausible Unix time in seconds, milliseconds,
// microseconds or nanoseconds.
func IsTime(v uint64) bool {
	for _, unit := range [...]uint64{1, 1e3, 1e6, 1e9} {
		if s := v / unit; s >= firstTime && s < lastTime {
			return true
		}
	}
	return false
}

// IsBytes reports whether b resembles a binary identifier or digest by its length and by the variety of its
// bytes.
func IsBytes(b []byte) bool {
	switch len(b) {
	case 16, 20, 32, 64:
	default:
		return false
	}
	var seen [256]bool
	distinct, letters := 0, 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			distinct++
		}
		if c >= ' ' && c < 0x7f {
			letters++
		}
	}
	return distinct*4 >= len(b)*3 && letters*4 < len(b)*3
}

// Of returns the class of s if all of s is one identifier, and "" otherwise.
func Of(s string) Class {
	if len(s) == 0 || len(s) > maxWord || !isWord(s[0]) || Next(s, 0) != len(s) {
		return ""
	}
	if class, n := Classify(s); n == len(s) {
		return class
	}
	return ""
}

// Next returns the end of the word at s[i:]: letters, digits, dashes and underscores, and single other
// characters that may connect parts of one token. It returns i if no word begins there.
//
// Limits: a word ends after 4,096 bytes.
func Next(s string, i int) int {
	limit := min(len(s), i+maxWord)
	for i < limit && (isWord(s[i]) || joins(s, i)) {
		i++
	}
	return i
}

// isWord reports whether c always belongs to a word.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// joins reports whether s[i] may connect parts of one token: the colon and period of a time, the periods of a
// signed token, the special characters of base64.
func joins(s string, i int) bool {
	switch s[i] {
	case ':', '.', '+', '/', '=', '~':
	default:
		return false
	}
	return i > 0 && i+1 < len(s) && isWord(s[i-1]) && isWord(s[i+1])
}

// Classify returns the class and the length of the identifier at the beginning of w, which must be a word as
// Next delimits it. It returns "" if there is none.
func Classify(w string) (Class, int) {
	if isUUID(w) {
		return UUID, 36
	}
	if n := timeLen(w); n > 0 {
		return Time, n
	}

	// The other classes contain no connecting characters, except tokens.
	word := w
	for i := range len(w) {
		if !isWord(w[i]) {
			word = w[:i]
			break
		}
	}
	// A signed token consists of several words.
	if isSigned(w) {
		return Token, len(w)
	}
	// Shorter hexadecimal words are too often ordinary words.
	if len(word) >= 16 && isHex(word) {
		return Hex, len(word)
	}
	if isRandomID(word) || isPrefixedUUID(word) {
		return ID, len(word)
	}
	// Base64 may contain connecting characters.
	if isRandom(w) {
		return Token, len(w)
	}
	return "", 0
}

// isUUID reports whether w begins with a UUID that ends at a word boundary.
func isUUID(w string) bool {
	if len(w) < 36 || len(w) > 36 && isWord(w[36]) {
		return false
	}
	for i := range 36 {
		switch i {
		case 8, 13, 18, 23:
			if w[i] != '-' {
				return false
			}
		default:
			if !isHexDigit(w[i]) {
				return false
			}
		}
	}
	return true
}

// isHexDigit reports whether c is a hex digit.
func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isHex reports whether w consists of hex digits, or of groups of them joined by dashes as in a traceparent,
// with both letters and digits.
func isHex(w string) bool {
	letters, digits := 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			digits++
		case isHexDigit(c):
			letters++
		case c != '-':
			return false
		}
	}
	return letters > 0 && digits > 1
}

// timeLen returns the length of the RFC 3339 time at the beginning of w, or 0.
func timeLen(w string) int {
	if len(w) < 19 || w[4] != '-' || w[7] != '-' || w[10] != 'T' {
		return 0
	}
	if _, err := time.Parse("2006-01-02T15:04:05", w[:19]); err != nil {
		return 0
	}
	// The fraction of a second, then the zone.
	n := 19
	if n < len(w) && w[n] == '.' {
		for n++; n < len(w) && w[n] >= '0' && w[n] <= '9'; n++ {
		}
	}
	if n < len(w) && w[n] == 'Z' {
		return n + 1
	}
	if n+6 <= len(w) && (w[n] == '+' || w[n] == '-') && w[n+3] == ':' {
		return n + 6
	}
	return n
}

// isSigned reports whether w resembles a JWT: three parts, of which the first is a JSON object in base64.
func isSigned(w string) bool {
	return strings.HasPrefix(w, "eyJ") && strings.Count(w, ".") == 2 && len(w) >= 40
}

// isRandomID reports whether w is a ULID, or a short prefix with a random part: toolu_01ABcd…, req_9f…,
// chatcmpl-B7x….
func isRandomID(w string) bool {
	if len(w) == 26 && w[0] >= '0' && w[0] <= '7' && mix(w) >= 2 && strings.ToUpper(w) == w {
		return true
	}
	cut := strings.LastIndexAny(w, "_-")
	if cut < 1 || cut > 24 {
		return false
	}
	tail := w[cut+1:]
	if len(tail) >= 16 && isHex(tail) {
		return true
	}
	// Random characters change their kind often, words do not.
	return len(tail) >= 10 && mix(tail) >= 2 && changes(tail)*4 >= len(tail)
}

// isPrefixedUUID reports whether w is a short prefix with a UUID: run-3f2a9c1e-….
func isPrefixedUUID(w string) bool {
	cut := len(w) - 36
	return cut >= 2 && cut <= 24 && (w[cut-1] == '-' || w[cut-1] == '_') && isUUID(w[cut:])
}

// isRandom reports whether w is a long text that does not resemble words.
func isRandom(w string) bool {
	return len(w) >= 20 && mix(w) == 3 && changes(w)*3 >= len(w)
}

// mix returns the number of classes among lower case, upper case and digits that occur in w, or 0 if w has no
// digits.
func mix(w string) int {
	var lower, upper, digit int
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			digit = 1
		case c >= 'a' && c <= 'z':
			lower = 1
		case c >= 'A' && c <= 'Z':
			upper = 1
		}
	}
	if digit == 0 {
		return 0
	}
	return lower + upper + digit
}

// changes returns the number of positions at which adjacent characters are of different kinds. They are rare in
// words and numbers, but random characters change at every second position.
func changes(w string) int {
	n := 0
	for i := 1; i < len(w); i++ {
		if charKind(w[i]) != charKind(w[i-1]) {
			n++
		}
	}
	return n
}

// charKind returns a number for the kind of a character: lower case, upper case, digit or other.
func charKind(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return 1
	case c >= 'a' && c <= 'z':
		return 2
	case c >= 'A' && c <= 'Z':
		return 3
	}
	return 4
}
