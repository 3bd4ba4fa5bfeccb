package value

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	// maxTypeURL is the maximum length in bytes of a type URL.
	maxTypeURL = 300

	// maxFieldPath is the maximum length in bytes of a path of a FieldMask.
	maxFieldPath = 200
)

// TypeURL returns the full name in the type URL of an Any: type.googleapis.com/package.Type.
func TypeURL(b []byte) (string, bool) {
	if len(b) > maxTypeURL || bytes.IndexByte(b, '/') < 0 || !utf8.Valid(b) {
		return "", false
	}
	host, name, ok := strings.Cut(string(b), "/")
	if !ok || !strings.Contains(host, ".") || strings.ContainsAny(host, " \n") || !strings.Contains(name, ".") {
		// Without a host, "/package.Type" may as well be a path.
		return "", false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || isDigit(part[0]) {
			return "", false
		}
		for i := range len(part) {
			if !isAlnum(part[i]) && part[i] != '_' {
				return "", false
			}
		}
	}
	// A file name has an extension, but a type has a capital letter somewhere.
	return name, strings.ToLower(name) != name
}

// IsFieldPath reports whether p consists of lower-case names with dots between them.
func IsFieldPath(p []byte) bool {
	if len(p) > maxFieldPath {
		return false
	}
	start := true
	for _, c := range p {
		switch {
		case c >= 'a' && c <= 'z':
			start = false
		case start:
			return false
		case c == '.':
			start = true
		case c != '_' && !isDigit(c):
			return false
		}
	}
	return !start
}
