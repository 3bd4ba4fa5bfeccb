package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// codeSigns precede a code of digits in a message to a person. Before those that begin with "code", one of codeWords must be.
var codeSigns = textsOf("code is ", "code is: ", "code: ", "code+is+", "code+is%3A+", "code%3A+", "Use code ")

// codeWords are ends of words before "code" with which it is one for a login; an error code, for example, is none.
var codeWords = []string{
	"your", "verification", "login", "security", "confirmation", "access", "authentication", "one-time", "sign-in", "activation", "recovery", "pass",
}

const (
	// leastCodeDigits and maxCodeDigits limit the length of a code.
	leastCodeDigits = 4
	maxCodeDigits   = 10
)

// codeAt finds the code of digits after one of codeSigns, which begins at index i: "Your code is 123456". final is as for
// Finder.At.
func codeAt(b []byte, i int, final bool) (match.Match, match.State) {
	sign, v := codeSigns.firstOf(b[i:])
	if v == match.Undecided && !final {
		return match.Match{}, v
	}
	if sign == "" || sign[0] == 'c' && !followsCodeWord(b[max(0, i-lookBack):i]) {
		return match.Match{}, match.Nothing
	}
	from := i + len(sign)
	end := from
	for end < len(b) && end-from <= maxCodeDigits && (b[end] >= '0' && b[end] <= '9') {
		end++
	}
	switch {
	case end == len(b) && !final && end-from <= maxCodeDigits:
		return match.Match{}, match.Undecided
	case end-from < leastCodeDigits, end-from > maxCodeDigits, end < len(b) && charset.Alnum.Has(b[end]):
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: from, End: end, Secret: string(b[from:end]), Rule: match.Parameter, Name: "code"}, match.Found
}

// followsCodeWord reports whether b ends in one of codeWords, in any case, and perhaps a space.
func followsCodeWord(b []byte) bool {
	b = bytes.ToLower(bytes.TrimRight(b[max(0, len(b)-24):], " +"))
	return hasSuffixOf(b, codeWords)
}
