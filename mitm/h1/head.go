package h1

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"unwire/captures"
)

const (
	// maxRequestHead and maxResponseHead limit a request head and a response head, in bytes.
	maxRequestHead  = 1 << 20
	maxResponseHead = 8 << 20

	// maxSalvaged limits how many bytes of a refused head are recorded.
	maxSalvaged = 64 << 10
)

// A Malformed error describes why an HTTP message is refused.
type Malformed struct {
	// Status is the HTTP status with which a request is refused.
	Status int

	// Reason describes the fault, without those parts of the message that may be secret.
	Reason string
}

// Error returns the reason.
func (m *Malformed) Error() string { return m.Reason }

// malformed returns a Malformed error with a formatted reason and status 400 (Bad Request).
func malformed(format string, args ...any) *Malformed {
	return &Malformed{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// A response is the parsed head of a response.
type response struct {
	// status is the status code.
	status int
	// header are the header fields in the order in which they arrived.
	header captures.Headers
	// size is the length of the response's head in bytes.
	size int
	// body finds the end of the response's body.
	body body

	// framing has what the header fields say about the body's length and the connection.
	framing
}

// scanHead looks for the end of the request or response head with which p begins. line is the start of the
// first line that was not examined in an earlier call. It returns the head's length in bytes; or 0, and the
// start of the last line, if p contains only a part of the head.
//
// Errors: *Malformed if a line does not end in CRLF.
func scanHead(p []byte, line int) (size, next int, err error) {
	for {
		n := bytes.IndexByte(p[line:], '\n')
		if n < 0 {
			return 0, line, nil
		}
		if n == 0 || p[line+n-1] != '\r' {
			return 0, line, malformed("a header line ends in LF without CR")
		}
		if n == 1 {
			return line + 2, 0, nil
		}
		line += n + 1
	}
}

// parseRequest parses the head of a request, including the empty line at its end.
//
// Errors: *Malformed.
func parseRequest(raw string) (*Request, error) {
	line, rest, _ := strings.Cut(raw, "\r\n")
	q := &Request{raw: raw}
	var version string
	var ok bool
	if q.Method, q.Target, ok = strings.Cut(line, " "); ok {
		q.Target, version, ok = strings.Cut(q.Target, " ")
	}

	// An unsupported version has the status 505, other errors have 400.
	switch {
	// A method is a token, like the name of a field.
	case !ok || !httpguts.ValidHeaderFieldName(q.Method):
		return nil, malformed("the request line is not METHOD TARGET VERSION")
	case version == "HTTP/1.1" || version == "HTTP/1.0":
		q.Version = version[len("HTTP/"):]
	case isVersion(version):
		return nil, &Malformed{http.StatusHTTPVersionNotSupported, "the version is not HTTP/1.0 or HTTP/1.1"}
	default:
		return nil, malformed("the request line does not end in an HTTP version")
	}
	if err := checkTarget(q.Method, q.Target); err != nil {
		return nil, err
	}
	var err error
	if q.Header, err = parseFields(rest); err != nil {
		return nil, err
	}

	// The framing decides where the next request starts, so an ambiguous one is refused (request
	// smuggling).
	q.framing, err = readFraming(q.Version, q.Header)
	if err == nil {
		err = q.checkRequest()
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// isVersion reports whether s is an HTTP version of the form HTTP/1.1.
func isVersion(s string) bool {
	return len(s) == len("HTTP/1.1") && strings.HasPrefix(s, "HTTP/") && isDigit(s[5]) && s[6] == '.' && isDigit(s[7])
}

// isDigit reports whether c is an ASCII digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// checkTarget refuses a request target that has none of the standard's forms, or that contains characters which
// some servers treat as the end of the target or line (request smuggling).
//
// Source: RFC 9112, section 3.2
func checkTarget(method, target string) error {
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			return malformed("the request's target has a control character")
		}
	}
	switch {
	case method == http.MethodConnect:
		if target == "" || strings.ContainsAny(target, "/?#@") {
			return malformed("the target of CONNECT is not HOST:PORT")
		}
	case strings.HasPrefix(target, "/"):
	case target == "*" && method == http.MethodOptions:
	case isAbsolute(target):
	default:
		return malformed("the request's target is neither a path nor a URL")
	}
	return nil
}

// isAbsolute reports whether a target is an absolute URL with a host (absolute-form).
func isAbsolute(target string) bool {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || scheme == "" || rest == "" || strings.ContainsAny(rest[:1], "/?#") {
		return false
	}
	for i := range len(scheme) {
		c := scheme[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || !isDigit(scheme[i]) && scheme[i] != '+' && scheme[i] != '-' && scheme[i] != '.') {
			return false
		}
	}
	return true
}

// parseResponse parses the head of a response, including the empty line at its end.
//
// Errors: *Malformed.
func parseResponse(raw string) (*response, error) {
	line, rest, _ := strings.Cut(raw, "\r\n")
	version, status, _ := strings.Cut(line, " ")
	status, reason, _ := strings.Cut(status, " ")
	if version != "HTTP/1.1" && version != "HTTP/1.0" {
		return nil, malformed("the status line does not begin with HTTP/1.1 or HTTP/1.0")
	}
	if len(status) != 3 || status[0] == '0' || !isDigit(status[0]) || !isDigit(status[1]) || !isDigit(status[2]) {
		return nil, malformed("the status code does not have three digits")
	}
	if !httpguts.ValidHeaderFieldValue(reason) {
		return nil, malformed("the reason phrase has a control character")
	}
	a := &response{size: len(raw)}
	for i := range len(status) {
		a.status = 10*a.status + int(status[i]-'0')
	}
	var err error
	if a.header, err = parseFields(rest); err != nil {
		return nil, err
	}
	if a.framing, err = readFraming(version[len("HTTP/"):], a.header); err != nil {
		return nil, err
	}
	return a, nil
}

// parseFields parses the field lines of a header section, including the empty line at their end.
//
// Errors: *Malformed.
func parseFields(s string) (captures.Headers, error) {
	fields := make(captures.Headers, 0, strings.Count(s, "\n"))
	for {
		line, rest, ok := strings.Cut(s, "\r\n")
		if !ok {
			return nil, malformed("a header line does not end in CRLF")
		}
		if line == "" {
			return fields, nil
		}
		f, err := parseField(line)
		if err != nil {
			return nil, err
		}
		fields, s = append(fields, f), rest
	}
}

// parseField parses a field line. It refuses folded lines and spaces before the colon, which recipients
// interpret differently.
func parseField(line string) (captures.Header, error) {
	name, value, ok := strings.Cut(line, ":")
	value = strings.Trim(value, " \t")
	switch {
	case line[0] == ' ' || line[0] == '\t':
		return captures.Header{}, malformed("a header field is folded into several lines")
	case !ok:
		return captures.Header{}, malformed("a header line has no colon")
	case strings.HasSuffix(name, " ") || strings.HasSuffix(name, "\t"):
		return captures.Header{}, malformed("the header field %.64q has a space before its colon", strings.TrimRight(name, " \t"))
	case !httpguts.ValidHeaderFieldName(name):
		return captures.Header{}, malformed("%.64q is not a valid header name", name)
	case !httpguts.ValidHeaderFieldValue(value):
		return captures.Header{}, malformed("the value of the header field %.64q has a control character", name)
	}
	return captures.Header{Name: name, Value: value}, nil
}

// salvage parses as much as possible of a refused or incomplete request head, so that it can be recorded. It
// keeps values together with their names, because redaction recognises secrets by the names.
func salvage(raw string) *Request {
	raw = raw[:min(len(raw), maxSalvaged)]
	lines := strings.FieldsFunc(raw, func(r rune) bool { return r == '\r' || r == '\n' || r == 0 })
	q := new(Request)
	if len(lines) == 0 {
		return q
	}
	// The request line may lack any of its words.
	words := strings.Fields(lines[0])
	if len(words) > 0 && httpguts.ValidHeaderFieldName(words[0]) {
		q.Method = words[0]
		words = words[1:]
	}
	if n := len(words); n > 0 && isVersion(words[n-1]) {
		q.Version = words[n-1][len("HTTP/"):]
		words = words[:n-1]
	}
	q.Target = strings.Join(words, " ")
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		// A line without a name continues the value before it, as folded lines do.
		if n := len(q.Header); n > 0 && (!found || line[0] == ' ' || line[0] == '\t') {
			q.Header[n-1].Value += " " + strings.TrimSpace(line)
			continue
		}
		q.Header = append(q.Header, captures.Header{Name: strings.TrimSpace(name), Value: value})
	}
	q.host = q.Header.Get("host")
	return q
}
