package redact

import "strings"

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

// matchState is what can be said of a position.
type matchState uint8

const (
	nothing matchState = iota
	found
	undecided // more bytes are needed
)

// A mask covers what follows a secret that was cut off: one that is too long
// to be held, or that was not waited for any longer.
type mask struct {
	literal string   // the rest of a known one, or
	chars   *charset // a run of these, or
	until   string   // everything up to one of these
}

// covers reports whether c, the next byte, belongs to the secret still.
func (m *mask) covers(c byte) bool {
	switch {
	case m.until != "":
		return strings.IndexByte(m.until, c) < 0
	case m.chars != nil:
		return m.chars.has(c)
	case m.literal != "" && m.literal[0] == c:
		m.literal = m.literal[1:]
		return true
	}
	return false
}
