package pcap

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"unwire/captures"
)

// maxHead limits an HTTP/1 header section, a trailer section and a single line, in bytes.
const maxHead = 128 << 10

// Special results of bodyLength, instead of a length.
const (
	// untilClose means that the body ends with the connection, and isChunked that it has chunked encoding.
	untilClose = -1
	isChunked  = -2
)

// bodyLength determines the length of an HTTP/1 body in bytes from its headers, or returns isChunked or
// untilClose (RFC 9112, section 6.3).
func bodyLength(fields captures.Headers) (int64, error) {
	length := int64(untilClose)
	for _, f := range fields {
		switch {
		case strings.EqualFold(f.Name, "Transfer-Encoding"):
			if strings.EqualFold(strings.TrimSpace(f.Value), "identity") {
				continue
			}
			return isChunked, nil
		case strings.EqualFold(f.Name, "Content-Length"):
			// Contradicting lengths are an attack or damage.
			n, err := strconv.ParseInt(strings.TrimSpace(f.Value), 10, 64)
			if err != nil || n < 0 || length >= 0 && n != length {
				return 0, fmt.Errorf("%q is not a valid Content-Length", excerpt([]byte(f.Value)))
			}
			length = n
		}
	}
	return length, nil
}

// parseHead parses the header section at the beginning of p: its first line, and the header fields. n is the
// length of the section in bytes, or 0 if it is incomplete.
func parseHead(p []byte) (first string, fields captures.Headers, n int, err error) {
	skipped := 0
	// Accept empty lines before a message, as RFC 9112 recommends.
	for len(p) > 0 && (p[0] == '\r' || p[0] == '\n') && skipped < 4 {
		p, skipped = p[1:], skipped+1
	}
	end, sep := sectionEnd(p)
	if end < 0 {
		return "", nil, 0, tooLong(p)
	}
	line, rest, _ := bytes.Cut(p[:end], []byte("\n"))
	fields, err = parseFields(rest)
	return string(bytes.TrimSuffix(line, []byte("\r"))), fields, skipped + end + sep, err
}

// sectionEnd returns the offset at which the header section at the beginning of p ends (-1 if it is
// incomplete), and the length of the line ends that terminate it.
func sectionEnd(p []byte) (end, sep int) {
	window := p[:min(len(p), maxHead)]
	end, sep = bytes.Index(window, []byte("\r\n\r\n")), 4
	if i := bytes.Index(window[:max(end, 0)], []byte("\n\n")); i >= 0 {
		return i, 2
	}
	if end < 0 {
		end, sep = bytes.Index(window, []byte("\n\n")), 2
	}
	return end, sep
}

// tooLong returns an error if p, an incomplete header section or line, exceeds maxHead.
func tooLong(p []byte) error {
	if len(p) >= maxHead {
		return fmt.Errorf("the header section has more than %d bytes", maxHead)
	}
	return nil
}

// cutTrailers returns the trailer section at the beginning of p without its last line end, and its
// length in bytes; the length is 0 if the section is incomplete.
func cutTrailers(p []byte) ([]byte, int, error) {
	for _, empty := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(p, []byte(empty)) {
			return nil, len(empty), nil
		}
	}
	if len(p) == 1 && p[0] == '\r' {
		return nil, 0, nil
	}
	end, sep := sectionEnd(p)
	if end < 0 {
		return nil, 0, tooLong(p)
	}
	return p[:end], end + sep, nil
}

// cutLine returns the first line of p without its line end, and its length including the line end; the
// length is 0 if the line is incomplete.
func cutLine(p []byte) ([]byte, int, error) {
	i := bytes.IndexByte(p[:min(len(p), maxHead)], '\n')
	if i < 0 {
		return nil, 0, tooLong(p)
	}
	return bytes.TrimSuffix(p[:i], []byte("\r")), i + 1, nil
}

// parseFields parses header fields. A line that begins with white space continues the field before it.
func parseFields(p []byte) (captures.Headers, error) {
	var h captures.Headers
	for line := range bytes.Lines(p) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		if (line[0] == ' ' || line[0] == '\t') && len(h) > 0 {
			h[len(h)-1].Value += " " + string(bytes.TrimSpace(line))
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 {
			return nil, fmt.Errorf("%q is not a header line", excerpt(line))
		}
		h = append(h, captures.Header{Name: string(name), Value: string(bytes.TrimSpace(value))})
	}
	return h, nil
}

// cutLast splits s at the last occurrence of sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// excerpt returns the first 16 bytes of captured data for an error message. It is short because the data may be
// secret.
func excerpt(p []byte) []byte { return p[:min(len(p), 16)] }
