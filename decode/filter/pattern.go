package filter

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A pattern is a text with the wildcards * (any text) and ? (one character), with which values are compared.
type pattern struct {
	// parts are the texts between the * wildcards. A pattern without * has one part. In a part, anyRune
	// represents the wildcard ?.
	parts []string
}

// anyRune represents ? in a part. It is a noncharacter of Unicode, so texts do not contain it.
const anyRune = '\uFFFF'

// newPattern parses a pattern, in which a backslash precedes a literal wildcard.
func newPattern(text string) pattern {
	var p pattern
	var part strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\\' && i+1 < len(text) && strings.IndexByte(`*?\`, text[i+1]) >= 0:
			part.WriteByte(text[i+1])
			n = 2
		case r == '*':
			p.parts = append(p.parts, part.String())
			part.Reset()
		case r == '?':
			part.WriteRune(anyRune)
		default:
			part.WriteString(text[i : i+n])
		}
		i += n
	}
	p.parts = append(p.parts, part.String())
	return p
}

// literal returns the text of a pattern without wildcards. ok is false if it has any.
func (p pattern) literal() (text string, ok bool) {
	return p.parts[0], len(p.parts) == 1 && !strings.ContainsRune(p.parts[0], anyRune)
}

// lower returns the pattern in lower case, for comparison with texts in lower case.
func (p pattern) lower() pattern {
	parts := make([]string, len(p.parts))
	for i, s := range p.parts {
		parts[i] = strings.ToLower(s)
	}
	return pattern{parts}
}

// anywhere returns a pattern that matches every text that contains a match of p.
func (p pattern) anywhere() pattern {
	parts := append([]string{""}, p.parts...)
	return pattern{append(parts, "")}
}

// matches reports whether the whole text matches. Each part is matched as early as possible behind the previous
// one, so no backtracking is necessary.
func (p pattern) matches(text string) bool {
	// The first part must be at the beginning.
	first, last := p.parts[0], p.parts[len(p.parts)-1]
	n, ok := prefixLen(text, first)
	if !ok {
		return false
	}
	if len(p.parts) == 1 {
		return n == len(text)
	}

	// The middle parts follow in order.
	text = text[n:]
	for _, part := range p.parts[1 : len(p.parts)-1] {
		end, ok := findPart(text, part)
		if !ok {
			return false
		}
		text = text[end:]
	}
	// The last part must be at the end, so skip the characters before it.
	for skip := utf8.RuneCountInString(text) - utf8.RuneCountInString(last); skip != 0; skip-- {
		if skip < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	n, ok = prefixLen(text, last)
	return ok && n == len(text)
}

// findPart returns the end of the first occurrence of a part.
func findPart(text, part string) (end int, ok bool) {
	if !strings.ContainsRune(part, anyRune) {
		at := strings.Index(text, part)
		return at + len(part), at >= 0
	}
	for at := 0; at <= len(text); {
		if n, ok := prefixLen(text[at:], part); ok {
			return at + n, true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += max(size, 1)
	}
	return 0, false
}

// prefixLen returns how many bytes at the beginning of text match a part. ok is false if they do not.
func prefixLen(text, part string) (n int, ok bool) {
	for len(part) > 0 {
		if r, size := utf8.DecodeRuneInString(part); r == anyRune {
			_, got := utf8.DecodeRuneInString(text[n:])
			if got == 0 {
				return 0, false
			}
			part, n = part[size:], n+got
			continue
		}
		// Compare bytes, because a part may contain invalid UTF-8.
		if n == len(text) || text[n] != part[0] {
			return 0, false
		}
		part, n = part[1:], n+1
	}
	return n, true
}

// expression returns an equivalent regular expression (RE2), to be searched anywhere in a text.
func (p pattern) expression() string {
	var b strings.Builder
	b.WriteString("(?s)")
	for i, part := range p.parts {
		if i > 0 {
			b.WriteString(".*?")
		}
		for j, piece := range strings.Split(part, string(anyRune)) {
			if j > 0 {
				b.WriteByte('.')
			}
			b.WriteString(regexp.QuoteMeta(piece))
		}
	}
	return b.String()
}
