package syntax

import (
	"bytes"
	"slices"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// texts are texts with which a secret, or what precedes it, begins.
type texts struct {
	list []string

	// byFirst are the same by their first byte.
	byFirst [256][]string
}

// textsOf returns the texts of a list.
func textsOf(list ...string) *texts {
	t := texts{list: list}
	for _, text := range list {
		t.byFirst[text[0]] = append(t.byFirst[text[0]], text)
	}
	return &t
}

// firstOf returns the text with which b begins. The state is Undecided if b ends within one.
func (t *texts) firstOf(b []byte) (string, match.State) {
	state := match.Nothing
	for _, text := range t.byFirst[b[0]] {
		switch _, v := expect(b, 0, text); v {
		case match.Found:
			return text, match.Found
		case match.Undecided:
			state = v
		}
	}
	return "", state
}

// lineBreak is an escaped end of a line in a JSON string.
const lineBreak = `\n`

// looksPath reports whether a value is a path, rather than the hash of a password or a name of a user with a password.
func looksPath(value []byte) bool {
	slash := bytes.IndexByte(value, '/')
	return slash >= 0 && value[0] != '{' && (bytes.IndexByte(value[:slash], ':') < 0 || bytes.Contains(value, []byte("://")))
}

// endsLine reports whether a line, or the text, ends at the beginning of rest.
func endsLine(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t")
	return len(rest) == 0 || rest[0] == '\n' || rest[0] == '\r' || rest[0] == '"' || bytes.HasPrefix(rest, []byte(lineBreak)) || bytes.HasPrefix(rest, []byte(`\r`))
}

// lineWords are words that may precede a name at the beginning of a line.
var lineWords = names.SetOf("set export setenv ENV ARG default enable stats snmp-server")

// beginsLine reports whether a line begins after b, apart from one of lineWords.
func beginsLine(b []byte) bool {
	b = bytes.TrimRight(b, " \t-")
	last := len(b)
	for last > 0 && charset.Word.Has(b[last-1]) {
		last--
	}
	if lineWords[string(b[last:])] {
		b = bytes.TrimRight(b[:last], " \t")
	}
	return len(b) == 0 || b[len(b)-1] == '\n' || bytes.HasSuffix(b, []byte(lineBreak))
}

// mixesSigns reports whether a value has other characters than letters, as passwords do and words do not.
func mixesSigns(value []byte) bool {
	for _, c := range value {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return true
		}
	}
	return false
}

// nextWord returns the first word from index at on.
func nextWord(b []byte, at int) (from, end int) {
	for at < len(b) && isSpace(b[at]) {
		at++
	}
	end = at
	for end < len(b) && !isSpace(b[end]) {
		end++
	}
	return at, end
}

// notSecrets are words, such as type names, that occur in source code and schemas where a secret would be.
var notSecrets = map[string]bool{
	"string": true, "str": true, "String": true, "true": true, "false": true, "null": true, "none": true, "None": true, "nil": true,
	"undefined": true, "int": true, "bool": true, "boolean": true, "any": true, "number": true, "bytes": true, "object": true, "required": true,
	"write": true, "read": true, "optional": true, "password": true, "token": true, "text": true, "True": true, "False": true, "type": true, "the": true, "a": true,
}

// leastMarked is the smallest length of a value, in bytes, that is taken for a secret because of a flag, a command or a
// position that says so.
const leastMarked = 4

// afterScheme returns the index after an authorization scheme, such as "Bearer ", at the beginning of a value;
// from if there is none.
func afterScheme(b []byte, from, end int) int {
	for _, scheme := range []string{"Bearer ", "bearer ", "Basic ", "basic "} {
		if n := len(scheme); end-from > n && string(b[from:from+n]) == scheme {
			return from + n
		}
	}
	return from
}

// hasSuffixOf reports whether b ends in one of the phrases.
func hasSuffixOf(b []byte, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return bytes.HasSuffix(b, []byte(phrase)) })
}
