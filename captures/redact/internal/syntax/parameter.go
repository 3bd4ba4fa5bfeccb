package syntax

import (
	"bytes"
	"net/url"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// Parameter finds the value of name=value in a form, or in a URL within a text, if the name denotes a secret.
// from is the index of the name. final and flush are as for At.
func (f *Finder) Parameter(b []byte, from int, final, flush bool) (match.Match, match.State) {
	p := from
	for p < len(b) && p-from <= names.MaxLen && (charset.Name.Has(b[p]) || b[p] == '%' || b[p] == '[' || b[p] == ']') {
		p++
	}
	if p-from > names.MaxLen {
		return match.Match{}, match.Nothing
	}
	if p == len(b) {
		return match.Pending(final)
	}
	if b[p] != '=' || p-from < 2 {
		return match.Match{}, match.Nothing
	}
	name := decodedName(b[from:p])
	kind := f.names.Kind(name)
	if needsSiblings(kind, name) {
		switch v := withSiblings(b, from, p+1, parameterEnd(b, p+1), name, final, flush); v {
		case match.Undecided:
			return match.Match{}, v
		case match.Found:
			kind = names.Secret
		}
	}
	if kind == names.Other {
		return match.Match{}, match.Nothing
	}
	m, v := parameterValue(b, p+1, kind, final, flush)
	if v == match.Found {
		m.Rule, m.Name = match.Parameter, string(b[from:p])
	}
	return m, v
}

// decodedName returns the name of a parameter without its percent-encoding: user%5Bpassword%5D becomes user[password].
func decodedName(name []byte) []byte {
	if bytes.IndexByte(name, '%') < 0 {
		return name
	}
	if plain, err := url.PathUnescape(string(name)); err == nil {
		return []byte(plain)
	}
	return name
}

// parameterEnd returns the index at which the value of a parameter that begins at index from ends, or after
// match.MaxSecret bytes.
func parameterEnd(b []byte, from int) int {
	end := from
	for end < len(b) && end-from < match.MaxSecret && charset.Token.Has(b[end]) {
		end++
	}
	return end
}

// parameterValue finds the parameter's value that begins at index from, if it is a secret by the kind of its
// name. final and flush are as for Finder.At.
func parameterValue(b []byte, from int, kind names.Kind, final, flush bool) (match.Match, match.State) {
	end := parameterEnd(b, from)
	if end == len(b) && end-from < match.MaxSecret && !final {
		return match.Match{}, match.Undecided
	}
	value := b[from:end]
	if !kind.FitsParameter(value) {
		return match.Match{}, match.Nothing
	}

	m := match.Match{Start: from, End: end, Secret: string(value), Learn: kind == names.Secret && len(value) >= match.ShortSecret}
	if end-from >= match.MaxSecret || end == len(b) && flush {
		m.Mask = &match.Mask{Chars: charset.Token}
		m.Learn = false
	}
	return m, match.Found
}
