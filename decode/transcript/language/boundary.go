package language

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// BreakBetween scores, from 0 to 1, how certainly text b does not continue text a.
func BreakBetween(a, b string) float64 {
	before, _ := utf8.DecodeLastRuneInString(a)
	after, size := utf8.DecodeRuneInString(b)
	spaced := unicode.IsSpace(before)
	if unicode.IsSpace(after) {
		if spaced && after == ' ' && before == ' ' {
			return 0.5
		}
		spaced = true
		after, _ = utf8.DecodeRuneInString(b[size:])
	}

	if trimmed := strings.TrimRight(a, " \n\t"); trimmed != "" {
		before, _ = utf8.DecodeLastRuneInString(trimmed)
	}

	// The score is 1 for an implausible boundary, such as a period before a lower-case letter.
	switch {
	case before == utf8.RuneError || after == utf8.RuneError:
		return 0
	case strings.ContainsRune(".!?", before) && unicode.IsLower(after):
		return 1
	case unicode.IsLower(before) && unicode.IsUpper(after):
		if spaced {
			return 0.3
		}
		return 1
	case strings.HasPrefix(b, "```") && before != '\n' && !strings.HasSuffix(a, "\n"):
		return 1
	case !spaced && unicode.IsLetter(before) && unicode.IsLetter(after) && IsUnspaced(before) != IsUnspaced(after):
		return 0.3
	}

	return 0
}

// ReadsOn reports whether text b certainly continues text a inside a sentence.
func ReadsOn(a, b string) bool {
	if strings.HasPrefix(b, a) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(a)
	after, size := utf8.DecodeRuneInString(b)
	switch {
	case unicode.IsSpace(after):
		next, _ := utf8.DecodeRuneInString(b[size:])
		return (unicode.IsLower(next) || next == utf8.RuneError) && after == ' '
	case unicode.IsLower(after):
		return unicode.IsLower(before) || before == ' '
	}
	return false
}
