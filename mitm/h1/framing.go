package h1

import (
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"unwire/captures"
)

// A framing contains the information in the header fields of an HTTP/1 message about the length of its body,
// the connection and the host.
type framing struct {
	// length is the declared length of the body in bytes (Content-Length); -1 without one.
	length int64
	// chunked means that the body is in chunked encoding.
	chunked bool

	// persistent means that the sender keeps the connection open after the message.
	persistent bool

	// upgrade means that the sender asks to switch to another protocol, or switches to it.
	upgrade bool

	// expects means that the client waits for the status 100 (Continue) before it sends the body.
	expects bool

	// host is the value of the last Host field; "" without one.
	host string
	// hosts is the number of Host fields.
	hosts int
}

// readFraming evaluates a header section. It refuses fields that different recipients would interpret
// differently, because this permits request smuggling.
//
// Source: RFC 9112, sections 6.1 to 6.3, 9.3
func readFraming(version string, header captures.Headers) (framing, error) {
	f := framing{length: -1, persistent: version == "1.1"}
	protocol, closes := false, false
	for i := range header {
		value := header[i].Value
		// Compare the names only if the length matches, because few do.
		switch name := header[i].Name; len(name) {
		case len("host"):
			f.readHost(header[i])
		case len("expect"):
			f.expects = f.expects || is(header[i], "expect") && strings.EqualFold(value, "100-continue")
		case len("upgrade"):
			protocol = protocol || is(header[i], "upgrade") && value != ""
		case len("connection"):
			if strings.EqualFold(name, "connection") {
				closes = f.readConnection(value) || closes
			}
		case len("content-length"):
			if err := f.readLength(name, value); err != nil {
				return f, err
			}
		case len("transfer-encoding"):
			if err := f.readEncoding(version, name, value); err != nil {
				return f, err
			}
		}
	}
	f.upgrade = f.upgrade && protocol
	f.persistent = f.persistent && !closes
	// Both together are the classic means of request smuggling.
	if f.chunked && f.length >= 0 {
		return f, malformed("the message has both Content-Length and Transfer-Encoding")
	}
	return f, nil
}

// is reports whether a field has a name, in any case.
func is(f captures.Header, name string) bool { return strings.EqualFold(f.Name, name) }

// readHost evaluates a Host field and stores its value.
func (f *framing) readHost(h captures.Header) {
	if is(h, "host") {
		f.host = h.Value
		f.hosts++
	}
}

// readConnection evaluates a Connection field, and reports whether it contains "close".
func (f *framing) readConnection(value string) (closes bool) {
	for token := range strings.SplitSeq(value, ",") {
		switch token = strings.Trim(token, " \t"); {
		case strings.EqualFold(token, "close"):
			closes = true
		case strings.EqualFold(token, "keep-alive"):
			f.persistent = true
		case strings.EqualFold(token, "upgrade"):
			f.upgrade = true
		}
	}
	return closes
}

// readLength evaluates a Content-Length field and stores the length.
func (f *framing) readLength(name, value string) error {
	if !strings.EqualFold(name, "content-length") {
		return nil
	}
	for i := range len(value) {
		if !isDigit(value[i]) {
			return malformed("Content-Length is not a number")
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return malformed("Content-Length is not a number of at most 63 bits")
	case f.length >= 0 && f.length != n:
		return malformed("the message has several different Content-Length values")
	}
	f.length = n
	return nil
}

// readEncoding evaluates a Transfer-Encoding field; only "chunked" is accepted.
func (f *framing) readEncoding(version, name, value string) error {
	if !strings.EqualFold(name, "transfer-encoding") {
		return nil
	}
	switch {
	case f.chunked:
		return malformed("the message has several Transfer-Encoding fields")
	case version == "1.0":
		return malformed("Transfer-Encoding is not allowed in HTTP/1.0")
	case !strings.EqualFold(value, "chunked"):
		return &Malformed{http.StatusNotImplemented, "unwire supports only the Transfer-Encoding chunked"}
	}
	f.chunked = true
	return nil
}

// checkRequest refuses requests with a missing or ambiguous host, which a recipient could assign to another
// host.
//
// Source: RFC 9112, section 3.2
func (q *Request) checkRequest() error {
	switch {
	case q.hosts > 1:
		return malformed("the request has several Host fields")
	case q.hosts == 0 && q.Version == "1.1" && q.Method != http.MethodConnect:
		return malformed("missing required Host header")
	case !httpguts.ValidHostHeader(q.host):
		return malformed("the Host field is not a host name or address")
	}
	return nil
}

// bodyOf returns the parser for the body of a request, in the state before its first byte.
func (q *Request) bodyOf() body {
	switch {
	case q.chunked:
		return body{kind: bodyChunked}
	case q.length > 0:
		return body{kind: bodyLength, left: q.length}
	}
	return body{kind: bodyLength, done: true}
}

// bodyOf returns the parser for the body of a response, in the state before its first byte. method is that of
// the request: a response to HEAD has no body.
//
// Source: RFC 9112, section 6.3
func (a *response) bodyOf(method string) body {
	switch {
	case !a.mayHaveBody(method):
		return body{kind: bodyLength, done: true}
	case a.chunked:
		return body{kind: bodyChunked, padded: true}
	case a.length >= 0:
		return body{kind: bodyLength, left: a.length, done: a.length == 0}
	}
	return body{kind: bodyUntilClose}
}

// mayHaveBody reports whether the response to a request with a method can have a body, even if it declares a length.
func (a *response) mayHaveBody(method string) bool {
	return method != http.MethodHead && a.status >= 200 && a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// changesProtocol reports whether the bytes after the response are no longer HTTP. method is that of the
// request.
func (a *response) changesProtocol(method string) bool {
	return a.status == http.StatusSwitchingProtocols || method == http.MethodConnect && a.status/100 == 2
}
