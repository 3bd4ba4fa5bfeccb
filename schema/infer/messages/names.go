package messages

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// maxNamed is how many bytes of a URL and of a value go into a name.
const maxNamed = 80

// identifier matches a part of a path that is different for each client or object.
var identifier = regexp.MustCompile(`^([0-9]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|[0-9a-fA-F]{16,}|[0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*)$`)

// leastIdentifier is the length from which on letters with digits are an identifier.
const leastIdentifier = 16

// isIdentifier reports whether a part of a path is one of many.
func isIdentifier(part string) bool {
	if !identifier.MatchString(part) {
		return false
	}
	return strings.Trim(part, "0123456789") == "" || len(part) >= leastIdentifier
}

// templateOf returns what the URLs of one kind of exchange have in common, and a name made
// of it. Hosts that are this machine are not named.
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

// camel joins the words of s, each with an upper-case first letter. Of s there is what can
// stand in a name.
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
