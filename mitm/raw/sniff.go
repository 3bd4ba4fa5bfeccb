package raw

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

const (
	// MaxRequestLine limits the first line of an HTTP request, in bytes.
	MaxRequestLine = 16 << 10

	// PrefaceH2 is the beginning of the bytes that an HTTP/2 client sends first.
	PrefaceH2 = "PRI * HTTP/2.0\r\n"

	// RecordTypeTLS is the first byte that a TLS client sends.
	RecordTypeTLS = 0x16

	// maxMethod limits the length of an HTTP method, in bytes.
	maxMethod = 24

	// slowRequest is how long a client may pause within the apparent first line of an HTTP request.
	slowRequest = 15 * time.Second
)

// A Protocol is the protocol of a connection, as far as its first bytes show it.
type Protocol uint8

const (
	// Undecided means that more bytes are needed.
	Undecided Protocol = iota
	// TLS is the beginning of a TLS handshake.
	TLS
	// HTTP means HTTP/1, or HTTP/2 with its connection preface.
	HTTP
	// Other means a protocol that is neither HTTP nor TLS.
	Other
)

// sniff detects the protocol by the first bytes that a client sent. If the result is Undecided, likely means
// that they look like the beginning of an HTTP request.
func sniff(head []byte) (kind Protocol, likely bool) {
	if len(head) == 0 {
		return Undecided, false
	}
	if head[0] == RecordTypeTLS {
		return TLS, false
	}

	// HTTP/2 with prior knowledge starts with a fixed preface (RFC 9113, section 3.4).
	if n := min(len(head), len(PrefaceH2)); string(head[:n]) == PrefaceH2[:n] {
		if n == len(PrefaceH2) {
			return HTTP, true
		}
		return Undecided, true
	}

	// HTTP/1 starts with a method, a target and a version.
	method, rest, found := bytes.Cut(head, []byte(" "))
	if len(method) == 0 || len(method) > maxMethod || bytes.ContainsFunc(method, notMethod) {
		return Other, false
	}
	if !found {
		return Undecided, isMethodPrefix(string(method))
	}
	line, _, found := bytes.Cut(rest, []byte("\n"))
	if !found {
		if len(head) > MaxRequestLine {
			return Other, false
		}
		return Undecided, isTargetPrefix(string(method), rest)
	}
	_, version, _ := strings.Cut(strings.TrimSuffix(string(line), "\r"), " ")
	if version == "HTTP/1.1" || version == "HTTP/1.0" {
		return HTTP, true
	}
	return Other, false
}

// notMethod reports whether a character cannot occur in an HTTP method.
func notMethod(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' && r != '_' }

// isMethodPrefix reports whether s is the beginning of a common HTTP method.
func isMethodPrefix(s string) bool {
	for _, m := range []string{
		"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
		"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "MKCALENDAR",
	} {
		if strings.HasPrefix(m, s) {
			return true
		}
	}
	return false
}

// isTargetPrefix reports whether rest, the bytes after a method, looks like the beginning of a request target:
// a path, a URL, host:port or an asterisk.
func isTargetPrefix(method string, rest []byte) bool {
	if len(rest) == 0 {
		return isMethodPrefix(method)
	}
	return rest[0] == '/' || rest[0] == '*' || bytes.HasPrefix(rest, []byte("http")) || bytes.HasPrefix([]byte("http"), rest) || method == "CONNECT"
}

// Sniff reads ahead until the protocol is known. If the client sends nothing for the time wait, the result is
// Undecided, because the client may be waiting for the server to send first. If the client pauses after bytes
// that are hardly HTTP, the result is Other.
func (c *Conn) Sniff(wait time.Duration) (Protocol, error) {
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	for {
		kind, likely := sniff(c.peeked)
		if kind != Undecided {
			return kind, nil
		}
		pause := wait
		if likely {
			pause = slowRequest
		}
		if err := c.SetReadDeadline(time.Now().Add(pause)); err != nil {
			return Undecided, err
		}
		switch err := c.ReadMore(MaxRequestLine + 1); {
		case err == nil:
		case len(c.peeked) > 0:
			// Nothing else comes for now, so the bytes must be forwarded.
			if !IsTimeout(err) {
				c.err = err
			}
			return Other, nil
		case IsTimeout(err):
			return Undecided, nil
		default:
			return Undecided, err
		}
	}
}

// HasHTTP2Preface reports whether the client's first bytes are the HTTP/2 preface. It reads ahead until that is
// certain.
func (c *Conn) HasHTTP2Preface() bool {
	for {
		n := min(len(c.peeked), len(PrefaceH2))
		if string(c.peeked[:n]) != PrefaceH2[:n] {
			return false
		}
		if n == len(PrefaceH2) {
			return true
		}
		if err := c.ReadMore(MaxRequestLine); err != nil {
			return false
		}
	}
}

// IsTimeout reports whether an error is due to a deadline.
func IsTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// AwaitFirst waits until either side sends bytes or ends, and reports whether the server was first. The bytes
// can be read again.
//
// Errors: that of a client that disconnected.
func AwaitFirst(client, server *Conn) (fromServer bool, err error) {
	done := make(chan error, 1)
	go func() {
		err := server.ReadMore(MaxRequestLine)
		// Interrupt the client's read.
		_ = client.SetReadDeadline(time.Unix(1, 0))
		done <- err
	}()
	clientErr := client.ReadMore(MaxRequestLine + 1)
	_ = server.SetReadDeadline(time.Unix(1, 0))
	serverErr := <-done
	_ = client.SetReadDeadline(time.Time{})
	_ = server.SetReadDeadline(time.Time{})
	if serverErr != nil && !IsTimeout(serverErr) {
		server.err = serverErr
	}
	switch {
	case len(server.peeked) > 0, server.err != nil:
		return true, nil
	case clientErr == nil:
		return false, nil
	case errors.Is(clientErr, io.EOF):
		client.err = clientErr // half-closed by a client that only listens
		return true, nil
	}
	return false, clientErr
}
