// Package redact replaces secrets in exchanges, while they are recorded or afterwards.
//
//	r := redact.New(redact.Options{})
//	clean := r.Exchange(exchange)                           // headers, URL and texts
//	b := redact.NewBodyFilter(r, exchange.ResponseHeaders, exchange.URL) // one direction of the body
//	b.Write(chunk)
//	ready := b.Ready()                                      // the chunks that can be stored
//
// A Redactor has the rules. A BodyFilter applies them to the bytes of one direction as they arrive, also within
// envelopes and compression; an ExchangeFilter does so for a recorded exchange. The methods that begin with Find
// only report each secret as a Hit. What could not be searched is reported as Unsearched.
//
// Rules recognize secrets by names (of header fields, of parameters in queries and forms, of members in JSON)
// and by the shapes of API keys. A secret recognized by its name is learned: from then on it is also recognized
// elsewhere, by its value and the usual encodings of it. All rules that apply at any byte are compiled into a
// ruleset, which a scanner applies to bytes that arrive in pieces. A placeholder has the length of the secret in
// bodies, and a fixed spelling in texts. Compressed bytes are decompressed and searched, and compressed again if
// they contained a secret.
//
// The package handles bytes and framing; it decodes no messages. Package store uses it during recording,
// decode/secret afterwards.
package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"unwire/captures/profile"
	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
	"unwire/captures/redact/internal/syntax"
)

// KeySize is the size of the key for placeholders, in bytes.
const KeySize = 32

// Limits of the learned secrets, in bytes or numbers of secrets.
const (
	// minLearned is the smallest length of a secret that is learned, because shorter values also occur by
	// chance.
	minLearned = 12
	// maxLearned is the greatest length of a secret that is learned.
	maxLearned = 64 << 10
	// maxPiece is the length of the pieces in which a longer secret is learned.
	maxPiece = 4 << 10
	// maxSecrets is the greatest number of learned secrets. Beyond that, those that occurred least recently are
	// forgotten.
	maxSecrets = 512
	// forgotten is the number of secrets that are forgotten at once when maxSecrets is exceeded.
	forgotten = 64
)

// Options are additions to the default rules. The zero value adds nothing.
type Options struct {
	// Profile supplies additional rules for the secrets of a service; nil for none.
	Profile *profile.Profile

	// Headers are the names of additional header fields whose values are secrets.
	Headers []string

	// Names are further names of query parameters and JSON members whose values are secrets.
	Names []string

	// Secrets are known secret values of at least 12 bytes; shorter ones are ignored.
	Secrets []string
}

// A Redactor replaces secrets by placeholders. It remembers the secrets, and recognises them in other
// places too. Its methods may be called concurrently.
//
// Secrets are: the values of header fields, query parameters and JSON members whose names denote
// secrets; JSON Web Tokens, private keys and API keys of known shapes anywhere; passwords in URLs; and
// any value of at least 12 bytes that was recognised by its name before, in any place, also encoded in
// base64, hex or percent-encoding.
//
// A placeholder is "[redacted:3f2a9c1b]" in headers and "redacted-3f2a9c1b" in URLs. In bodies the
// placeholder is truncated, or padded with dots, to the length of the secret, so that length prefixes
// stay correct. The digits are a keyed hash (see tag): within a capture, equal secrets have equal
// placeholders. The key is stored in the capture, so whoever has the capture can check whether a
// guessed value is the secret. Secrets shorter than 16 bytes could be found by guessing, so their key
// is random for each session and is never stored.
//
// Limits: 512 learned secrets, or pieces of 4 KiB of them; a secret of at most 64 KiB. A learned secret
// that is divided between two places, such as two messages of a stream, is found if the first place has
// at least seven bytes of it, at most 1 KiB is between them, and neither is compressed. Not found are:
// unknown secrets in base64 or hex, secrets that are divided between more than two places, and values
// that only the number of a protobuf field identifies. If a stream sends a secret with pauses of a
// quarter of a second within it, it is replaced from its eighth byte on. For compressed data see
// BodyFilter.
//
// Source: captures/README.md#redaction
type Redactor struct {
	// names recognises names that denote secrets.
	names *names.Names
	// syntax finds secrets in text by the names before them, for instance in JSON and URLs.
	syntax *syntax.Finder
	// issuing is like syntax for the bodies of calls that issue secrets, in which more names denote secrets.
	issuing *syntax.Finder
	// storing is like issuing for the bodies of calls to a store of secrets, in which words are secrets, too.
	storing *syntax.Finder
	// messages is like syntax for the messages of WebSockets, of which each may be nothing but a token.
	messages *syntax.Finder

	// key is the HMAC key from which placeholders are computed.
	key []byte
	// shortKey is the HMAC key for the placeholders of secrets of fewer than 16 bytes; it is random and never
	// stored.
	shortKey []byte

	// OmitUnsearched makes the Redactor remove data that cannot be searched for secrets. It is set for data
	// that leaves the machine, not during recording.
	OmitUnsearched bool

	// learnFound means that every secret that is found is learned, not only those recognised by a name.
	learnFound atomic.Bool

	// mu guards learned and every change of rules.
	mu sync.Mutex
	// learned are the secrets that were recognised by their names and are replaced everywhere, least recent
	// first.
	learned []string
	// base is the set of search rules without learned secrets.
	base *ruleset
	// rules is the current set of search rules, including the spellings of learned secrets.
	rules atomic.Pointer[ruleset]

	// known caches redacted header values.
	known known

	// filters are recycled BodyFilters.
	filters sync.Pool
}

// New returns a Redactor with the default rules and the additional ones in o.
func New(o Options) *Redactor {
	r := &Redactor{key: newKey(), shortKey: newKey()}
	var keys []profile.KeyShape
	if o.Profile != nil {
		o.Headers = slices.Concat(o.Profile.Secrets.Headers, o.Headers)
		o.Names = slices.Concat(o.Profile.Secrets.Names, o.Names)
		keys = o.Profile.Secrets.Keys
	}
	r.names = names.New(o.Headers, o.Names)
	r.syntax = syntax.New(r.names)
	r.issuing = syntax.New(r.names.Issuing())
	r.storing = syntax.New(r.names.Storing())
	r.messages = syntax.NewForMessages(r.names)
	r.base = newRuleset(keys)
	r.rules.Store(r.base)
	for _, s := range o.Secrets {
		r.Learn(s)
	}
	return r
}

// newKey returns a random HMAC key for placeholders.
func newKey() []byte {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails: it would end the program
	return key
}

// WithKey returns a copy of r that computes placeholders with the given key.
func (r *Redactor) WithKey(key []byte) *Redactor {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Redactor{names: r.names, syntax: r.syntax, issuing: r.issuing, storing: r.storing, messages: r.messages, base: r.base, key: key, shortKey: newKey(), OmitUnsearched: r.OmitUnsearched}
	c.learnFound.Store(r.learnFound.Load())
	c.learned = append(c.learned, r.learned...)
	c.rules.Store(r.rules.Load())
	return c
}

// Omitting returns a copy of r with OmitUnsearched set, for data that leaves the machine.
func (r *Redactor) Omitting() *Redactor {
	c := r.WithKey(r.key)
	c.OmitUnsearched = true
	return c
}

// LearnFound makes the Redactor learn every secret that it finds, not only those recognised by a name,
// until 512 are known.
func (r *Redactor) LearnFound() { r.learnFound.Store(true) }

// learnMatch learns the secret of a match if it was recognised by a name, or if LearnFound was called.
func (r *Redactor) learnMatch(m match.Match) {
	if !m.Learn {
		if !r.learnFound.Load() || m.Rule == match.Seen || m.Mask != nil {
			return
		}

		// Do not displace secrets that were recognized by their names.
		r.mu.Lock()
		full := len(r.learned) >= maxSecrets
		r.mu.Unlock()
		if full {
			return
		}
	}
	r.Learn(m.Secret)
}

// Learn makes the Redactor replace secret everywhere from now on, also in base64, hex, percent-encoding and
// other spellings. Values of fewer than 12 bytes or more than 64 KiB, and placeholders, are ignored. A secret
// of more than 5 KiB is learned in pieces of 4 KiB.
func (r *Redactor) Learn(secret string) {
	if len(secret) < minLearned || len(secret) > maxLearned || isPlaceholder(secret) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(secret) > maxPiece+maxPiece/4 {
		r.learnPiece(secret[:maxPiece])
		secret = secret[maxPiece:]
	}
	r.learnPiece(secret)
}

// learnPiece learns a secret of at most 5 KiB, or moves it to the end of learned. The caller has locked mu.
func (r *Redactor) learnPiece(secret string) {
	// Move it to the end, so that it is forgotten last.
	if i := slices.Index(r.learned, secret); i >= 0 {
		r.learned = append(slices.Delete(r.learned, i, i+1), secret)
		return
	}
	rules, more := r.rules.Load(), []string{secret}
	r.learned = append(r.learned, secret)

	// Build the rules again, because spellings cannot be removed from them.
	if len(r.learned) > maxSecrets {
		r.learned = slices.Delete(r.learned, 0, forgotten)
		rules, more = r.base, r.learned
	}
	r.rules.Store(rules.with(more...))
}

// A form is a function that returns a placeholder with the given tag, eight hex digits, for a secret of the
// given length.
type form func(tag string, secretLen int) string

// bracketed is the form of placeholders in headers.
func bracketed(tag string, _ int) string { return "[redacted:" + tag + "]" }

// plain is the form of placeholders in URLs.
func plain(tag string, _ int) string { return "redacted-" + tag }

// sameLength is the form of placeholders in bodies: truncated or padded with dots to n bytes, the length of the
// secret.
func sameLength(tag string, n int) string {
	p := plain(tag, n)
	if n <= len(p) {
		return p[:n]
	}
	return p + strings.Repeat(".", n-len(p))
}

// tag returns the eight hexadecimal digits of a secret's placeholder: 32 bits of an HMAC-SHA256.
func (r *Redactor) tag(secret string) string {
	key := r.key
	// A short secret could be found by trying all values if the key was stored.
	if len(secret) < match.ShortSecret {
		key = r.shortKey
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(secret))
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

// isPlaceholder reports whether s is a placeholder, as in a request that was replayed from a capture.
func isPlaceholder(s string) bool {
	if tag, ok := strings.CutPrefix(s, "[redacted:"); ok {
		tag, ok = strings.CutSuffix(tag, "]")
		return ok && isTag(tag)
	}
	tag, ok := strings.CutPrefix(s, "redacted-")
	if !ok {
		// Cut to the length of a short secret.
		return s != "" && strings.HasPrefix("redacted-", s)
	}
	if len(tag) < tagLen {
		return charset.IsHex(tag)
	}
	// In binary data, the first bytes of the next field may be letters, and then look like a part of the secret.
	return isTag(tag[:tagLen]) && len(strings.TrimLeft(tag[tagLen:], ".")) <= maxFollowing
}

// tagLen is the length of a placeholder's tag, and maxFollowing the largest number of bytes of the next protobuf
// field (its tag and its length) that may follow a placeholder.
const (
	tagLen       = 8
	maxFollowing = 3
)

// isTag reports whether s is a placeholder's tag: eight hex digits.
func isTag(s string) bool {
	return len(s) == tagLen && charset.IsHex(s)
}

// placeholder returns the placeholder for a secret in the given form; a text that is already a
// placeholder is returned unchanged.
func (r *Redactor) placeholder(secret string, f form) string {
	if isPlaceholder(secret) {
		return secret
	}
	return f(r.tag(secret), len(secret))
}

// Placeholder returns the text that replaces, in a header, a value that is known to be a secret. Equal secrets
// have equal placeholders within a capture.
func (r *Redactor) Placeholder(secret string) string { return r.placeholder(secret, bracketed) }

// numberSecret stands for a secret that is a number of JSON without quotes.
const numberSecret = "\x00number"

// fill returns n bytes that replace a secret: a placeholder. If secret is "", the bytes continue the previous
// secret and are replaced by dots. A number becomes one of nines, so that the JSON stays valid.
func fill(r *Redactor, secret string, n int) string {
	switch {
	case secret == "":
		return strings.Repeat(".", n)
	case secret == numberSecret:
		return strings.Repeat("9", n)
	case len(secret) == n && isPlaceholder(secret):
		return secret
	}
	return sameLength(r.tag(secret), n)
}
