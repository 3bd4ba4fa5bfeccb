// Package redact takes secrets out of exchanges while they are recorded.
//
// A Redactor has the rules. A BodyFilter applies them to the bytes of one direction
// as they pass, looking into envelopes and compression; an ExchangeFilter does so
// for an exchange that was recorded before.
//
// Rules find secrets in headers, URLs, parameters of queries and forms, members of
// JSON, by names of secrets, and by the shapes of keys that issuers hand out. A
// scanner applies them to bytes that come in pieces; a match is replaced by a
// placeholder of its length in bodies, and of a fixed spelling in texts. Compressed
// bytes are inflated, searched, and rewritten if they hold a secret. A secret that a name
// gave away is learned: a byte ruleset, of shapes, private keys, passwords in URLs and
// the spellings of learned secrets, finds it wherever it stands after. Find… reports
// each secret as a Hit and replaces nothing. What could not be searched is reported
// as Unsearched.
//
// The package finds secrets in bytes and framing; it decodes no messages. Package
// store calls it while it records, decode/secret afterwards.
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

// KeySize is the size of the key of placeholders, in bytes.
const KeySize = 32

// Bounds of what is learned.
const (
	minLearned = 12       // bytes: shorter values occur by chance
	maxLearned = 64 << 10 // bytes
	maxPiece   = 4 << 10  // bytes of a secret that are looked for at once
	maxSecrets = 512      // the ones not met for longest are forgotten
	forgotten  = 64       // secrets at once
)

// Options adds to the default rules. The zero value adds nothing.
type Options struct {
	// Profile has secrets of a service; nil has none.
	Profile *profile.Profile

	Headers []string // further header fields whose value is a secret

	// Names are further query parameters and JSON members, as they are spelt.
	Names []string

	Secrets []string // values that are known, of 12 bytes or more
}

// A Redactor replaces secrets by placeholders, at the time of recording, and
// remembers the ones it met so that they are found elsewhere too.
//
// What is a secret: the values of header fields, query parameters and JSON
// members with telling names; JWTs, private keys and API keys of known shapes
// anywhere; passwords in URLs; and wherever it stands, also in base64, hex and
// percent-encoding, any value of 12 bytes or more that a header, a parameter or
// a JSON member gave away before.
//
// A placeholder is "[redacted:3f2a9c1b]" in headers, "redacted-3f2a9c1b" in
// URLs, and in bodies the latter cut or padded with dots to the length of the
// secret, so that lengths around it stay true. The digits are a keyed hash:
// equal secrets have equal placeholders within a capture. The key is stored in
// the capture, so whoever has it can test a guess against a placeholder; for
// secrets shorter than 16 bytes, which could be guessed, the key is random per
// session and stored nowhere.
//
// Limits: 512 learned secrets, or pieces of 4 KiB of them; a secret of up to 64 KiB. A learned
// secret is found in two places, such as two messages of a stream, if seven bytes of it are in
// the first, at most 1 KiB is between them, and no compression. Not found: unknown ones within
// base64 or hex, those that stand in more than two places, and values that only a protobuf
// field number tells. Secrets that a stream drips out with pauses of a quarter of a second
// within them are covered from their eighth byte on. See BodyFilter for compressed content.
//
// Source: captures/README.md#redaction
type Redactor struct {
	names         *names.Names
	syntax        *syntax.Finder
	key, shortKey []byte

	// OmitUnsearched leaves out what the search for secrets cannot look into, for
	// what leaves the machine; a recorder keeps it.
	OmitUnsearched bool

	learnFound atomic.Bool // see LearnFound

	mu      sync.Mutex
	learned []string
	base    *ruleset
	rules   atomic.Pointer[ruleset]
	known   known
}

// New returns a Redactor with the default rules and those of o.
func New(o Options) *Redactor {
	r := &Redactor{key: newKey(), shortKey: newKey()}
	var keys []profile.Key
	if o.Profile != nil {
		o.Headers = slices.Concat(o.Profile.Secrets.Headers, o.Headers)
		o.Names = slices.Concat(o.Profile.Secrets.Names, o.Names)
		keys = o.Profile.Secrets.Keys
	}
	r.names = names.New(o.Headers, o.Names)
	r.syntax = syntax.New(r.names)
	r.base = newRuleset(keys)
	r.rules.Store(r.base)
	for _, s := range o.Secrets {
		r.Learn(s)
	}
	return r
}

func newKey() []byte {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails: it would end the program
	return key
}

// WithKey returns a Redactor like r that makes placeholders with key.
func (r *Redactor) WithKey(key []byte) *Redactor {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Redactor{names: r.names, syntax: r.syntax, base: r.base, key: key, shortKey: newKey(), OmitUnsearched: r.OmitUnsearched}
	c.learnFound.Store(r.learnFound.Load())
	c.learned = append(c.learned, r.learned...)
	c.rules.Store(r.rules.Load())
	return c
}

// Omitting returns a Redactor like r for what leaves the machine: what the search
// for secrets cannot look into is left out. A recorder keeps it.
func (r *Redactor) Omitting() *Redactor {
	c := r.WithKey(r.key)
	c.OmitUnsearched = true
	return c
}

// LearnFound has each secret that is found anywhere looked for everywhere, not
// only those that a name gave away, as long as fewer than 512 are known.
func (r *Redactor) LearnFound() { r.learnFound.Store(true) }

// learnMatch remembers the secret of a match.
func (r *Redactor) learnMatch(m match.Match) {
	if !m.Learn {
		if !r.learnFound.Load() || m.Rule == match.Seen || m.Mask != nil {
			return
		}
		r.mu.Lock()
		full := len(r.learned) >= maxSecrets
		r.mu.Unlock()
		if full {
			return
		}
	}
	r.Learn(m.Secret)
}

// Learn has secret looked for everywhere from now on, also in base64, hex and
// percent-encoding, if it has 12 bytes to 64 KiB and is no placeholder. Of a long one, each
// piece is.
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

// learnPiece is Learn for what is short enough to be spelt in all ways.
func (r *Redactor) learnPiece(secret string) {
	if i := slices.Index(r.learned, secret); i >= 0 {
		r.learned = append(slices.Delete(r.learned, i, i+1), secret)
		return
	}
	rules, more := r.rules.Load(), []string{secret}
	r.learned = append(r.learned, secret)
	if len(r.learned) > maxSecrets {
		r.learned = slices.Delete(r.learned, 0, forgotten)
		rules, more = r.base, r.learned
	}
	r.rules.Store(rules.with(more...))
}

// A placeholder form is how a placeholder is spelt.
type form func(tag string, secretLen int) string

func bracketed(tag string, _ int) string { return "[redacted:" + tag + "]" }
func plain(tag string, _ int) string     { return "redacted-" + tag }

// sameLength pads with dots, which no shape of a secret takes for its own.
func sameLength(tag string, n int) string {
	p := plain(tag, n)
	if n <= len(p) {
		return p[:n]
	}
	return p + strings.Repeat(".", n-len(p))
}

// tag returns the eight digits of a secret's placeholder.
func (r *Redactor) tag(secret string) string {
	key := r.key
	if len(secret) < match.ShortSecret {
		key = r.shortKey
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(secret))
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

// isPlaceholder reports whether s is one already, as in a request that is
// replayed from a capture.
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
	return isTag(strings.TrimRight(tag, ".")) || len(tag) < 8 && charset.IsHex(tag)
}

func isTag(s string) bool {
	return len(s) == 8 && charset.IsHex(s)
}

// placeholder returns what stands for secret.
func (r *Redactor) placeholder(secret string, f form) string {
	if isPlaceholder(secret) {
		return secret
	}
	return f(r.tag(secret), len(secret))
}

// fill returns n bytes in place of a secret, or of the rest of one.
func fill(r *Redactor, secret string, n int) string {
	switch {
	case secret == "":
		return strings.Repeat(".", n)
	case len(secret) == n && isPlaceholder(secret):
		return secret
	}
	return sameLength(r.tag(secret), n)
}
