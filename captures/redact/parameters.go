package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/decode/envelope"
)

const (
	// maxNested limits the depth to which URLs in parameters of URLs are searched.
	maxNested = 3

	// maxParameter limits the decompressed value of a parameter, in bytes.
	maxParameter = 8 << 20

	// leastBase64 is the smallest length of a parameter that is decoded as base64 although no other parameter
	// announces it.
	leastBase64 = 16

	// separators are the bytes that precede a parameter in a URL.
	separators = "&;#?"

	// urlEnd are the bytes that end a URL in a text.
	urlEnd = " \t\r\n\"'<>`\\"
)

// A packing describes how a parameter's value is encoded inside its percent-encoding. With the zero
// value, base64 and compression are detected.
type packing struct {
	// message means that the parameter is the message of a Connect GET request, whose encoding other
	// parameters describe.
	message bool
	// base64 means that the value is in base64; if neither base64 nor message is set, base64 is detected.
	base64 bool
	// compression is the name of the compression of the decoded value, such as "gzip"; "" for none if message
	// is set, otherwise it is detected.
	compression string
}

// messagePacking returns how the parameter "message" of a URL's query is encoded. In a Connect GET request,
// that parameter is the request's body, and other parameters describe its encoding.
//
// Source: RESEARCH.md#transports
func messagePacking(query string) packing {
	var p packing
	for query != "" {
		param := firstParameter(query[1:])
		query = query[1+len(param):]
		name, value, _ := strings.Cut(param, "=")
		value, _ = unescape(value)
		switch name {
		case "connect":
			p.message = p.message || value == "v1"
		case "encoding":
			p.message = true
		case "base64":
			p.base64 = value == "1"
		case "compression":
			if p.compression = strings.ToLower(value); p.compression == "identity" {
				p.compression = ""
			}
		}
	}
	if !p.message {
		return packing{}
	}
	return p
}

// firstParameter returns the query up to the next separator.
func firstParameter(query string) string {
	if i := strings.IndexAny(query, separators); i >= 0 {
		return query[:i]
	}
	return query
}

// parameters replaces the secrets in query, which begins with a separator such as '?', and is at offset at of
// the reported text. depth is the number of URLs around it. inText means that the caller also searches the
// whole text around the query, so that only secrets are replaced that this search does not find.
func (r *Redactor) parameters(query string, at, depth int, inText bool, report reporter) string {
	message := messagePacking(query)
	hasUser := namesUser(query)
	isAlone := !strings.ContainsAny(query[min(1, len(query)):], separators+"=")
	var out strings.Builder
	for query != "" {
		separator := query[0]
		out.WriteByte(separator)
		param := firstParameter(query[1:])
		query = query[1+len(param):]
		name, value, named := strings.Cut(param, "=")
		if !named {
			name, value = "", param
		}
		from := at + 1 + len(param) - len(value)
		at += 1 + len(param)
		out.WriteString(param[:len(param)-len(value)])

		// The search of the text finds parameters after these separators.
		seen := inText && (separator == '?' || separator == '&')

		if n, ok := r.isSecretParameter(name, value); ok && !seen && (!inText || charset.LooksRandom([]byte(value))) {
			report.value(Hit{Rule: match.Parameter, Name: n, Off: from}, value)
			out.WriteString(r.value(value))
			continue
		}
		if !inText && (hasUser && name == "p" && strings.Trim(value, "0123456789") != "" || isAlone && isBareKey(value)) {
			report.value(Hit{Rule: match.Parameter, Name: name, Off: from}, value)
			out.WriteString(r.value(value))
			continue
		}
		var p packing
		if name == "message" {
			p = message
		}
		clean, moved := r.parameterValue(value, from, depth, p, report)
		if !inText {
			clean = r.text(clean, 0, plain, moved.reporter(from, report))
		}
		out.WriteString(clean)
	}
	return out.String()
}

// namesUser reports whether a query has a parameter u for the name of a user, so that p is a password.
func namesUser(query string) bool {
	i := strings.Index(query, "u=")
	return i > 0 && strings.IndexByte(separators, query[i-1]) >= 0
}

// isBareKey reports whether a query that has no name consists of a key. Digits of hex alone number the version of a file, and
// JSON in base64 is searched.
func isBareKey(query string) bool {
	return charset.LooksKey([]byte(query)) && !charset.IsHex(strings.ToLower(query)) && !strings.HasPrefix(query, "ey")
}

// isSecretParameter reports whether a query parameter with this name and value is a secret, and returns the
// name without percent-encoding.
func (r *Redactor) isSecretParameter(name, value string) (string, bool) {
	n, err := url.QueryUnescape(name)
	if err != nil || n == "" {
		return name, false
	}
	return n, r.names.Kind([]byte(n)).FitsQuery(value)
}

// parameterValue replaces secrets inside v, a parameter's value at offset at, that percent-encoding, base64 or
// compression hides from the search of the URL. It encodes the result in the same way as v. depth is the number
// of URLs around the parameter.
func (r *Redactor) parameterValue(v string, at, depth int, p packing, report reporter) (string, moves) {
	meant, offsets := unescape(v)
	if meant == "" || isPlaceholder(meant) {
		return v, nil
	}
	in := report.mapped(func(from, to int) (int, int) { return at + offsets[from], at + offsets[to] })

	clean := meant
	var err error
	data, alphabet := decodeBase64(meant, p)
	switch {
	case alphabet != nil:
		var out []byte
		out, err = r.payload(data, depth, p, in.mapped(func(from, to int) (int, int) {
			return from * 8 / 6, min((to*8+5)/6, len(meant))
		}))
		if !bytes.Equal(out, data) {
			clean = alphabet.EncodeToString(out)
		}
	case p.base64:
		err = errNotBase64
	case p.compression != "" || envelope.Sniff([]byte(meant)) != "":
		var out []byte
		out, err = r.payload([]byte(meant), depth, p, in)
		clean = string(out)
	}
	if clean == meant && meant != v {
		clean = string(r.nested([]byte(meant), depth, in))
	}
	if clean == meant && meant != v && depth < maxNested && strings.Contains(meant, "%") {
		// It was encoded twice.
		clean, _ = r.parameterValue(meant, 0, depth+1, packing{}, in)
	}

	if err != nil && p.message {
		report.value(Hit{Rule: RuleUnsearched, Name: "message: " + err.Error(), Off: at}, v)
		if r.OmitUnsearched {
			clean = r.placeholder(v, plain)
		}
	}
	if clean == meant {
		return v, nil
	}
	clean = url.QueryEscape(clean)
	return clean, moves{{start: 0, end: len(v), now: len(clean)}}
}

// errNotBase64 is the error for the message of a Connect GET request that is declared as base64 but is not.
var errNotBase64 = errors.New("the message is not base64")

// payload returns a parameter's data, decoded from base64, with its secrets replaced by placeholders of the
// same length. If the data cannot be decompressed, the compressed bytes are searched, and the error is
// returned.
func (r *Redactor) payload(data []byte, depth int, p packing, report reporter) ([]byte, error) {
	compression := p.compression
	if compression == "" {
		compression = envelope.Sniff(data)
	}
	if compression == "" {
		return r.nested(data, depth, report), nil
	}
	var inflated []byte
	f := newInflater(new(codecs), compression, func(b []byte) bool {
		inflated = append(inflated, b...)
		return len(inflated) <= maxParameter
	})
	f.feed(data)
	if err := f.close(); err != nil {
		return r.nested(data, depth, report), err
	}

	// A position in the decompressed data has no counterpart in the compressed data.
	whole := report.mapped(func(int, int) (int, int) { return 0, len(data) })
	clean := r.nested(inflated, depth, whole)
	if bytes.Equal(clean, inflated) {
		return data, nil
	}
	return envelope.Compress(compression, clean)
}

// nested returns a copy of p in which secrets are replaced by placeholders, also those in encoded parameters of
// URLs. depth is the number of URLs around p.
func (r *Redactor) nested(p []byte, depth int, report reporter) []byte {
	text, moved := r.embedded(string(p), 0, depth+1, report)
	return r.mask([]byte(text), moved.reporter(0, report))
}

// embedded replaces the secrets in parameters of URLs within the text s at offset at, if an encoding hides them
// from the search of the text. It also returns the replacements that it made.
func (r *Redactor) embedded(s string, at, depth int, report reporter) (string, moves) {
	if depth > maxNested || !strings.ContainsAny(s, "?#") {
		return s, nil
	}
	var out strings.Builder
	var moved moves
	// The offset in s of the bytes that are not in out yet.
	rest := 0
	for {
		i := strings.IndexAny(s[rest:], "?#")
		if i < 0 {
			break
		}
		from := rest + i
		end := len(s)
		if n := strings.IndexAny(s[from:], urlEnd); n >= 0 {
			end = from + n
		}
		out.WriteString(s[rest:from])
		clean := r.parameters(s[from:end], at+from, depth, true, report)
		out.WriteString(clean)
		if clean != s[from:end] {
			moved = append(moved, move{start: from, end: end, now: len(clean)})
		}
		rest = end
	}
	out.WriteString(s[rest:])
	return out.String(), moved
}

// A move records that the bytes from start to end of a text were replaced by a text of now bytes, which moves
// the rest.
type move struct {
	// start is the offset of the first replaced byte in the original text.
	start int
	// end is the offset after the last replaced byte in the original text.
	end int
	// now is the length of the replacement in bytes.
	now int
}

// moves lists the replacements in a text, in order.
type moves []move

// back converts an offset in the text after the replacements into the offset before them. An offset within a
// replacement becomes the beginning of the replaced bytes, or their end if end is true.
func (m moves) back(off int, end bool) int {
	shift := 0
	for _, v := range m {
		start := v.start + shift
		switch {
		case off <= start:
			return off - shift
		case end && off <= start+v.now:
			return v.end
		case off < start+v.now:
			return v.start
		}
		shift += v.now - (v.end - v.start)
	}
	return off - shift
}

// reporter returns a reporter for hits in the text after the replacements, which reports their offsets before
// the replacements to r. at is the offset of the text.
func (m moves) reporter(at int, r reporter) reporter {
	return r.mapped(func(from, to int) (int, int) { return at + m.back(from, false), at + m.back(to, true) })
}

// unescape decodes percent-encoding and keeps invalid escapes. offsets contains the offset in v of each byte of
// the result, and of its end.
func unescape(v string) (meant string, offsets []int) {
	b := make([]byte, 0, len(v))
	offsets = make([]int, 0, len(v)+1)
	for i := 0; i < len(v); i++ {
		offsets = append(offsets, i)
		switch {
		case v[i] == '+':
			b = append(b, ' ')
		case v[i] == '%' && i+2 < len(v) && charset.IsHex(strings.ToLower(v[i+1:i+3])):
			b = append(b, charset.Unhex(v[i+1])<<4|charset.Unhex(v[i+2]))
			i += 2
		default:
			b = append(b, v[i])
		}
	}
	return string(b), append(offsets, len(v))
}

// decodeBase64 decodes s in the standard or URL-safe alphabet, with or without padding, and returns the
// encoding. The encoding is nil if s is not base64, or is too short for base64 that p does not announce.
func decodeBase64(s string, p packing) ([]byte, *base64.Encoding) {
	if !p.base64 && (p.message || len(s) < leastBase64) {
		return nil, nil
	}
	// A plus sign that was not escaped.
	s = strings.ReplaceAll(s, " ", "+")
	padded := strings.HasSuffix(s, "=")
	for _, e := range []struct{ raw, padded *base64.Encoding }{
		{base64.RawURLEncoding, base64.URLEncoding},
		{base64.RawStdEncoding, base64.StdEncoding},
	} {
		data, err := e.raw.DecodeString(strings.TrimRight(s, "="))
		if err != nil || len(data) == 0 {
			continue
		}
		if padded {
			return data, e.padded
		}
		return data, e.raw
	}
	return nil, nil
}
