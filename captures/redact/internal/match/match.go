// Package match has the result of searching one position for a secret. Packages keyshape and syntax return a
// Match and a State for a position; the scanner of package redact calls them at each position at which a secret
// may begin.
package match

import (
	"strings"

	"unwire/captures/redact/internal/charset"
)

// MaxSecret is the greatest length of a secret in bytes, and so limits the bytes that are held back because a
// secret may continue. A longer secret is replaced by means of a Mask.
const MaxSecret = 16 << 10

// ShortSecret is the length in bytes below which a secret could be found by guessing, and the same value may
// occur elsewhere by chance.
const ShortSecret = 16

// A Rule names the way in which a secret was recognised.
type Rule string

// Rules by which a secret is recognised.
const (
	// Header means that the secret is the value of a header field with a known name.
	Header Rule = "header"

	// Parameter means that the name of a URL or form parameter, or of an assignment, denotes a secret.
	Parameter Rule = "parameter"

	// Member means that the name of a JSON member or XML element denotes a secret.
	Member Rule = "member"

	// Shape means that the text has the syntax of a key or token of a known issuer.
	Shape Rule = "key-shape"

	// PrivateKey means that the text is the body of a PEM private key.
	PrivateKey Rule = "private-key"
	// URLPassword means that the text is a password before the host of a URL.
	URLPassword Rule = "url-password"

	// Seen means that the same value was recognised as a secret before, or is configured.
	Seen Rule = "seen"
)

// A Match is a secret that was found at a position.
type Match struct {
	// Start is the offset of the secret's first byte in the searched bytes.
	Start int
	// End is the offset after the secret's last byte in the searched bytes.
	End int
	// Secret is the text of the secret.
	Secret string

	// Learn means that the secret was recognised by a name, so the same value must be replaced in all other
	// places.
	Learn bool

	// IsNumber means that the secret is a number of JSON without quotes, which digits must replace.
	IsNumber bool

	// Mask, if set, describes the bytes after End that belong to the secret too.
	Mask *Mask

	// Rule is the rule that recognised the secret.
	Rule Rule

	// Name is the name of the parameter or member, or the prefix of a key's shape.
	Name string
}

// A State is the result of searching for a secret at one position: found, nothing, or undecided because more
// bytes are needed.
type State uint8

// Results of searching one position.
const (
	Nothing State = iota
	Found
	// Undecided means that more bytes are needed.
	Undecided
)

// Pending returns the result of a search that needs more bytes: Undecided, or Nothing if final is set because
// no more bytes follow.
func Pending(final bool) (Match, State) {
	if final {
		return Match{}, Nothing
	}
	return Match{}, Undecided
}

// A Mask describes which further bytes belong to a secret that was replaced before its end was received:
// because it is too long to be held back, or because the scanner could not wait. One field is set.
type Mask struct {
	// Literal is the rest of a known secret.
	Literal string
	// Chars are the characters of which the rest consists.
	Chars *charset.Set
	// Until are the characters that end the secret.
	Until string
}

// Covers reports whether c, the next byte, still belongs to the secret. It advances Literal.
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
