// Package naming interprets the names of members, kinds, tools and events: which words a
// name has, and what it may be the name of. Package transcript uses it to guess what a
// text or a number is.
package naming

import (
	"strings"
	"unicode"
)

// IsKind reports whether s looks like the name of a kind of message, such as "text_delta": at most 48 ASCII
// letters, digits, and _ . - after the first letter.
func IsKind(s string) bool {
	if s == "" || len(s) > 48 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// IsTool reports whether s may be the name of a tool or function: one word of 2 to 64
// ASCII letters, digits, and _ . - / : after the first letter.
func IsTool(s string) bool {
	if len(s) < 2 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-' && c != '/' && c != ':' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// IsCall reports whether one of the three innermost of the enclosing members is named like the arguments of a tool
// call. Then the text belongs to the call, whatever its own name is.
func IsCall(names []string) bool {
	for _, n := range names[max(0, len(names)-3):] {
		switch strings.ToLower(strings.ReplaceAll(n, "_", "")) {
		case "args", "arguments", "functioncall", "toolcall", "tooluse", "toolinput", "rawinput", "parameters":
			return true
		}
	}
	return false
}

// Parts returns the words of a name in lower case, and the whole name in lower case:
// "toolCall" has the parts tool, call and toolcall.
func Parts(name string) map[string]bool {
	parts := map[string]bool{strings.ToLower(name): true}
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			parts[strings.ToLower(b.String())] = true
			b.Reset()
		}
	}
	// Words end at separators and before capitals.
	for i := range len(name) {
		c := name[i]
		upper := c >= 'A' && c <= 'Z'
		if c == '_' || c == '-' || c == '.' || upper && i > 0 && !(name[i-1] >= 'A' && name[i-1] <= 'Z') {
			flush()
		}
		// Separators are no part of a word.
		if c != '_' && c != '-' && c != '.' {
			b.WriteByte(c)
		}
	}
	flush()
	return parts
}

// Fold returns the letters and digits of a name in lower case.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// Siblings reports whether the paths have the same length and differ at most in the last two steps.
func Siblings(a, b string) bool {
	if strings.Count(a, ".") != strings.Count(b, ".") {
		return false
	}
	return Enclosing(Enclosing(a)) == Enclosing(Enclosing(b))
}

// Enclosing returns the path without its last step.
func Enclosing(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// Alike reports whether the paths a and b have the same length and differ at most in the last two steps, or have
// the same first step, like the members of a oneof.
func Alike(a, b string) bool {
	n := strings.Count(a, ".")
	if n != strings.Count(b, ".") {
		return false
	}
	return n == 0 || Siblings(a, b) || a[:strings.IndexByte(a, '.')] == b[:strings.IndexByte(b, '.')]
}
