package redact

import (
	"unwire/captures"
	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/names"
)

// Find returns, in order, the secrets in p that Bytes would replace, and learns them. form means that p
// is a URL-encoded form, so that a parameter may begin at the first byte. u is the URL of the call whose body p is, as for
// NewBodyFilter.
//
// Limits: placeholders are not reported, even if they were truncated to the length of a short secret.
func (r *Redactor) Find(p []byte, form bool, u string) []Hit {
	var hits []Hit
	sc := newScanner(r, form)
	sc.syntax = r.finderFor(u)
	sc.see = reporter(func(h Hit) { hits = append(hits, h) }).match(0)
	sc.hit = func(int64, int64, string) {}
	sc.feed(p)
	sc.finish()
	return hits
}

// FindURL returns the secrets that are replaced in a URL, in order, and learns them.
func (r *Redactor) FindURL(u string) []Hit {
	var hits []Hit
	r.url(u, func(h Hit) { hits = append(hits, h) })
	return hits
}

// FindString returns the secrets that String replaces, in order, and learns them.
func (r *Redactor) FindString(s string) []Hit {
	var hits []Hit
	r.prose(s, bracketed, func(h Hit) { hits = append(hits, h) })
	return hits
}

// FindHeaders returns the secrets that Headers replaces, and learns them.
func (r *Redactor) FindHeaders(h captures.Headers) []Hit {
	var hits []Hit
	r.section(h, func(field int, hit Hit) {
		hit.Header = h[field].Name
		hits = append(hits, hit)
	})
	return hits
}

// Fill returns a placeholder with the length of secret. If secret is a placeholder already, Fill returns it.
func (r *Redactor) Fill(secret []byte) []byte {
	if isPlaceholder(string(secret)) {
		return secret
	}
	return []byte(fill(r, string(secret), len(secret)))
}

// IsPlaceholder reports whether s is a placeholder for a secret.
func IsPlaceholder(s string) bool { return isPlaceholder(s) }

// IsSecretName reports whether a name of a field or parameter, in any spelling, denotes a secret. perhaps means
// that it does only if the value looks random (see LooksRandom).
func (r *Redactor) IsSecretName(name string) (surely, perhaps bool) {
	switch r.names.Kind([]byte(name)) {
	case names.Secret:
		return true, false
	case names.Perhaps:
		return false, true
	}
	return false, false
}

// LooksRandom reports whether a value looks like a token: one word of at least 16 bytes with a digit.
func LooksRandom(v []byte) bool { return charset.LooksRandom(v) }
