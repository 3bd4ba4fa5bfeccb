package edit

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A jsonSpan is one value in a JSON text. Of an object's member, and of an
// array's element, Key is where it begins: the member's name, or Off itself.
type Span struct{ Key, Off, End int }

// SkipSpace skips white space. The text is valid JSON, as everywhere here.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// ValueEnd is the end of the value that begins at i.
func ValueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		for i++; b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		for depth := 0; ; i++ {
			switch b[i] {
			case '"':
				i = ValueEnd(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(b) && !strings.ContainsRune(",]} \t\r\n", rune(b[i])) {
		i++
	}
	return i
}

// Items returns the members or elements of the object or array at i.
func Items(b []byte, i int) []Span {
	var items []Span
	object := b[i] == '{'
	for i = SkipSpace(b, i+1); b[i] != '}' && b[i] != ']'; i = SkipSpace(b, i) {
		if b[i] == ',' {
			i = SkipSpace(b, i+1)
		}
		s := Span{Key: i, Off: i}
		if object {
			colon := SkipSpace(b, ValueEnd(b, i))
			s.Off = SkipSpace(b, colon+1)
		}
		s.End = ValueEnd(b, s.Off)
		items = append(items, s)
		i = s.End
	}
	return items
}

// MemberName is the name of a member.
func MemberName(b []byte, s Span) string {
	var name string
	if json.Unmarshal(b[s.Key:ValueEnd(b, s.Key)], &name) != nil {
		return "" // not reached: the text is valid
	}
	return name
}

// Quote writes a text as a JSON string, with nothing escaped for HTML.
func Quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // not reached: a string always encodes
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
