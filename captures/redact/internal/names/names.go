// Package names says which names tell that what they name is a secret: names of parameters,
// of members of JSON, and of header fields.
//
// A Names has the known names and those that a user adds. Package redact asks it for header
// fields and parameters of URLs, package syntax for all else.
package names

import (
	"strings"

	"unwire/captures/redact/internal/charset"
)

// MaxLen bounds the name of a member or a parameter, in bytes.
const MaxLen = 64

// A Kind says what a name tells.
type Kind uint8

// Kinds of names.
const (
	Other     Kind = iota
	Secret         // its value is a secret
	Perhaps        // it is, if it looks like one
	Parameter      // it is in a URL; elsewhere the name means other things

	// PerhapsParameter is one in a URL, if its value looks like a token.
	PerhapsParameter

	// PerhapsKey is one if its value looks like a key of letters and digits at random.
	PerhapsKey

	// parameterOrKey is one in a URL, and elsewhere if its value looks like a key.
	parameterOrKey
)

// Fits reports whether a value in a body is a secret, by the name's kind.
func (k Kind) Fits(value []byte) bool {
	switch k {
	case Secret:
		return len(value) > 0
	case Perhaps:
		return charset.LooksRandom(value)
	case PerhapsKey, parameterOrKey:
		return charset.LooksKey(value)
	}
	return false
}

// MayTell reports whether the value of a member of this kind may be a secret.
func (k Kind) MayTell() bool {
	return k == Secret || k == Perhaps || k == PerhapsKey || k == parameterOrKey
}

// FitsParameter is Fits for the value of a parameter, whose names tell more.
func (k Kind) FitsParameter(value []byte) bool {
	if k == Parameter || k == PerhapsParameter || k == parameterOrKey {
		return charset.LooksRandom(value)
	}
	return k.Fits(value)
}

// Names are the names of secrets.
type Names struct {
	headers, added map[string]bool // in lower case; normalised

	// ends has a bit for the hash of what a name of a secret ends with: most names need no
	// other look.
	ends [1 << 7]uint64
}

// New returns the known names, with further header fields and names of parameters and members.
func New(headers, added []string) *Names {
	n := &Names{headers: make(map[string]bool), added: make(map[string]bool)}
	for _, h := range headers {
		n.headers[strings.ToLower(h)] = true
	}
	for name := range wholeNames {
		n.addEnd(name)
	}
	for _, f := range families {
		for _, start := range f.names {
			n.addEnd(start + f.end)
			n.addEnd(start + f.end + "s")
		}
	}
	for i := range endings {
		n.addEnd(endings[i].end)
		n.addEnd(endings[i].end + "s")
	}
	for _, a := range added {
		a = string(appendNormal(nil, a))
		n.added[a] = true
		n.addEnd(a)
	}
	return n
}

func (n *Names) addEnd(name string) {
	h := hashEnd([]byte(name))
	n.ends[h>>6] |= 1 << (h & 63)
}

// hashEnd returns a hash of the last five letters of a name, normalised, or of what it has of
// them behind a bracket or a colon.
func hashEnd(name []byte) uint32 {
	h, found := uint32(0), 0
	for i := len(name) - 1; i >= 0 && found < 5; i-- {
		c := name[i]
		switch c {
		case '_', '-', '.', ' ', ']':
			continue
		case '[', ':', '$', '/':
			found = 5
			continue
		}
		h = h<<5 | uint32(c&31)
		found++
	}
	return h * 0x9e3779b1 >> 19
}

// mayEnd reports whether a name of a secret may end as name does.
func (n *Names) mayEnd(name []byte) bool {
	h := hashEnd(name)
	return n.ends[h>>6]&(1<<(h&63)) != 0 || endsInKey(name)
}

// endsInKey reports whether a name ends in "key" or "keys", in any case.
func endsInKey(name []byte) bool {
	n := len(name)
	if n > 0 && name[n-1]|0x20 == 's' {
		n--
	}
	return n >= 3 && name[n-1]|0x20 == 'y' && name[n-2]|0x20 == 'e' && name[n-3]|0x20 == 'k'
}

// Kind classifies a name as it is spelt, without allocating: bodies have many. Of names such
// as user[password] and ns:password, the last part may tell.
func (n *Names) Kind(name []byte) Kind {
	if !n.mayEnd(name) {
		return Other
	}
	var buf [MaxLen + 1]byte
	normal := appendNormal(buf[:0], name)
	kind := n.whole(string(normal))
	if kind != Other || len(normal) < 4 {
		return kind
	}
	for i := len(normal) - 1; i >= 0; i-- {
		if c := normal[i]; c == '[' || c == ':' || c == '$' || c == '/' {
			return n.whole(strings.TrimRight(string(normal[i+1:]), "]"))
		}
	}
	return Other
}

// whole classifies a normalised name.
func (n *Names) whole(name string) Kind {
	if len(n.added) > 0 && n.added[name] {
		return Secret
	}
	if kind, ok := wholeNames[name]; ok {
		return kind
	}
	if len(name) >= 6 && (inFamily(name) || name[len(name)-1] == 's' && inFamily(name[:len(name)-1])) {
		return Secret
	}
	if keys, ok := strings.CutSuffix(name, "keys"); ok {
		name = keys + "key"
	}
	return byEnding(name)
}

// inFamily reports whether a normalised name ends as those of secrets do.
func inFamily(name string) bool {
	for i := range families {
		family := &families[i]
		start, ok := strings.CutSuffix(name, family.end)
		for i := 0; ok && i < len(family.names); i++ {
			if strings.HasSuffix(start, family.names[i]) {
				return true
			}
		}
	}
	return false
}

// appendNormal folds the ways a name is spelt: accessToken, access_token,
// Access-Token.
func appendNormal[T string | []byte](dst []byte, s T) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_' || c == '-' || c == '.' || c == ' ':
		case c >= 'A' && c <= 'Z':
			dst = append(dst, c+'a'-'A')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
