package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// dsnAt finds the password in the address of a database that is no URL, at the colon at index i: user:password@tcp(host) of
// Go, and thin:user/password@//host of Oracle. final is as for Finder.At.
func dsnAt(b []byte, i int, final bool) (match.Match, match.State) {
	from := i + 1
	n := from
	for n < len(b) && n-from < maxUser && (charset.User.Has(b[n]) || b[n] == '/' || b[n] == '#' || b[n] == '^') {
		n++
	}
	switch {
	case n == from || n-from == maxUser:
		return match.Match{}, match.Nothing
	case n == len(b):
		return match.Pending(final)
	case b[n] != '@':
		return match.Match{}, match.Nothing
	}
	for _, protocol := range [...]string{"tcp(", "udp(", "unix(", "tcp6(", "//"} {
		_, v := expect(b, n+1, protocol)
		if v == match.Undecided {
			return match.Pending(final)
		}
		if v == match.Nothing {
			continue
		}
		if protocol == "//" {
			slash := bytes.IndexByte(b[from:n], '/')
			if slash <= 0 {
				break
			}
			from += slash + 1
		}
		return match.Match{Start: from, End: n, Secret: string(b[from:n]), Rule: match.URLPassword}, match.Found
	}
	return match.Match{}, match.Nothing
}
