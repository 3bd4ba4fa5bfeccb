package redact

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// Headers returns h with its secrets replaced, and learns these secrets. It keeps the scheme of an
// Authorization field, and the names and attributes of cookies.
func (r *Redactor) Headers(h captures.Headers) captures.Headers { return r.section(h, nil) }

// section implements Headers. It calls report, if set, with each secret and the index of its field.
func (r *Redactor) section(h captures.Headers, report func(field int, hit Hit)) captures.Headers {
	if h == nil {
		return nil
	}
	in := func(field int) reporter {
		if report == nil {
			return nil
		}
		return func(hit Hit) { report(field, hit) }
	}
	// Learn from the secret fields first: others may repeat their values.
	var few [32]fieldName
	names := r.appendNames(few[:0], h)
	out := make(captures.Headers, len(h))
	for _, first := range []bool{true, false} {
		for i, f := range h {
			if names[i].secret == first {
				out[i] = captures.Header{Name: f.Name, Value: r.field(names[i].lower, f.Value, in(i))}
			}
		}
	}
	return out
}

// field returns a header field's value with its secrets replaced, using the cache if report is nil. name is in
// lower case.
func (r *Redactor) field(name, value string, report reporter) string {
	if report == nil {
		return r.clean(name, value, func() string { return r.searchField(name, value, nil) })
	}
	return r.searchField(name, value, report)
}

// searchField returns a header field's value with its secrets replaced; the rule depends on the field's name,
// which is in lower case.
func (r *Redactor) searchField(name, value string, report reporter) string {
	switch name {
	case "authorization", "proxy-authorization":
		return r.authorization(value, report)
	case "cookie":
		return r.cookies(value, report)
	case "set-cookie":
		pair, attributes, found := strings.Cut(value, ";")
		pair = r.cookies(pair, report)
		if found {
			pair += ";" + attributes
		}
		return pair
	case "location", "content-location", "referer", "origin", ":path", "x-original-url", "x-original-uri", "x-forwarded-uri", "x-rewrite-url", "refresh":
		return r.url(value, report)
	case "www-authenticate", "proxy-authenticate":
		return r.challenge(value, report)
	case "sec-websocket-protocol":
		return r.protocols(value, report)
	}
	switch r.names.HeaderKind(name) {
	case names.Secret:
		return r.secret(value, 0, report)
	case names.Perhaps:
		if charset.LooksRandom([]byte(value)) || hasRandomParameter(value) {
			return r.secret(value, 0, report)
		}
	}
	if strings.HasSuffix(name, "-bin") {
		return r.binary(value, report)
	}
	if scheme, rest, ok := strings.Cut(value, " "); ok && isKeyScheme(scheme) && charset.LooksRandom([]byte(lastWord(rest))) {
		return scheme + " " + r.secret(rest, len(scheme)+1, report)
	}
	return r.prose(value, bracketed, report)
}

// hasRandomParameter reports whether the value of a header field is a list of parameters with one that looks random, as in
// code="A" hash="…".
func hasRandomParameter(value string) bool {
	if !strings.Contains(value, "=") {
		return false
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(` ,;="`, r) }) {
		if charset.LooksKey([]byte(part)) {
			return true
		}
	}
	return false
}

// isKeyScheme reports whether a word announces credentials in a header field of any name, as "APPKey" does.
func isKeyScheme(s string) bool {
	if len(s) > maxScheme || !isWordOf(s, charset.Alnum) {
		return false
	}
	s = strings.ToLower(s)
	return s == "basic" || slices.ContainsFunc([]string{"key", "token", "bearer", "secret", "auth", "signature"}, func(end string) bool { return strings.HasSuffix(s, end) })
}

// lastWord returns the part of a text after its last space.
func lastWord(s string) string { return s[strings.LastIndexByte(s, ' ')+1:] }

// secret learns and reports v, which begins at offset at of its header field, and returns its placeholder.
func (r *Redactor) secret(v string, at int, report reporter) string {
	if v == "" {
		return v
	}
	report.value(Hit{Rule: match.Header, Off: at}, v)
	r.Learn(v)
	return r.placeholder(v, bracketed)
}

// authorization replaces the credentials in an Authorization field and keeps the scheme before them.
func (r *Redactor) authorization(v string, report reporter) string {
	scheme, credentials, found := strings.Cut(v, " ")
	if !found || len(scheme) > maxScheme || !isWordOf(scheme, charset.Name) {
		return r.secret(v, 0, report)
	}

	// The password may also occur alone.
	if strings.EqualFold(scheme, "basic") {
		if pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credentials)); err == nil {
			if _, password, ok := strings.Cut(string(pair), ":"); ok {
				r.Learn(password)
			}
		}
	}
	return scheme + " " + r.secret(credentials, len(scheme)+1, report)
}

// maxScheme is the greatest length of an authentication scheme's name, in bytes.
const maxScheme = 32

// isWordOf reports whether s consists of characters in set.
func isWordOf(s string, set *charset.Set) bool {
	for i := range len(s) {
		if !set.Has(s[i]) {
			return false
		}
	}
	return s != ""
}

// challenge replaces the token in a WWW-Authenticate field, which a server sends with the schemes Negotiate and NTLM
// (RFC 4559), and keeps challenges that consist of parameters.
func (r *Redactor) challenge(v string, report reporter) string {
	scheme, token, found := strings.Cut(v, " ")
	if !found || !charset.LooksRandom([]byte(token)) || strings.Contains(strings.TrimRight(token, "="), "=") {
		return r.prose(v, bracketed, report)
	}
	return scheme + " " + r.secret(token, len(scheme)+1, report)
}

// binary replaces the secrets in a gRPC metadata field whose name ends in "-bin"; its value is base64.
func (r *Redactor) binary(v string, report reporter) string {
	data, alphabet := decodeBase64(v, packing{base64: true})
	if alphabet == nil {
		return r.prose(v, bracketed, report)
	}
	clean := r.nested(data, 0, report.mapped(func(from, to int) (int, int) { return from * 8 / 6, min((to*8+5)/6, len(v)) }))
	if bytes.Equal(clean, data) {
		return r.prose(v, bracketed, report)
	}
	return alphabet.EncodeToString(clean)
}

// protocols replaces tokens in a Sec-WebSocket-Protocol field. Browser clients pass tokens as names of
// subprotocols, because they cannot set other fields.
func (r *Redactor) protocols(v string, report reporter) string {
	items := strings.Split(v, ",")
	at, named := 0, false
	for i, item := range items {
		trimmed := strings.TrimSpace(item)
		from := strings.Index(item, trimmed)
		token := protocolToken(trimmed, named)
		named = isTokenMarker(trimmed)
		if token == "" {
			items[i] = r.text(item, at, bracketed, report)
		} else {
			from += len(trimmed) - len(token)
			report.value(Hit{Rule: match.Header, Off: at + from}, token)
			r.Learn(token)
			items[i] = item[:from] + r.placeholder(token, plain) + item[from+len(token):]
		}
		at += len(item) + 1
	}
	return strings.Join(items, ",")
}

// isTokenMarker reports whether the name of a WebSocket subprotocol announces that the next name, or the rest
// of this one, is a token.
func isTokenMarker(s string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc([]string{"bearer", "auth", "token", "api-key", "apikey", "jwt", "session"}, func(w string) bool { return strings.Contains(s, w) })
}

// protocolToken returns the end of a WebSocket subprotocol's name that is a token, or "". named means that the
// previous name announced a token.
func protocolToken(s string, named bool) string {
	if isPlaceholder(s) {
		return ""
	}
	if named {
		return s
	}
	if isTokenMarker(s) {
		for i := range len(s) {
			if (s[i] == '.' || s[i] == '-') && charset.LooksRandom([]byte(s[i+1:])) && !strings.ContainsAny(s[i+1:], ".") && !isPlaceholder(s[i+1:]) {
				return s[i+1:]
			}
		}
	}
	if len(s) >= 20 && charset.LooksRandom([]byte(s)) && strings.ToLower(s) != s && !strings.Contains(s, "redacted-") {
		return s
	}
	return ""
}

// cookies replaces the values of cookies in a Cookie or Set-Cookie field, and keeps their names.
func (r *Redactor) cookies(v string, report reporter) string {
	parts := strings.Split(v, ";")
	at := 0
	for i, p := range parts {
		if name, value, ok := strings.Cut(p, "="); ok {
			parts[i] = name + "=" + r.secret(value, at+len(name)+1, report)
		} else {
			parts[i] = r.text(p, at, bracketed, report)
		}
		at += len(p) + 1
	}
	return strings.Join(parts, ";")
}

// Exchange returns ex with the secrets in its headers, URL and texts replaced, and learns these secrets. It
// processes the headers first, so that secrets learned from them are found in the other texts.
func (r *Redactor) Exchange(ex captures.Exchange) captures.Exchange {
	for _, h := range []*captures.Headers{&ex.RequestHeaders, &ex.ResponseHeaders, &ex.RequestTrailers, &ex.ResponseTrailers} {
		*h = r.Headers(*h)
	}
	for _, text := range []*string{&ex.Error, &ex.Source, &ex.Server, &ex.Process.Name, &ex.Process.Client, &ex.Process.Version} {
		*text = r.String(*text)
	}
	ex.URL = r.redactURL(ex.URL)
	return ex
}
