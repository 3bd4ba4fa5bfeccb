// Package syntax recognizes secrets by the names before or around them: in members and lists of JSON,
// parameters, lines of configuration files, XML elements and parts of forms. It also recognizes private keys,
// and passwords in URLs.
//
// The scanner of package redact calls a Finder for one position at a time, at a byte of Signs. A Finder does not
// parse whole documents, because a body may be truncated, or text may surround the JSON.
package syntax

import (
	"slices"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
	"unwire/captures/redact/internal/textrun"
)

const (
	// Signs are the bytes, such as ':' and '=', at which a Finder may find a secret, whatever follows. At a
	// colon or a dash it also finds secrets that begin with one of Starts.
	Signs = textrun.Signs

	// Context is the greatest number of bytes before a position that a Finder examines.
	Context = farBack + 2*names.MaxLen
)

// Starts returns fixed texts with which a secret may begin: those before a URL's user information, in a
// private key, in an entry of .netrc, in a constant of PHP, in a statement of SQL, in percent-encoded text, in a command,
// and in a record of some files, and the words that only a space separates from a secret.
func Starts() []string {
	return slices.Concat([]string{"://", "-----BEGIN ", puttyLines, "machine ", "define(", "WIFI:", imapLogin}, sqlStarts, encodedSigns,
		spacedWords.list, headerCommands.list, cookieFlags.list, codeSigns.list, commands.list)
}

// Pairs describes which bytes next to a sign make a secret possible: it calls before with each sign and each
// byte that may precede it, and after with each byte that may follow it. Callers build a filter from this; most
// signs are in numbers, markup and random bytes, and are excluded.
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

// mayPrecede reports whether a secret may follow sign, one of the punctuation bytes in Signs (such as the '=' between a
// name and its value), if the byte directly before sign is c.
func mayPrecede(sign, c byte) bool {
	switch sign {
	case '"', '&', '?':
		return true
	case '>':
		return c < 0x80 && charset.Bare.Has(c) || charset.BeforeSign.Has(c)
	}
	return charset.BeforeSign.Has(c)
}

// mayFollow reports whether a secret may follow sign, one of the punctuation bytes in Signs (such as the '=' between a
// name and its value), if the byte directly after sign is c.
func mayFollow(sign, c byte) bool {
	switch sign {
	case '"':
		return charset.Member.Has(c) || charset.Token.Has(c) || c == '\\'
	case '&', '?':
		return charset.Name.Has(c) || c == '%'
	case '>':
		return c >= ' ' && c < 0x80 || isSpace(c)
	}
	return c < 0x80 && charset.Bare.Has(c) || isSpace(c) || c == '"' || c == '\'' || c == '`' || c == '\\' || sign == '=' && c == '>'
}

// MayBegin reports whether At may find a secret at the sign at index i of b. It examines up to four bytes on
// either side, which b must have.
func MayBegin(b []byte, i int) bool {
	switch b[i] {
	case '"':
		return isBeforeItem(b[i-1]) || b[i+2] == '"' && (b[i+1] == 'd' || b[i+1] == 'k') || inName(b[i+1]) && inName(b[i+2]) && (inName(b[i+3]) || b[i+3] == '"')
	case '&', '?':
		return b[i+1] == '%' && b[i+2] >= '8' || charset.Name.Has(b[i+1]) && charset.Name.Has(b[i+2]) && (charset.Name.Has(b[i+3]) || b[i+3] == '=')
	case ':':
		return b[i+1] == '/' && b[i+2] == '/' || maySign(b, i)
	}
	return maySign(b, i)
}

// isBeforeItem reports whether c may precede an item of a JSON list, or escapes a quote.
func isBeforeItem(c byte) bool { return c == '[' || c == '(' || c == ',' || c == '\\' || isSpace(c) }

// inName reports whether c may occur in the name of a JSON member, or begin an escape in it.
func inName(c byte) bool { return charset.Member.Has(c) || c == '\\' }

// A Finder finds secrets in text by the names before them, in JSON, XML, forms, URLs and assignments.
type Finder struct {
	// names recognises the names that denote secrets.
	names *names.Names

	// whole means that a token that is nothing but a whole body or message is a secret.
	whole bool
}

// New returns a Finder that classifies names with n.
func New(n *names.Names) *Finder { return &Finder{names: n, whole: n.AreIssuing()} }

// NewForMessages returns a Finder for the messages of WebSockets, which classifies names with n. A message that is nothing
// but a token authenticates its sender.
func NewForMessages(n *names.Names) *Finder { return &Finder{names: n, whole: true} }

// IsIssuing reports whether the Finder is for the bodies of calls that issue secrets.
func (f *Finder) IsIssuing() bool { return f.names.AreIssuing() }

// FindsWhole reports whether Whole may find a secret: in the bodies of calls that issue secrets, and in messages.
func (f *Finder) FindsWhole() bool { return f.whole }

// Whole finds the token of which a whole body, whose beginning is b, consists, with or without quotes. It does so only if
// FindsWhole reports true. final means that no bytes follow b.
func (f *Finder) Whole(b []byte, final bool) (match.Match, match.State) {
	if !f.whole || len(b) == 0 {
		return match.Match{}, match.Nothing
	}
	from := 0
	if b[0] == '"' {
		from++
	}
	end := from
	for end < len(b) && end-from <= maxWhole && charset.Token.Has(b[end]) {
		end++
	}
	if end-from > maxWhole || end == 0 || len(b) > 2*maxWhole {
		return match.Match{}, match.Nothing
	}
	rest := end + from
	if from > 0 && end < len(b) && b[end] != '"' {
		return match.Match{}, match.Nothing
	}
	for rest = min(rest, len(b)); rest < len(b) && isSpace(b[rest]); {
		rest++
	}
	switch {
	case rest < len(b):
		return match.Match{}, match.Nothing
	case !final:
		return match.Match{}, match.Undecided
	case !charset.LooksKey(b[from:end]) && (end-from >= match.ShortSecret || !charset.LooksToken(b[from:end])):
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: from, End: end, Secret: string(b[from:end]), Learn: true, Rule: match.Member, Name: "body"}, match.Found
}

// maxWhole is the greatest length of a token that is a whole body, in bytes.
const maxWhole = 1 << 10

// At searches for secrets at index i of b, and calls consider with each possible match. final means that no
// bytes follow b. flush means that the caller cannot wait for more bytes: an incomplete secret is then a match.
func (f *Finder) At(b []byte, i int, final, flush bool, consider func(match.Match, match.State)) {
	switch b[i] {
	case '"':
		consider(f.member(b, i, final, flush))
		if isKeyMember(b, i) {
			consider(privateJWK(b, i, final))
		}
	case '&', '?':
		consider(f.Parameter(b, i+1, final, flush))
	case ':':
		consider(urlAt(b, i, final))
		consider(dsnAt(b, i, final))
		consider(pgpassAt(b, i, final))
		consider(f.assignment(b, i, final, flush))
	case '=', '>':
		consider(f.assignment(b, i, final, flush))
	case '%':
		consider(f.encodedAt(b, i, final, flush))
	default:
		f.wordAt(b, i, final, flush, consider)
	}
}

// wordAt implements At for a secret that begins with one of Starts.
func (f *Finder) wordAt(b []byte, i int, final, flush bool, consider func(match.Match, match.State)) {
	switch b[i] {
	case '-':
		consider(privateKey(b, i, final, flush))
		consider(puttyKey(b, i, final, flush))
	case 'm':
		consider(netrcAt(b, i, final))
	case 'd':
		consider(f.defineAt(b, i, final))
	case 'p', 'P', 'i', 'I':
		consider(sqlAt(b, i, final, flush))
	case 'c', 'U':
		consider(codeAt(b, i, final))
	case 'W':
		consider(wifiAt(b, i, final))
	case 'L':
		consider(loginAt(b, i, final))
	case 'T', 'F':
		consider(cookieLineAt(b, i, final))
	}
	consider(spacedAt(f.names, b, i, final, flush))
	consider(headerCommandAt(f.names, b, i, final, flush))
	consider(flagAt(b, i, final, flush))
}

// Quoted returns the number of bytes to skip from the opening quote of the JSON string at index i if At need
// not examine the string, because it is neither a secret nor the name of one; otherwise 0. It is a fast path:
// JSON contains so many quotes that At would dominate the search.
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
		if f.mayTell(name) || len(name) == 1 && isKeyMember(b, i) {
			return 0
		}
		return p + 2 - i
	}
	if f.inList(b, i) {
		return 0
	}
	return f.quotedOther(b, i, p)
}

// quotedOther implements Quoted for a string that is no item of a list. p is the index at which the string ends
// or has a character that names do not have.
func (f *Finder) quotedOther(b []byte, i, p int) int {
	name := b[i+1 : p]
	switch {
	case len(name) < 2:
		if len(name) == 1 && isKeyMember(b, i) {
			return 0
		}
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

// mayTell reports whether a JSON member of this name may contain a secret.
func (f *Finder) mayTell(name []byte) bool {
	kind := f.names.Kind(name)
	return kind.MayTell() || f.IsIssuing() || isOwnedName(name) || siblingsOf(name) != nil
}
