package replay

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A jsonSpan is one value in a JSON text. Of an object's member, and of an
// array's element, Key is where it begins: the member's name, or Off itself.
type jsonSpan struct{ Key, Off, End int }

// jsonSpace skips white space. The text is valid JSON, as everywhere here.
func jsonSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// jsonEnd is the end of the value that begins at i.
func jsonEnd(b []byte, i int) int {
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
				i = jsonEnd(b, i) - 1
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

// jsonItems returns the members or elements of the object or array at i.
func jsonItems(b []byte, i int) []jsonSpan {
	var items []jsonSpan
	object := b[i] == '{'
	for i = jsonSpace(b, i+1); b[i] != '}' && b[i] != ']'; i = jsonSpace(b, i) {
		if b[i] == ',' {
			i = jsonSpace(b, i+1)
		}
		s := jsonSpan{Key: i, Off: i}
		if object {
			colon := jsonSpace(b, jsonEnd(b, i))
			s.Off = jsonSpace(b, colon+1)
		}
		s.End = jsonEnd(b, s.Off)
		items = append(items, s)
		i = s.End
	}
	return items
}

// jsonName is the name of a member.
func jsonName(b []byte, s jsonSpan) string {
	var name string
	if json.Unmarshal(b[s.Key:jsonEnd(b, s.Key)], &name) != nil {
		return "" // not reached: the text is valid
	}
	return name
}

// quoteJSON writes a text as a JSON string, with nothing escaped for HTML.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // not reached: a string always encodes
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
