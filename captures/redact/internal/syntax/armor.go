package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// privateKey finds the body of a PEM private key whose "-----BEGIN" is at index i. Line breaks may be escaped.
// final and flush are as for Finder.At.
func privateKey(b []byte, i int, final, flush bool) (match.Match, match.State) {
	const begin, close, end = "-----BEGIN ", "-----", "-----END"
	rest := b[i:]
	if n := min(len(rest), len(begin)); string(rest[:n]) != begin[:n] {
		return match.Match{}, match.Nothing
	} else if n < len(begin) {
		return match.Pending(final)
	}
	// The label names the kind: RSA, EC, OPENSSH or ENCRYPTED PRIVATE KEY, PGP PRIVATE KEY BLOCK, OpenVPN Static key.
	const longest = 48
	label := rest[len(begin):min(len(rest), longest)]
	stop := bytes.Index(label, []byte(close))
	if stop < 0 {
		if final || len(rest) >= longest {
			return match.Match{}, match.Nothing
		}
		return match.Match{}, match.Undecided
	}
	if !bytes.Contains(label[:stop], []byte("PRIVATE KEY")) && !bytes.Contains(label[:stop], []byte("Static key")) {
		return match.Match{}, match.Nothing
	}
	from := len(begin) + stop + len(close)
	body := rest[from:min(len(rest), from+match.MaxSecret)]
	stop = bytes.Index(body, []byte(end))
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

// puttyLines, after the word "Private", precedes the number of the lines of a private key in a file of PuTTY, and puttyMAC
// follows these lines.
const (
	puttyLines = "-Lines: "
	puttyMAC   = "Private-MAC"
)

// puttyKey finds the lines of a private key in a file of PuTTY, whose number puttyLines at index i announces. final and flush
// are as for Finder.At.
func puttyKey(b []byte, i int, final, flush bool) (match.Match, match.State) {
	p, v := expect(b, i, puttyLines)
	if v != match.Found || !bytes.HasSuffix(b[:i], []byte("Private")) {
		return orNothing(v, final)
	}
	body := b[p:min(len(b), p+match.MaxSecret)]
	from := 0
	for from < len(body) && (charset.IsHexDigit(body[from]) || isSpace(body[from]) || body[from] == '\\' || body[from] == 'r' || body[from] == 'n') && from < 8 {
		from++
		if c := body[from-1]; c == '\n' || c == 'n' {
			break
		}
	}
	stop := bytes.Index(body, []byte(puttyMAC))
	if stop < 0 {
		if !final && len(body) < match.MaxSecret {
			return match.Match{}, match.Undecided
		}
		stop = len(body)
	}
	if stop <= from {
		return match.Match{}, match.Nothing
	}
	m := match.Match{Start: p + from, End: p + stop, Secret: string(body[from:stop]), Rule: match.PrivateKey}
	if flush && stop == len(body) {
		m.Mask = &match.Mask{Chars: charset.Base64}
	}
	return m, match.Found
}
