package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"unwire/captures/profile"
)

// maxSecret bounds the run of bytes that is taken for one secret, and so what
// is held back while it may still be one.
const maxSecret = 16 << 10

// A literal is a spelling of a learned secret.
type literal struct{ spelt, secret string }

// A ruleset is everything that is looked for at each byte. It never changes;
// what is learned makes a new one.
type ruleset struct {
	literals map[[3]byte][]literal
	shapes   map[[3]byte][]shape

	// A byte at which nothing of the above can begin is passed in about a
	// nanosecond, by a look at a hash of the three bytes there.
	filter [1 << 10]uint64
	one    [256]bool
	class  [256]uint8 // see mayBegin
	two    [1 << 10]uint64
}

func newRuleset(keys []profile.Key, learned []string) *ruleset {
	f := &ruleset{literals: make(map[[3]byte][]literal), shapes: make(map[[3]byte][]shape)}
	for _, s := range slices.Concat(knownShapes(), keyShapes(keys)) {
		k := f.admit(s.prefix)
		f.shapes[k] = append(f.shapes[k], s)
	}
	for _, structural := range []string{"://", "---"} {
		f.admit(structural)
	}
	for _, secret := range learned {
		seen := make(map[string]bool)
		for _, spelt := range spellings(secret) {
			if !seen[spelt] {
				seen[spelt] = true
				k := f.admit(spelt)
				f.literals[k] = append(f.literals[k], literal{spelt, secret})
			}
		}
	}
	// A member's name begins with a quote and a parameter's follows one of
	// these, whatever comes then.
	for c := range f.class {
		f.class[c] |= classAny
	}
	for _, c := range []byte{'"', '&', '?'} {
		f.one[c] = true
		f.class[c] |= classAlone
	}
	return f
}

// admit lets the first three bytes of s through the filter.
func (f *ruleset) admit(s string) [3]byte {
	h := hash3(s[0], s[1], s[2])
	f.filter[h>>6] |= 1 << (h & 63)
	two := uint16(s[0])<<8 | uint16(s[1])
	f.two[two>>6] |= 1 << (two & 63)
	f.one[s[0]] = true
	f.class[s[0]] |= classFirst
	f.class[s[1]] |= classSecond
	f.class[s[2]] |= classThird
	return [3]byte{s[0], s[1], s[2]}
}

// What a byte can be of the first three at which something begins. What the
// second and the third can be, shifted by one and two, meets what the first is.
const (
	classFirst  = 0b00_0001
	classSecond = 0b00_0010
	classThird  = 0b00_0100
	classAlone  = 0b00_1000 // whatever is behind it
	classAny    = 0b11_0000
)

// mayBegin reports whether something may begin at one of the first eight of
// ten bytes. It is what most bytes of a large body cost.
func (f *ruleset) mayBegin(b *[10]byte) bool {
	t := &f.class
	v2, v3, v4, v5, v6, v7 := t[b[2]], t[b[3]], t[b[4]], t[b[5]], t[b[6]], t[b[7]]
	v1, v8 := t[b[1]], t[b[8]]
	return t[b[0]]&(v1>>1)&(v2>>2)|v1&(v2>>1)&(v3>>2)|v2&(v3>>1)&(v4>>2)|v3&(v4>>1)&(v5>>2)|
		v4&(v5>>1)&(v6>>2)|v5&(v6>>1)&(v7>>2)|v6&(v7>>1)&(v8>>2)|v7&(v8>>1)&(t[b[9]]>>2) != 0
}

// admits reports whether something may begin with these bytes.
func (f *ruleset) admits(a, b, c byte) bool {
	h := hash3(a, b, c)
	return f.filter[h>>6]&(1<<(h&63)) != 0
}

func hash3(a, b, c byte) uint16 {
	return uint16((uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9e3779b1 >> 16)
}

// next returns the first position from i on where something may begin; with
// fewer than three bytes left it decides by those.
func (f *ruleset) next(b []byte, i int) int {
	for i+10 <= len(b) {
		if !f.mayBegin((*[10]byte)(b[i:])) {
			i += 8
			continue
		}
		for end := i + 8; i < end; i++ {
			if f.admits(b[i], b[i+1], b[i+2]) || b[i] == '"' || b[i] == '&' || b[i] == '?' {
				return i
			}
		}
	}
	for ; i+2 < len(b); i++ {
		if f.admits(b[i], b[i+1], b[i+2]) || b[i] == '"' || b[i] == '&' || b[i] == '?' {
			return i
		}
	}
	if i+2 == len(b) {
		two := uint16(b[i])<<8 | uint16(b[i+1])
		if f.two[two>>6]&(1<<(two&63)) != 0 || b[i] == '"' || b[i] == '&' || b[i] == '?' {
			return i
		}
		i++
	}
	if i < len(b) && !f.one[b[i]] {
		i++
	}
	return i
}

// spellings returns secret as it stands in text, URLs, base64 and hex.
func spellings(secret string) []string {
	l := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		// Within a longer text the secret begins at one of three places of
		// a group; only the characters that are wholly its own are sure.
		for offset := range 3 {
			s := enc.EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
			from := []int{0, 2, 3}[offset]
			to := (offset + len(secret)) * 8 / 6
			l = append(l, s[from:to])
		}
	}
	return l
}

// A match is a secret that was found: the bytes to replace and the secret
// they spell.
type match struct {
	start, end int
	secret     string
	learn      bool  // it was named: look for it elsewhere too
	mask       *mask // what follows belongs to it too
	rule       Rule
	name       string // see Hit
}

// verdict is what can be said of a position.
type verdict uint8

const (
	nothing verdict = iota
	found
	undecided // more bytes are needed
)

// at looks at position i of b. Final says that no bytes follow; hurry, that
// none can be waited for: what has been seen of a secret is taken for it.
func (r *Redactor) at(f *ruleset, b []byte, i int, final, hurry bool) (m match, v verdict) {
	consider := func(m2 match, v2 verdict) {
		if v2 == undecided || v2 == found && v != undecided && m2.end > m.end {
			m, v = m2, v2
		}
	}
	switch b[i] {
	case '"':
		consider(r.member(b, i, final, hurry))
	case '&', '?':
		consider(r.bodyParameter(b, i+1, final, hurry))
	case ':':
		consider(userinfoAt(b, i, final))
	case '-':
		consider(privateKey(b, i, final, hurry))
	}
	rest := b[i:]
	if len(rest) < 3 {
		if final {
			return m, v
		}
		return m, undecided // or the filter had not let it through
	}
	if !f.admits(rest[0], rest[1], rest[2]) {
		return m, v
	}
	k := [3]byte{rest[0], rest[1], rest[2]}
	for _, l := range f.literals[k] {
		consider(l.at(rest, i, final, hurry))
	}
	for s := range f.shapes[k] {
		consider(f.shapes[k][s].at(b, i, final, hurry))
	}
	return m, v
}

// at compares the literal with the bytes at position i.
func (l literal) at(rest []byte, i int, final, hurry bool) (match, verdict) {
	n := min(len(rest), len(l.spelt))
	if string(rest[:n]) != l.spelt[:n] {
		return match{}, nothing
	}
	switch {
	case n == len(l.spelt):
		return match{start: i, end: i + n, secret: l.secret, rule: RuleSeen}, found
	case hurry && n >= 8:
		return match{start: i, end: i + n, secret: l.secret, mask: &mask{literal: l.spelt[n:]}, rule: RuleSeen}, found
	case final:
		return match{}, nothing
	}
	return match{}, undecided
}

// at looks for a key of shape s at position i.
func (s *shape) at(b []byte, i int, final, hurry bool) (match, verdict) {
	rest := b[i:]
	n := min(len(rest), len(s.prefix))
	if string(rest[:n]) != s.prefix[:n] {
		return match{}, nothing
	}
	if n < len(s.prefix) {
		if final {
			return match{}, nothing
		}
		return match{}, undecided
	}
	limit := maxSecret
	if s.max > 0 {
		limit = s.max
	}
	run := 0
	for run < limit && n+run < len(rest) && s.chars.has(rest[n+run]) {
		run++
	}
	cut := n+run == len(rest) && run < limit // what follows may belong to it
	if cut && !final {
		return match{}, undecided
	}
	full := run == limit
	for s.max == 0 && run > 0 && (rest[n+run-1] == '.' || rest[n+run-1] == ':') {
		run-- // the end of a sentence
	}
	whole := n + run
	m := match{start: i, end: i + whole, secret: string(rest[:whole]), rule: RuleShape, name: strings.TrimSpace(s.prefix)}
	if s.max == 0 {
		if short := cutByLength(b, i, whole, n+s.min); short < whole {
			m.end, m.secret = i+short, string(rest[:short])
		} else if i > 0 && !s.dots && alnumChars.has(b[i-1]) && !hasLength(b, i, whole) {
			return match{}, nothing // the middle of a word
		}
	}
	tail := m.end - i - n
	open := hurry && cut
	if !s.fits(rest[n:n+tail]) && !(open && tail >= 8) {
		return match{}, nothing
	}
	if s.keep {
		m.start += n
		m.secret = m.secret[n:]
	}
	if open || s.max == 0 && full {
		m.mask = &mask{chars: s.chars}
	}
	return m, found
}

// cutByLength shortens a run that has run into what follows it. In protobuf a
// string has its length in front and the next field's tag, which may be a
// letter, behind it; a length that is a few bytes shorter than the run is
// taken for true, if what it leaves is at least as long as a key.
func cutByLength(b []byte, i, run, least int) int {
	for n := run; n >= least && n > run-12; n-- {
		if hasLength(b, i, n) {
			return n
		}
	}
	return run
}

// hasLength reports whether n stands in front of i as a protobuf length, with
// something in front of it that can be the tag of a length-delimited field.
func hasLength(b []byte, i, n int) bool {
	switch {
	case n < 0x80 && i >= 2:
		return int(b[i-1]) == n && b[i-2]&7 == 2
	case n >= 0x80 && n < 1<<14 && i >= 3:
		return int(b[i-2]&0x7f)|int(b[i-1])<<7 == n && b[i-2] >= 0x80 && b[i-3]&7 == 2
	}
	return false
}

// privateKey finds the body of a PEM private key, whose line breaks may be
// escaped.
func privateKey(b []byte, i int, final, hurry bool) (match, verdict) {
	const begin, kind, end = "-----BEGIN ", "PRIVATE KEY-----", "-----END"
	rest := b[i:]
	if n := min(len(rest), len(begin)); string(rest[:n]) != begin[:n] {
		return match{}, nothing
	}
	// The kind's name has one or two words: RSA, EC, OPENSSH, ENCRYPTED.
	header := bytes.Index(rest[:min(len(rest), 48)], []byte(kind))
	if header < 0 {
		if final || len(rest) >= 48 {
			return match{}, nothing
		}
		return match{}, undecided
	}
	from := header + len(kind)
	body := rest[from:min(len(rest), from+maxSecret)]
	stop := bytes.Index(body, []byte(end))
	if stop < 0 {
		if !final && len(body) < maxSecret {
			return match{}, undecided
		}
		stop = len(body)
	}
	if stop == 0 {
		return match{}, nothing
	}
	m := match{start: i + from, end: i + from + stop, secret: string(body[:stop]), rule: RulePrivateKey}
	if hurry && stop == len(body) {
		m.mask = &mask{chars: base64Chars}
	}
	return m, found
}

// userinfoAt finds the password in scheme://user:password@host; i is at the colon.
func userinfoAt(b []byte, i int, final bool) (match, verdict) {
	rest := b[i:]
	if n := min(len(rest), 3); string(rest[:n]) != "://"[:n] {
		return match{}, nothing
	} else if n < 3 {
		return pending(final)
	}
	n := 3
	for n < len(rest) && n < 256 && userChars.has(rest[n]) {
		n++
	}
	if n == len(rest) && n < 256 {
		return pending(final)
	}
	if n == 256 || rest[n] != ':' {
		return match{}, nothing
	}
	n++
	from := n
	for n < len(rest) && n < 512 && (userChars.has(rest[n]) || rest[n] == ':') {
		n++
	}
	if n == len(rest) && n < 512 {
		return pending(final)
	}
	if n == 512 || rest[n] != '@' || n == from {
		return match{}, nothing
	}
	return match{start: i + from, end: i + n, secret: string(rest[from:n]), rule: RuleURLPassword}, found
}

func pending(final bool) (match, verdict) {
	if final {
		return match{}, nothing
	}
	return match{}, undecided
}
