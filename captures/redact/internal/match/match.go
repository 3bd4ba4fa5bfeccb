// Package match says what was found at a position of the bytes that are searched for secrets.
// Packages keyshape and syntax return a Match with its State; the scanner of package redact
// asks them for each position at which something may begin.
package match

import (
	"strings"

	"unwire/captures/redact/internal/charset"
)

// MaxSecret bounds the run of bytes that is taken for one secret, and so what is held back
// while it may still be one.
const MaxSecret = 16 << 10

// ShortSecret is the length in bytes below which a secret could be guessed, and its value
// occurs by chance.
const ShortSecret = 16

// A Rule says by what a secret was found.
type Rule string

// Rules of package redact.
const (
	Header Rule = "header" // the header field's name tells

	// The name of a parameter of a URL or a form does, or that of an assignment.
	Parameter Rule = "parameter"

	Member Rule = "member" // the name of a JSON member or an XML element does

	// It looks like a key or a token of some issuer.
	Shape Rule = "key-shape"

	PrivateKey  Rule = "private-key"  // the body of a PEM private key
	URLPassword Rule = "url-password" // it stands before the host of a URL

	// A header, a parameter or a member gave it away elsewhere, or it was named.
	Seen Rule = "seen"
)

// A Match is a secret that was found: the bytes to replace and the secret they spell.
type Match struct {
	Start, End int
	Secret     string

	// Learn says that it was named: look for it elsewhere too.
	Learn bool

	// Mask, if set, covers what follows and belongs to it too.
	Mask *Mask

	Rule Rule

	// Name is that of the parameter or member; of a shape, what it begins with.
	Name string
}

// A State is what can be said of a position.
type State uint8

// States of a position.
const (
	Nothing State = iota
	Found
	Undecided // more bytes are needed
)

// Pending is the result where bytes are missing: Undecided, or Nothing if none follow.
func Pending(final bool) (Match, State) {
	if final {
		return Match{}, Nothing
	}
	return Match{}, Undecided
}

// A Mask covers what follows a secret that was cut off: one that is too long
// to be held, or that was not waited for any longer.
type Mask struct {
	Literal string       // the rest of a known one, or
	Chars   *charset.Set // a run of these, or
	Until   string       // everything up to one of these
}

// Covers reports whether c, the next byte, belongs to the secret still.
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
