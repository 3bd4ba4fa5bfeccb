package messages

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// maxNamed is the maximum number of bytes of a URL or value that are used in a name.
const maxNamed = 80

// identifier matches a segment of a URL path that may be an identifier, which differs between clients or
// objects.
var identifier = regexp.MustCompile(`^([0-9]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|[0-9a-fA-F]{16,}|[0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*)$`)

// leastIdentifier is the length in bytes from which on a mixture of letters and digits is an identifier.
const leastIdentifier = 16

// isIdentifier reports whether a segment of a URL path is an identifier rather than a word.
func isIdentifier(part string) bool {
	if !identifier.MatchString(part) {
		return false
	}
	return strings.Trim(part, "0123456789") == "" || len(part) >= leastIdentifier
}

// templateOf returns a URL in which identifiers are replaced by {id}, and the name of a message type derived
// from the rest of the URL. IP addresses and localhost do not become part of the name.
func templateOf(raw string) (template, name string) {
	u, err := url.Parse(raw)
	if err != nil {
		return raw, "Message"
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	var words []string
	if host := u.Hostname(); net.ParseIP(host) == nil && host != "localhost" {
		words = append(words, host)
	}
	for i, part := range parts {
		if isIdentifier(part) {
			parts[i] = "{id}"
			continue
		}
		words = append(words, part)
	}
	name = camel(strings.Join(words, " "))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "Message" + name
	}
	return u.Scheme + "://" + u.Host + "/" + strings.Join(parts, "/"), name
}

// camel returns the words of s in camel case. Characters that are not allowed in a name separate words.
func camel(s string) string {
	var b strings.Builder
	upper := true
	for _, r := range s[:min(len(s), maxNamed)] {
		switch {
		case r >= 'a' && r <= 'z':
			if upper {
				r -= 'a' - 'A'
			}
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		default:
			upper = true
			continue
		}
		b.WriteRune(r)
		upper = false
	}
	return b.String()
}
