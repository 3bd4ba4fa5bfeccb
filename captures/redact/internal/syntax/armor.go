package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// privateKey finds the body of a PEM private key whose "-----BEGIN" is at index i. Line breaks may be escaped.
// final and flush are as for Finder.At.
func privateKey(b []byte, i int, final, flush bool) (match.Match, match.State) {
	const begin, kind, end = "-----BEGIN ", "PRIVATE KEY-----", "-----END"
	rest := b[i:]
	if n := min(len(rest), len(begin)); string(rest[:n]) != begin[:n] {
		return match.Match{}, match.Nothing
	}
	// The kind's name has one or two words: RSA, EC, OPENSSH, ENCRYPTED.
	header := bytes.Index(rest[:min(len(rest), 48)], []byte(kind))
	if header < 0 {
		if final || len(rest) >= 48 {
			return match.Match{}, match.Nothing
		}
		return match.Match{}, match.Undecided
	}
	from := header + len(kind)
	body := rest[from:min(len(rest), from+match.MaxSecret)]
	stop := bytes.Index(body, []byte(end))
	if stop < 0 {
		if !final && len(body) < match.MaxSecret {
			return match.Match{}, match.Undecided
		}
		stop = len(body)
	}
	if stop == 0 {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: i + from, End: i + from + stop, Secret: string(body[:stop]), Rule: match.PrivateKey}
	if flush && stop == len(body) {
		m.Mask = &match.Mask{Chars: charset.Base64}
	}
	return m, match.Found
}

// userinfoAt finds the password in scheme://user:password@host; i is the index of the first colon. final is as
// for Finder.At.
func userinfoAt(b []byte, i int, final bool) (match.Match, match.State) {
	rest := b[i:]
	if n := min(len(rest), 3); string(rest[:n]) != "://"[:n] {
		return match.Match{}, match.Nothing
	} else if n < 3 {
		return match.Pending(final)
	}

	// The user, up to a colon, then the password, up to an @.
	n := 3
	for n < len(rest) && n < 256 && charset.User.Has(rest[n]) {
		n++
	}
	if n == len(rest) && n < 256 {
		return match.Pending(final)
	}
	if n == 256 || rest[n] != ':' {
		return match.Match{}, match.Nothing
	}
	n++
	from := n
	for n < len(rest) && n < 512 && (charset.User.Has(rest[n]) || rest[n] == ':') {
		n++
	}
	if n == len(rest) && n < 512 {
		return match.Pending(final)
	}
	if n == 512 || rest[n] != '@' || n == from {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: i + from, End: i + n, Secret: string(rest[from:n]), Rule: match.URLPassword}, match.Found
}
