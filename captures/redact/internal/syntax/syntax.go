// Package syntax finds secrets by the names that stand around them: members and lists of JSON,
// parameters, lines of configurations, elements of XML, parts of forms, private keys and
// passwords in URLs.
//
// A Finder is asked for one position at a time, at a byte of Signs, by the scanner of package
// redact. It needs no whole document: a body may be cut off, or text around JSON.
package syntax

import (
	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

const (
	// Signs are the bytes at which a Finder finds something, whatever follows. At a colon
	// and at a dash it finds what begins with Starts too.
	Signs = "\"&?=:>"

	// Context is how many bytes a Finder looks back at most.
	Context = lookBack + 2*names.MaxLen

	// lookBack is how far the search for the name of a value goes back, in bytes.
	lookBack = 160
)

// Starts returns what a URL's authority and a private key begin with.
func Starts() []string { return []string{"://", "---"} }

// Pairs calls before with all bytes that may stand before a sign at which something may be
// found, and after with all that may follow it: most signs stand in numbers, in markup, and in
// random bytes.
func Pairs(before, after func(sign, other byte)) {
	for i := range len(Signs) {
		c := Signs[i]
		for o := range 256 {
			other := byte(o)
			if mayPrecede(c, other) {
				before(c, other)
			}
			if mayFollow(c, other) {
				after(c, other)
			}
		}
	}
}

func mayPrecede(sign, c byte) bool {
	switch sign {
	case '"', '&', '?':
		return true
	case '>':
		return c < 0x80 && charset.Bare.Has(c) || charset.BeforeSign.Has(c)
	}
	return charset.BeforeSign.Has(c)
}

func mayFollow(sign, c byte) bool {
	switch sign {
	case '"':
		return charset.Member.Has(c) || charset.Token.Has(c) || c == '\\'
	case '&', '?':
		return charset.Name.Has(c)
	case '>':
		return c >= ' ' && c < 0x80 || isSpace(c)
	}
	return c < 0x80 && charset.Bare.Has(c) || isSpace(c) || c == '"' || c == '\'' || c == '`' || c == '\\'
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// A Finder finds secrets by names.
type Finder struct{ names *names.Names }

// New returns a Finder that asks n what names tell.
func New(n *names.Names) *Finder { return &Finder{n} }

// At calls consider with what may be at position i of b. Final says that no bytes follow;
// flush, that none can be waited for: what has been seen of a secret is taken for it.
func (f *Finder) At(b []byte, i int, final, flush bool, consider func(match.Match, match.State)) {
	switch b[i] {
	case '"':
		consider(f.member(b, i, final, flush))
	case '&', '?':
		consider(f.Parameter(b, i+1, final, flush))
	case ':':
		consider(userinfoAt(b, i, final))
		consider(f.assignment(b, i, final, flush))
	case '=', '>':
		consider(f.assignment(b, i, final, flush))
	case '-':
		consider(privateKey(b, i, final, flush))
	}
}

// Quoted returns how many bytes from the quote at position i on belong to a string that is no
// secret and the name of none, 0 if At has to look at it. JSON has so many quotes that At
// would take longer for them than for all else.
func (f *Finder) Quoted(b []byte, i int) int {
	p := i + 1
	for p < len(b) && p-i <= names.MaxLen && charset.Member.Has(b[p]) {
		p++
	}
	if p+1 >= len(b) {
		return 0 // the name goes on
	}
	name := b[i+1 : p]
	if b[p] == '"' && b[p+1] == ':' {
		if f.mayTell(name) {
			return 0
		}
		return p + 2 - i
	}
	if f.inList(b, i) {
		return 0
	}
	return f.quotedOther(b, i, p)
}

// quotedOther is Quoted for a string that is no item of a list and ends, or has another byte
// than names have, at p.
func (f *Finder) quotedOther(b []byte, i, p int) int {
	name := b[i+1 : p]
	switch {
	case len(name) < 2:
		return 1
	case b[p] == '"' && (b[p+1] == ',' || b[p+1] == ']' || b[p+1] == '}'):
		return p - i
	case b[p] == '\\':
		if b[p+1] == 'u' || b[p+1] == '/' {
			return 0
		}
	case b[p] != '"':
		return 1
	}
	if f.mayTell(name) {
		return 0
	}
	return p - i
}

// mayTell reports whether a member of this name may hold a secret.
func (f *Finder) mayTell(name []byte) bool {
	kind := f.names.Kind(name)
	return kind.MayTell() || isOwnedName(name)
}
