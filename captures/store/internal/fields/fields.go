// Package fields encodes a header or trailer section for a capture file, as JSON in wire order. Package store
// writes and reads sections with it.
//
//	text := fields.Text(captures.Headers{{Name: "te", Value: "trailers"}}) // [["te","trailers"]]
//	h, err := fields.Parse(text)
package fields

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"unwire/captures"
)

// Text encodes h as a JSON array of [name, value] pairs. A field that is not valid UTF-8, which HTTP allows,
// becomes [name, value, "base64"] with both encoded.
func Text(h captures.Headers) string {
	if text, ok := encodePlain(h); ok {
		return text
	}
	return encodeEscaped(h)
}

// encodeEscaped implements Text for header fields that need JSON escapes or base64.
func encodeEscaped(h captures.Headers) string {
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
	// Encoding strings cannot fail.
	_ = enc.Encode(rows)
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// encodePlain implements Text for fields without characters that JSON escapes, which is the usual case and
// faster. It returns false for other fields.
func encodePlain(h captures.Headers) (string, bool) {
	if len(h) == 0 {
		return "[]", true
	}
	n := 2
	for _, f := range h {
		if !needsNoEscapes(f.Name) || !needsNoEscapes(f.Value) {
			return "", false
		}
		n += len(f.Name) + len(f.Value) + len(`["",""],`)
	}

	// The exact size is known, so there is one allocation.
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

// Size returns the approximate size of an encoded field, in bytes.
func Size(f captures.Header) int {
	if needsNoEscapes(f.Name) && needsNoEscapes(f.Value) {
		return len(f.Name) + len(f.Value) + len(`["",""],`)
	}
	return len(encodeEscaped(captures.Headers{f}))
}

// needsNoEscapes reports whether s is printable ASCII without characters that JSON escapes.
func needsNoEscapes(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Max limits the number of fields in one header section. Processing a field takes far longer than reading its
// few bytes.
const Max = 100_000

// Parse decodes a header section that Text has encoded.
//
// Limits: 100,000 fields.
func Parse(s string) (captures.Headers, error) {
	var rows [][]string
	if err := json.Unmarshal([]byte(s), &rows); err != nil {
		return nil, err
	}
	if len(rows) > Max {
		return nil, fmt.Errorf("a header section has %d fields, more than the limit of %d", len(rows), Max)
	}
	var h captures.Headers
	for i, r := range rows {
		switch {
		case len(r) == 2:
			h = append(h, captures.Header{Name: r[0], Value: r[1]})
		// Fields that are not valid UTF-8 are stored in base64.
		case len(r) == 3 && r[2] == "base64":
			name, err := base64.StdEncoding.DecodeString(r[0])
			if err != nil {
				return h, fmt.Errorf("header field %d cannot be read: %w", i, err)
			}
			value, err := base64.StdEncoding.DecodeString(r[1])
			if err != nil {
				return h, fmt.Errorf("header field %d cannot be read: %w", i, err)
			}
			h = append(h, captures.Header{Name: string(name), Value: string(value)})
		default:
			return h, fmt.Errorf("header field %d has %d parts", i, len(r))
		}
	}
	return h, nil
}
