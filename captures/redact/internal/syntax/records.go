package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// cookieFlags are the values of the second field of a line in a file of cookies, with the tab after it.
var cookieFlags = textsOf("TRUE\t", "FALSE\t")

// maxRecord limits a line with a record, in bytes.
const maxRecord = 1 << 10

// cookieLineAt finds the value in a line of a file of cookies, whose second field begins at index i: domain, flag, path,
// flag, time, name and value, separated by tabs. final is as for Finder.At.
//
// Source: https://curl.se/docs/http-cookies.html
func cookieLineAt(b []byte, i int, final bool) (match.Match, match.State) {
	switch _, v := cookieFlags.firstOf(b[i:]); {
	case v != match.Found:
		return orNothing(v, final)
	case i == 0 || b[i-1] != '\t':
		return match.Match{}, match.Nothing
	}
	rest := b[i:min(len(b), i+maxRecord)]
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		if !final && len(rest) < maxRecord {
			return match.Match{}, match.Undecided
		}
		n = len(rest)
	}
	line := bytes.TrimRight(rest[:n], "\r")
	fields := bytes.Split(line, []byte("\t"))
	if len(fields) != 6 || len(fields[5]) < leastMarked || len(bytes.Trim(fields[3], "0123456789.")) > 0 {
		return match.Match{}, match.Nothing
	}
	value := fields[5]
	from := i + len(line) - len(value)
	return match.Match{Start: from, End: from + len(value), Secret: string(value), Learn: len(value) >= match.ShortSecret, Rule: match.Header, Name: "cookie"}, match.Found
}

// wifiAt finds the password in the text of a QR code that joins a network, which begins at index i:
// WIFI:T:WPA;S:home;P:x;;. final is as for Finder.At.
func wifiAt(b []byte, i int, final bool) (match.Match, match.State) {
	const wifi, password = "WIFI:", ";P:"
	if _, v := expect(b, i, wifi); v != match.Found {
		return orNothing(v, final)
	}
	rest := b[i:min(len(b), i+maxRecord)]
	from := bytes.Index(rest, []byte(password))
	if from < 0 {
		return match.Pending(final || len(rest) == maxRecord || bytes.IndexByte(rest, '\n') >= 0)
	}
	from += len(password)
	end := from
	for end < len(rest) && (rest[end] != ';' || rest[end-1] == '\\') && rest[end] >= ' ' && rest[end] != '"' {
		end++
	}
	if end == len(rest) && !final && len(rest) < maxRecord {
		return match.Match{}, match.Undecided
	}
	if end == from {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: i + from, End: i + end, Secret: string(rest[from:end]), Rule: match.Parameter, Name: "P"}, match.Found
}

// pgpassAt finds the password in a line of .pgpass, at the first colon of which index i is: host:port:database:user:password.
// final is as for Finder.At.
func pgpassAt(b []byte, i int, final bool) (match.Match, match.State) {
	const least = len(":5432:d:u:pass")
	port, v := afterPort(b, i)
	if v != match.Found {
		return orNothing(v, final)
	}
	from, colons := port, 0
	end := port
	for end < len(b) && end-i < maxRecord && b[end] > ' ' && b[end] != '"' && b[end] != '\\' {
		if b[end] == ':' && colons < 3 {
			colons++
			from = end + 1
		}
		end++
	}
	switch {
	case end == len(b) && !final && end-i < maxRecord:
		return match.Match{}, match.Undecided
	case colons < 3, end-i < least, end-from < leastMarked, !endsLine(b[end:]), !isHostLine(b[max(0, i-lookBack):i]):
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: from, End: end, Secret: string(b[from:end]), Rule: match.Parameter, Name: "pgpass"}, match.Found
}

// afterPort returns the index of the colon after the port of four or five digits that the colon at index i precedes.
func afterPort(b []byte, i int) (int, match.State) {
	const longest = len(":65535")
	if i == 0 || !charset.Name.Has(b[i-1]) && b[i-1] != '*' {
		return i, match.Nothing
	}
	port := i + 1
	for port < len(b) && port-i < longest && b[port] >= '0' && b[port] <= '9' {
		port++
	}
	switch {
	case port == len(b):
		return port, match.Undecided
	case b[port] != ':', port-i < longest-1:
		return port, match.Nothing
	}
	return port, match.Found
}

// isHostLine reports whether the line that b ends in consists of the name of a host.
func isHostLine(b []byte) bool {
	n := len(b)
	for n > 0 && (charset.Name.Has(b[n-1]) || b[n-1] == '*') {
		n--
	}
	return n == 0 || b[n-1] == '\n' || b[n-1] == '"' || bytes.HasSuffix(b, []byte(lineBreak))
}
