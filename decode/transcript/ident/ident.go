// Package ident recognises values that name things rather than say something:
// UUIDs, hex digests, random ids, signed tokens, times.
package ident

import (
	"strings"
	"time"
)

// A Class is a kind of identifier; "" is none.
type Class string

// The classes.
const (
	UUID Class = "uuid"
	Hex  Class = "hex id" // 16 hex digits or more, or groups of them
	// A ULID, or a prefix with a random part: toolu_01ABcd…
	ID    Class = "id"
	Token Class = "token"     // a JWT, or a long random run
	Time  Class = "timestamp" // RFC 3339
	Bytes Class = "binary id" // 16, 20, 32 or 64 random bytes
)

// Times count as such from 2015 to 2045: what is outside is more often a count.
const (
	firstTime = 1420070400
	lastTime  = 2366841600
)

const maxWord = 4096 // so that a text is looked at in linear time

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

// IsBytes reports whether b has the length of a binary identifier or digest, and
// bytes as varied as those of one.
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

// Of returns the class of s if all of it is one identifier, else "".
func Of(s string) Class {
	if len(s) == 0 || len(s) > maxWord || !isWord(s[0]) || Next(s, 0) != len(s) {
		return ""
	}
	if class, n := Classify(s); n == len(s) {
		return class
	}
	return ""
}

// Next returns the end of the word at s[i:]: letters, digits, dashes and
// underscores, and single other characters that may join the parts of one
// token. It is i where no word begins.
//
// Limits: a word ends after 4,096 bytes; longer tokens are several.
func Next(s string, i int) int {
	limit := min(len(s), i+maxWord)
	for i < limit && (isWord(s[i]) || joins(s, i)) {
		i++
	}
	return i
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// joins reports whether s[i] may stand between the parts of one token: the
// colon and the point of a time, the points of a signed token, base64's signs.
func joins(s string, i int) bool {
	switch s[i] {
	case ':', '.', '+', '/', '=', '~':
	default:
		return false
	}
	return i > 0 && i+1 < len(s) && isWord(s[i-1]) && isWord(s[i+1])
}

// Classify returns the class of the volatile value that w begins with, and its
// length; "" if there is none. w is a word, as Next delimits it.
func Classify(w string) (Class, int) {
	if isUUID(w) {
		return UUID, 36
	}
	if n := timeLen(w); n > 0 {
		return Time, n
	}
	word := w
	for i := range len(w) {
		if !isWord(w[i]) {
			word = w[:i]
			break
		}
	}
	if isSigned(w) {
		return Token, len(w)
	}
	if len(word) >= 16 && isHex(word) {
		return Hex, len(word)
	}
	if isRandomID(word) || isPrefixedUUID(word) {
		return ID, len(word)
	}
	if isRandom(w) {
		return Token, len(w)
	}
	return "", 0
}

// isUUID reports whether w begins with a UUID that ends there.
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

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isHex reports whether w is hex digits, or groups of them joined by dashes as
// in a traceparent, with a letter and a digit among them.
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

// timeLen is the length of the RFC 3339 time that w begins with, or 0.
func timeLen(w string) int {
	if len(w) < 19 || w[4] != '-' || w[7] != '-' || w[10] != 'T' {
		return 0
	}
	if _, err := time.Parse("2006-01-02T15:04:05", w[:19]); err != nil {
		return 0
	}
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

// isSigned reports whether w looks like a JWT: three parts, the first an object in base64.
func isSigned(w string) bool {
	return strings.HasPrefix(w, "eyJ") && strings.Count(w, ".") == 2 && len(w) >= 40
}

// isRandomID reports whether w is a ULID or a short prefix, "_", and a random
// part: toolu_01ABcd…, req_9f…, chatcmpl-B7x….
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
	return len(tail) >= 10 && mix(tail) >= 2 && changes(tail)*4 >= len(tail)
}

// isPrefixedUUID reports whether w is a short prefix and a UUID: run-3f2a9c1e-….
func isPrefixedUUID(w string) bool {
	cut := len(w) - 36
	return cut >= 2 && cut <= 24 && (w[cut-1] == '-' || w[cut-1] == '_') && isUUID(w[cut:])
}

// isRandom reports whether w is a long run without the look of words.
func isRandom(w string) bool {
	return len(w) >= 20 && mix(w) == 3 && changes(w)*3 >= len(w)
}

// mix counts which of lower case, upper case and digits occur in w, provided
// that digits do.
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

// changes counts how often neighbours in w are of different kinds: words and
// numbers change seldom, random characters at every second place.
func changes(w string) int {
	n := 0
	for i := 1; i < len(w); i++ {
		if charKind(w[i]) != charKind(w[i-1]) {
			n++
		}
	}
	return n
}

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
