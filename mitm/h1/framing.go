package h1

import (
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"unwire/captures"
)

// A framing is what a head says about its message and its connection.
type framing struct {
	// length is that of the body, -1 if none is declared. chunked says that the body
	// is in chunks.
	length  int64
	chunked bool

	// persistent says that the sender keeps the connection after the message.
	persistent bool

	// upgrade says that the sender asks for another protocol, or changes to it.
	upgrade bool

	// expects says that the client waits to be told to send its body.
	expects bool

	host  string
	hosts int
}

// readFraming reads a header section. It refuses what some would read in another way.
//
// Source: RFC 9112, sections 6.1 to 6.3, 9.3
func readFraming(version string, header captures.Headers) (framing, error) {
	f := framing{length: -1, persistent: version == "1.1"}
	protocol, closes := false, false
	for i := range header {
		value := header[i].Value
		switch name := header[i].Name; len(name) { // few names are compared
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
	if f.chunked && f.length >= 0 {
		return f, malformed("the message has both Content-Length and Transfer-Encoding")
	}
	return f, nil
}

func is(f captures.Header, name string) bool { return strings.EqualFold(f.Name, name) }

func (f *framing) readHost(h captures.Header) {
	if is(h, "host") {
		f.host = h.Value
		f.hosts++
	}
}

// readConnection reads a field Connection, and reports whether it asks to close.
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
		return malformed("the message has several values of Content-Length")
	}
	f.length = n
	return nil
}

func (f *framing) readEncoding(version, name, value string) error {
	if !strings.EqualFold(name, "transfer-encoding") {
		return nil
	}
	switch {
	case f.chunked:
		return malformed("the message has several fields Transfer-Encoding")
	case version == "1.0":
		return malformed("Transfer-Encoding is not allowed in HTTP/1.0")
	case !strings.EqualFold(value, "chunked"):
		return &Malformed{http.StatusNotImplemented, "Transfer-Encoding is not chunked, which alone is supported"}
	}
	f.chunked = true
	return nil
}

// checkRequest refuses requests that some would take for another host's.
//
// Source: RFC 9112, section 3.2
func (q *Request) checkRequest() error {
	switch {
	case q.hosts > 1:
		return malformed("the request has several fields Host")
	case q.hosts == 0 && q.Version == "1.1" && q.Method != http.MethodConnect:
		return malformed("missing required Host header")
	case !httpguts.ValidHostHeader(q.host):
		return malformed("the field Host is not a host")
	}
	return nil
}

// bodyOf returns the body that follows a request's head.
func (q *Request) bodyOf() body {
	switch {
	case q.chunked:
		return body{kind: bodyChunked}
	case q.length > 0:
		return body{kind: bodyLength, left: q.length}
	}
	return body{kind: bodyLength, done: true}
}

// bodyOf returns the body that follows a response's head.
//
// Source: RFC 9112, section 6.3
func (a *response) bodyOf(method string) body {
	switch {
	case method == http.MethodHead, a.status < 200, a.status == http.StatusNoContent, a.status == http.StatusNotModified:
		return body{kind: bodyLength, done: true}
	case a.chunked:
		return body{kind: bodyChunked, padded: true}
	case a.length >= 0:
		return body{kind: bodyLength, left: a.length, done: a.length == 0}
	}
	return body{kind: bodyUntilClose}
}

// changesProtocol reports whether what follows a response is not HTTP any more.
func (a *response) changesProtocol(method string) bool {
	return a.status == http.StatusSwitchingProtocols || method == http.MethodConnect && a.status/100 == 2
}
