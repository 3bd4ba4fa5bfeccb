package search

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A Text is a pattern that is searched for in texts: a literal, one of several literals, or a regular expression.
type Text struct {
	// re is the regular expression, or nil for a literal.
	re *regexp.Regexp

	// literal is the text to search for, if the pattern is equivalent to a literal.
	literal []byte

	// set has the texts to search for if the pattern is several literals; nil otherwise.
	set *literalSet

	// fold means that case is ignored. The literal is then ASCII in lower case.
	fold bool
}

// NewText returns a pattern for searching. pattern is a regular expression (RE2) or, if fixed is true, literal
// text. fold ignores case.
func NewText(pattern string, fixed, fold bool) (*Text, error) {
	if fixed {
		if !fold {
			return &Text{literal: []byte(pattern)}, nil
		}
		if isASCII(pattern) {
			return &Text{literal: []byte(strings.ToLower(pattern)), fold: true}, nil
		}
		pattern = regexp.QuoteMeta(pattern)
	}

	// Go's regular expressions implement folding by a flag.
	if fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("the pattern is not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	// Literals are much faster than regular expressions.
	if lit, whole := re.LiteralPrefix(); whole {
		return &Text{literal: []byte(lit)}, nil
	}
	if lit, ok := foldedLiteral(pattern); ok {
		return &Text{literal: lit, fold: true}, nil
	}
	return &Text{re: re}, nil
}

// foldedLiteral returns the text, in lower case, that the case-insensitive regular expression pattern matches. ok
// is false if the pattern has operators, or characters that also match non-ASCII characters if case is ignored.
func foldedLiteral(pattern string) (literal []byte, ok bool) {
	p, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || p.Op != syntax.OpLiteral || p.Flags&syntax.FoldCase == 0 || !isASCII(string(p.Rune)) {
		return nil, false
	}
	// K and S also match non-ASCII characters: the Kelvin sign and the long s.
	if strings.ContainsAny(strings.ToLower(string(p.Rune)), "ks") {
		return nil, false
	}
	return []byte(strings.ToLower(string(p.Rune))), true
}

// isASCII reports whether s has only ASCII characters.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Find returns the start and end offsets of the first match in s.
func (t *Text) Find(s string) (lo, hi int, ok bool) { return t.find([]byte(s), 0) }

// find returns the start and end offsets of the first match in data at or after offset from.
func (t *Text) find(data []byte, from int) (lo, hi int, ok bool) {
	switch {
	case t.re != nil:
		if from == 0 {
			loc := t.re.FindIndex(data)
			if loc == nil {
				return 0, 0, false
			}
			return loc[0], loc[1], true
		}
		// Text before from affects ^ and \b, so search from the beginning.
		all := t.re.FindAllIndex(data, maxPerValue)
		for _, loc := range all {
			if loc[0] >= from {
				return loc[0], loc[1], true
			}
		}
		return 0, 0, false
	case t.set != nil:
		return t.set.find(data, from)
	case t.fold:
		k := indexFold(data[from:], t.literal)
		return from + k, from + k + len(t.literal), k >= 0
	}
	k := bytes.Index(data[from:], t.literal)
	return from + k, from + k + len(t.literal), k >= 0
}

// findAll calls f for each match until f returns false. Matches do not overlap.
func (t *Text) findAll(data []byte, f func(lo, hi int) bool) {
	if t.re != nil {
		if !t.re.Match(data) {
			return
		}
		for _, loc := range t.re.FindAllIndex(data, maxPerValue) {
			if !f(loc[0], loc[1]) {
				return
			}
		}
		return
	}
	// Literals need no slice of all matches.
	for from, n := 0, 0; from <= len(data) && n < maxPerValue; n++ {
		lo, hi, ok := t.find(data, from)
		if !ok || !f(lo, hi) {
			return
		}
		from = max(hi, lo+1)
	}
}

// indexFold is bytes.Index ignoring the case of ASCII. sub must be in lower case.
func indexFold(data, sub []byte) int {
	if len(sub) == 0 {
		return 0
	}
	lower, upper := sub[0], sub[0]
	if lower >= 'a' && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	// These are the next offsets of the first letter in either case; -1 means that there is none.
	nextLower, nextUpper := -2, -2
	for i := 0; i+len(sub) <= len(data); i++ {
		if nextLower != -1 && nextLower < i {
			nextLower = indexFrom(data, lower, i)
		}
		if nextUpper != -1 && nextUpper < i {
			nextUpper = indexFrom(data, upper, i)
		}

		// Continue at the nearer one of the two offsets.
		switch {
		case nextLower < 0 && nextUpper < 0:
			return -1
		case nextLower < 0:
			i = nextUpper
		case nextUpper < 0:
			i = nextLower
		default:
			i = min(nextLower, nextUpper)
		}
		if i+len(sub) <= len(data) && equalFold(data[i:i+len(sub)], sub) {
			return i
		}
	}

	return -1
}

// indexFrom returns the offset of the first c in data at or after from, or -1.
func indexFrom(data []byte, c byte, from int) int {
	if k := bytes.IndexByte(data[from:], c); k >= 0 {
		return from + k
	}
	return -1
}

// equalFold reports whether data equals lower, which is in lower case, ignoring the case of ASCII letters.
func equalFold(data, lower []byte) bool {
	for i, c := range data {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
