// Package match has the result of searching one position for a secret. Packages keyshape and syntax return a
// Match and a State for a position; the scanner of package redact calls them at each position at which a secret
// may begin.
package match

import (
	"strings"

	"unwire/captures/redact/internal/charset"
)

// MaxSecret limits the bytes that are regarded as one secret, and so the bytes that are held while a secret may
// continue.
const MaxSecret = 16 << 10

// ShortSecret is the length in bytes below which a secret could be found by guessing, and its value occurs by
// chance.
const ShortSecret = 16

// A Rule names the way in which a secret was recognised.
type Rule string

// Rules of package redact.
const (
	Header Rule = "header" // the header field's name tells

	// The name of a parameter of a URL or a form does, or that of an assignment.
	Parameter Rule = "parameter"

	Member Rule = "member" // the name of a JSON member or an XML element does

	// Shape means that the text has the syntax of a key or token of a known issuer.
	Shape Rule = "key-shape"

	PrivateKey  Rule = "private-key"  // the body of a PEM private key
	URLPassword Rule = "url-password" // it stands before the host of a URL

	// A header, a parameter or a member gave it away elsewhere, or it was named.
	Seen Rule = "seen"
)

// A Match is a secret that was found at a position.
type Match struct {
	// Start and End are the offsets of the secret in the searched bytes, and Secret is its text.
	Start, End int
	Secret     string

	// Learn means that the secret was recognised by a name, so that the same value is then searched for
	// in all other places.
	Learn bool

	// Mask, if set, describes the bytes after End that belong to the secret too.
	Mask *Mask

	// Rule is the rule that recognised the secret.
	Rule Rule

	// Name is the name of the parameter or member, or the prefix of a key's shape.
	Name string
}

// A State is the result of searching one position: found, nothing, or undecided because more bytes are
// needed.
type State uint8

// States of a position.
const (
	Nothing State = iota
	Found
	Undecided // more bytes are needed
)

// Pending returns the result if bytes are missing: Undecided, or Nothing if none follow.
func Pending(final bool) (Match, State) {
	if final {
		return Match{}, Nothing
	}
	return Match{}, Undecided
}

// A Mask describes the bytes that continue a secret whose end was not received: one that is too long to be held,
// or for which the scanner must not wait.
type Mask struct {
	Literal string       // the rest of a known one, or
	Chars   *charset.Set // a run of these, or
	Until   string       // everything up to one of these
}

// Covers reports whether c, the next byte, still belongs to the long secret that is being replaced.
func (m *Mask) Covers(c byte) bool {
	switch {
	case m.Until != "":
		return strings.IndexByte(m.Until, c) < 0
	case m.Chars != nil:
		return m.Chars.Has(c)
	case m.Literal != "" && m.Literal[0] == c:
		m.Literal = m.Literal[1:]
		return true
	}
	return false
}
