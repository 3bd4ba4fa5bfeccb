package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
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

	// A byte at which nothing of the above can begin, and no name, is passed in less than
	// a nanosecond, by a look at every second pair of bytes, and where that may be of
	// something, at a hash of three bytes.
	pairs  [1 << 16]uint8
	filter [1 << 10]uint64
	one    [256]bool
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
	// The name of a member or of a parameter follows one of these.
	for c := range 256 {
		if !isNameStart(byte(c)) {
			continue
		}
		f.one[c] = true
		for other := range 256 {
			f.pairs[pairOf(byte(other), byte(c))] |= isSecondPair
			if nameChars.has(byte(other)) {
				f.pairs[pairOf(byte(c), byte(other))] |= isFirstPair
			}
		}
	}
	return f
}

// isNameStart reports whether the name of a member or of a parameter follows c.
func isNameStart(c byte) bool { return c == '"' || c == '&' || c == '?' }

// What ruleset.pairs has of two bytes: something may begin with them, or with the byte
// before them.
const (
	isFirstPair = 1 << iota
	isSecondPair
)

// admit lets the first three bytes of s through the filter.
func (f *ruleset) admit(s string) [3]byte {
	h := hash3(s[0], s[1], s[2])
	f.filter[h>>6] |= 1 << (h & 63)
	two := uint16(s[0])<<8 | uint16(s[1])
	f.two[two>>6] |= 1 << (two & 63)
	f.one[s[0]] = true
	f.pairs[pairOf(s[0], s[1])] |= isFirstPair
	f.pairs[pairOf(s[1], s[2])] |= isSecondPair
	return [3]byte{s[0], s[1], s[2]}
}

// pairOf is the place of two bytes that follow each other in ruleset.pairs.
func pairOf(a, b byte) uint16 { return uint16(a) | uint16(b)<<8 }

// hasPair reports whether one of the four pairs of eight bytes is of something that
// begins with it, or with the byte before it.
func (f *ruleset) hasPair(b *[8]byte) bool {
	v := binary.LittleEndian.Uint64(b[:])
	return f.pairs[uint16(v)]|f.pairs[uint16(v>>16)]|f.pairs[uint16(v>>32)]|f.pairs[uint16(v>>48)] != 0
}

// hasPairs is hasPair of 16 bytes. It is what most bytes of a large body cost.
func (f *ruleset) hasPairs(b *[16]byte) bool {
	v, w := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	return f.pairs[uint16(v)]|f.pairs[uint16(v>>16)]|f.pairs[uint16(v>>32)]|f.pairs[uint16(v>>48)]|
		f.pairs[uint16(w)]|f.pairs[uint16(w>>16)]|f.pairs[uint16(w>>32)]|f.pairs[uint16(w>>48)] != 0
}

// admits reports whether something may begin with these bytes.
func (f *ruleset) admits(a, b, c byte) bool {
	h := hash3(a, b, c)
	return f.filter[h>>6]&(1<<(h&63)) != 0
}

func hash3(a, b, c byte) uint16 {
	return uint16((uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9e3779b1 >> 16)
}

// mayBegin reports whether something may begin with these bytes, or a name of at least
// two bytes, as all that are looked for have.
func (f *ruleset) mayBegin(a, b, c byte) bool {
	return f.pairs[pairOf(a, b)]&isFirstPair != 0 && (f.admits(a, b, c) || isNameStart(a) && nameChars.has(b) && nameChars.has(c))
}

// next returns the first position from i on where something may begin; with
// fewer than three bytes left it decides by those.
func (f *ruleset) next(b []byte, i int) int {
	from := i // where something may begin at the earliest
	for ; i+10 <= len(b); i += 8 {
		for i+18 <= len(b) && !f.hasPairs((*[16]byte)(b[i:])) {
			i += 16
		}
		if i+10 > len(b) {
			break
		}
		if !f.hasPair((*[8]byte)(b[i:])) {
			continue
		}
		for at := max(from, i-1); at < i+8; at++ {
			if f.pairs[pairOf(b[at], b[at+1])]&isFirstPair != 0 && f.mayBegin(b[at], b[at+1], b[at+2]) {
				return at
			}
		}
	}
	i = max(from, i-1)
	for ; i+2 < len(b); i++ {
		if f.mayBegin(b[i], b[i+1], b[i+2]) {
			return i
		}
	}
	if i+2 == len(b) {
		two := uint16(b[i])<<8 | uint16(b[i+1])
		if f.two[two>>6]&(1<<(two&63)) != 0 || isNameStart(b[i]) {
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

// at compares the literal with the bytes at position i.
func (l literal) at(rest []byte, i int, final, flush bool) (match, matchState) {
	n := min(len(rest), len(l.spelt))
	if string(rest[:n]) != l.spelt[:n] {
		return match{}, nothing
	}
	switch {
	case n == len(l.spelt):
		return match{start: i, end: i + n, secret: l.secret, rule: ruleSeen}, found
	case flush && n >= 8:
		return match{start: i, end: i + n, secret: l.secret, mask: &mask{literal: l.spelt[n:]}, rule: ruleSeen}, found
	case final:
		return match{}, nothing
	}
	return match{}, undecided
}

// at looks for a key of shape s at position i.
func (s *shape) at(b []byte, i int, final, flush bool) (match, matchState) {
	rest := b[i:]
	n := min(len(rest), len(s.prefix))
	if string(rest[:n]) != s.prefix[:n] {
		return match{}, nothing
	}
	if n < len(s.prefix) {
		return pending(final)
	}

	run, full := s.run(rest[n:])
	cut := n+run == len(rest) && !full // what follows may belong to it
	if cut && !final {
		return match{}, undecided
	}
	end, whole := n+run, true
	if s.max == 0 {
		end, whole = s.keyEnd(b, i, end)
	}
	open := flush && cut
	if !whole || !s.fits(rest[n:end]) && !(open && end-n >= 8) {
		return match{}, nothing
	}

	m := match{start: i, end: i + end, secret: string(rest[:end]), rule: ruleShape, name: strings.TrimSpace(s.prefix)}
	if s.keep {
		m.start += n
		m.secret = m.secret[n:]
	}
	if open || s.max == 0 && full {
		m.mask = &mask{chars: s.chars}
	}
	return m, found
}

// run returns how many bytes of p, from its beginning, a key may have after its
// prefix; full reports that these are as many as are searched.
func (s *shape) run(p []byte) (n int, full bool) {
	limit := maxSecret
	if s.max > 0 {
		limit = s.max
	}
	for n < limit && n < len(p) && s.chars.has(p[n]) {
		n++
	}
	return n, n == limit
}

// keyEnd returns where a key that begins at position i ends, relative to it, if its
// run of characters ends at end. ok is false in the middle of a word.
func (s *shape) keyEnd(b []byte, i, end int) (_ int, ok bool) {
	n := len(s.prefix)
	for end > n && (b[i+end-1] == '.' || b[i+end-1] == ':') {
		end-- // the end of a sentence
	}
	if short := cutByLength(b, i, end, n+s.min); short < end {
		return short, true
	}
	return end, i == 0 || s.dots || !alnumChars.has(b[i-1]) || hasLength(b, i, end)
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
func privateKey(b []byte, i int, final, flush bool) (match, matchState) {
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
	m := match{start: i + from, end: i + from + stop, secret: string(body[:stop]), rule: rulePrivateKey}
	if flush && stop == len(body) {
		m.mask = &mask{chars: base64Chars}
	}
	return m, found
}

// userinfoAt finds the password in scheme://user:password@host; i is at the colon.
func userinfoAt(b []byte, i int, final bool) (match, matchState) {
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
	return match{start: i + from, end: i + n, secret: string(rest[from:n]), rule: ruleURLPassword}, found
}

func pending(final bool) (match, matchState) {
	if final {
		return match{}, nothing
	}
	return match{}, undecided
}
