package filter

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoted quotes and shortens the user's text for an error message.
func quoted(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// unexpected returns the error for a character that a bare pattern cannot contain.
func unexpected(c rune) error {
	return errorf("the character %q must be in double quotes here", string(c))
}

// bare parses an unquoted pattern, which may be empty.
func (p *parser) bare() string {
	const reserved = `()",:=!<>`
	rest := p.text[p.off:]
	n := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(reserved, r) })
	if n < 0 {
		n = len(rest)
	}
	p.off += n
	return rest[:n]
}

// port parses a colon and the digits of a port after a host name, or returns "".
func (p *parser) port() string {
	rest := p.text[p.off:]
	if !strings.HasPrefix(rest, ":") {
		return ""
	}
	digits := rest[1 : len(rest)-len(strings.TrimLeft(rest[1:], "0123456789"))]
	if digits == "" {
		return ""
	}
	p.off += 1 + len(digits)
	return ":" + digits
}

// pattern parses an unquoted or quoted pattern.
func (p *parser) pattern() (pattern, error) {
	start := p.off
	if p.next() != '"' {
		// A colon ends a bare pattern, except before the port of a host.
		text := p.bare()
		if text != "" {
			text += p.port()
		}
		if text == "" {
			return pattern{}, p.at(start, p.missing())
		}
		return newPattern(text), nil
	}
	text, err := p.quotedText()
	return newPattern(text), err
}

// missing returns the error for a pattern that is missing.
func (p *parser) missing() error {
	if c := p.next(); !p.atEnd() && !unicode.IsSpace(c) && c != ')' {
		return unexpected(c)
	}
	return errorf(`the value is missing; write "" for the empty text, or * for any value`)
}

// quotedText parses a text in double quotes. Wildcards and their escapes are kept for newPattern; other escapes
// are those of Go.
func (p *parser) quotedText() (string, error) {
	start := p.off
	p.off++
	var b strings.Builder
	for {
		switch c := p.next(); {
		case p.atEnd():
			return "", p.at(start, errorf("the closing double quote is missing"))
		case c == '"':
			p.off++
			return b.String(), nil
		case c == '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteRune(c)
			p.off += utf8.RuneLen(c)
		}
	}
}

// escape parses an escape sequence of a quoted pattern, and appends its character to b.
func (p *parser) escape(b *strings.Builder) error {
	rest := p.text[p.off:]
	if len(rest) > 1 && strings.IndexByte(`*?\`, rest[1]) >= 0 {
		b.WriteString(rest[:2])
		p.off += 2
		return nil
	}
	// Go's escapes, decoded here.
	if len(rest) > 1 && strings.IndexByte(`"nrtxu`, rest[1]) >= 0 {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, '"')
		if err == nil {
			if multibyte || r < utf8.RuneSelf {
				b.WriteRune(r)
			} else {
				// The escape \xNN is a single byte.
				b.WriteByte(byte(r))
			}
			p.off = len(p.text) - len(tail)
			return nil
		}
	}
	return p.at(p.off, errorf(`a backslash must be followed by one of " \ n r t * ?, or by xNN or uNNNN`))
}
