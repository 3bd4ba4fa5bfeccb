package redact

import "unwire/captures"

// A Rule says by what a secret was found.
type Rule string

const (
	RuleHeader      Rule = "header"       // the header field's name tells
	RuleParameter   Rule = "parameter"    // the name of a parameter of a URL or a form does
	RuleMember      Rule = "member"       // the name of a JSON member does
	RuleShape       Rule = "key-shape"    // it looks like a key or a token of some issuer
	RulePrivateKey  Rule = "private-key"  // the body of a PEM private key
	RuleURLPassword Rule = "url-password" // it stands before the host of a URL
	RuleSeen        Rule = "seen"         // a header, a parameter or a member gave it away elsewhere, or it was named
	RuleUnsearched  Rule = "not-searched" // no secret: bytes that the search could not look into; Name says why
)

// A Hit is a secret that the rules find, without its value.
type Hit struct {
	Rule Rule
	Name string // of the parameter or member; of a shape, what it begins with; "" elsewhere
	Off  int    // in what was searched
	Len  int    // bytes
}

// A HeaderHit is a Hit in the value of a header field.
type HeaderHit struct {
	Hit
	Header string
}

// A reporter is told of what is found; nil is nobody.
type reporter func(Hit)

// value reports v, unless it is a placeholder.
func (r reporter) value(h Hit, v string) {
	if r != nil && v != "" && !isPlaceholder(v) {
		h.Len = len(v)
		r(h)
	}
}

// match returns what a scanner is to tell r of matches in a text at offset at.
func (r reporter) match(at int) func(m match, base int64) {
	if r == nil {
		return nil
	}
	return func(m match, base int64) {
		if m.end > m.start && !isPlaceholder(m.secret) {
			r(Hit{Rule: m.rule, Name: m.name, Off: at + int(base) + m.start, Len: m.end - m.start})
		}
	}
}

// mapped returns a reporter for a text that was decoded: place returns where
// the bytes of a hit stand in what r knows.
func (r reporter) mapped(place func(from, to int) (int, int)) reporter {
	if r == nil {
		return nil
	}
	return func(h Hit) {
		from, to := place(h.Off, h.Off+h.Len)
		h.Off, h.Len = from, to-from
		r(h)
	}
}

// Find returns the secrets that Bytes replaces, in order, and learns them.
// Form says that p is a form, in which a parameter may begin at the first byte.
//
// Limits: placeholders are no secrets, those that were cut to the length of a
// short one included.
func (r *Redactor) Find(p []byte, form bool) []Hit {
	var hits []Hit
	sc := newScanner(r, form)
	sc.see = reporter(func(h Hit) { hits = append(hits, h) }).match(0)
	sc.hit = func(int64, int64, string) {}
	sc.feed(p)
	sc.finish()
	return hits
}

// FindURL returns the secrets that URL replaces, in order, and learns them.
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
func (r *Redactor) FindHeaders(h captures.Headers) []HeaderHit {
	var hits []HeaderHit
	r.section(h, func(field int, hit Hit) {
		hits = append(hits, HeaderHit{hit, h[field].Name})
	})
	return hits
}

// Fill returns a placeholder of the length of secret, or the secret where it is
// a placeholder already.
func (r *Redactor) Fill(secret []byte) []byte {
	if isPlaceholder(string(secret)) {
		return secret
	}
	return []byte(fill(r, string(secret), len(secret)))
}

// IsPlaceholder reports whether s stands for a secret that was replaced.
func IsPlaceholder(s string) bool { return isPlaceholder(s) }

// TellsSecret reports whether a name, in any spelling, is that of a secret;
// perhaps, that it is if its value looks like one (see LooksRandom).
func (r *Redactor) TellsSecret(name string) (surely, perhaps bool) {
	switch r.nameKind(normalName(name)) {
	case secretName:
		return true, false
	case perhapsName:
		return false, true
	}
	return false, false
}

// LooksRandom reports whether a value is a token rather than words: one word of
// 16 bytes or more, with a digit.
func LooksRandom(v []byte) bool { return looksRandom(v) }
