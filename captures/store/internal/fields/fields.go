// Package fields is how a capture keeps a section of header or trailer fields: as JSON,
// in wire order. Package store writes and reads sections with it.
package fields

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"unwire/captures"
)

// Text writes h as a JSON array of [name, value] pairs. A field that
// is not UTF-8, which HTTP allows, becomes [name, value, "base64"] with both
// encoded.
func Text(h captures.Headers) string {
	if text, ok := plain(h); ok {
		return text
	}
	return escaped(h)
}

func escaped(h captures.Headers) string {
	rows := make([][]string, 0, len(h))
	for _, f := range h {
		if utf8.ValidString(f.Name) && utf8.ValidString(f.Value) {
			rows = append(rows, []string{f.Name, f.Value})
			continue
		}
		enc := base64.StdEncoding
		rows = append(rows, []string{enc.EncodeToString([]byte(f.Name)), enc.EncodeToString([]byte(f.Value)), "base64"})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(rows) // strings in slices cannot fail
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// plain is Text where JSON escapes nothing, as mostly.
func plain(h captures.Headers) (string, bool) {
	if len(h) == 0 {
		return "[]", true
	}
	n := 2
	for _, f := range h {
		if !plainJSON(f.Name) || !plainJSON(f.Value) {
			return "", false
		}
		n += len(f.Name) + len(f.Value) + len(`["",""],`)
	}
	b := append(make([]byte, 0, n), '[')
	for i, f := range h {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = append(append(append(b, '"'), f.Name...), `","`...)
		b = append(append(b, f.Value...), `"]`...)
	}
	return string(append(b, ']')), true
}

// Size is how many bytes a field has in the file.
func Size(f captures.Header) int {
	if plainJSON(f.Name) && plainJSON(f.Value) {
		return len(f.Name) + len(f.Value) + len(`["",""],`)
	}
	return len(escaped(captures.Headers{f}))
}

// plainJSON reports whether s is ASCII that JSON has no escapes for.
func plainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Max bounds the fields of one section: what is done with a field takes
// far longer than to read its few bytes.
const Max = 100_000

// Parse reverses Text.
//
// Limits: 100,000 fields.
func Parse(s string) (captures.Headers, error) {
	var rows [][]string
	if err := json.Unmarshal([]byte(s), &rows); err != nil {
		return nil, err
	}
	if len(rows) > Max {
		return nil, captures.Damaged("%d header fields, where at most %d are read", len(rows), Max)
	}
	var h captures.Headers
	for i, r := range rows {
		switch {
		case len(r) == 2:
			h = append(h, captures.Header{Name: r[0], Value: r[1]})
		case len(r) == 3 && r[2] == "base64":
			name, err := base64.StdEncoding.DecodeString(r[0])
			if err != nil {
				return h, captures.Damaged("header %d: %v", i, err)
			}
			value, err := base64.StdEncoding.DecodeString(r[1])
			if err != nil {
				return h, captures.Damaged("header %d: %v", i, err)
			}
			h = append(h, captures.Header{Name: string(name), Value: string(value)})
		default:
			return h, captures.Damaged("header %d has %d parts", i, len(r))
		}
	}
	return h, nil
}
