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
	// MaxRequestLine is how long the first line of an HTTP request may be, in bytes.
	MaxRequestLine = 16 << 10

	// PrefaceH2 is what a client begins HTTP/2 with.
	PrefaceH2 = "PRI * HTTP/2.0\r\n"

	// RecordTypeTLS is the first byte of TLS.
	RecordTypeTLS = 0x16

	maxMethod = 24

	// slowRequest is how long a client may pause within what looks like the first line
	// of an HTTP request.
	slowRequest = 15 * time.Second
)

// A Protocol is what a client speaks.
type Protocol uint8

const (
	Undecided Protocol = iota // more bytes are needed
	TLS
	HTTP // version 1, or version 2 with its preface
	Other
)

// sniff tells the protocol from the first bytes of a connection. likely says of what is
// Undecided that it begins as requests do.
func sniff(head []byte) (kind Protocol, likely bool) {
	if len(head) == 0 {
		return Undecided, false
	}
	if head[0] == RecordTypeTLS {
		return TLS, false
	}
	if n := min(len(head), len(PrefaceH2)); string(head[:n]) == PrefaceH2[:n] {
		if n == len(PrefaceH2) {
			return HTTP, true
		}
		return Undecided, true
	}
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

func notMethod(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' && r != '_' }

// isMethodPrefix reports whether a common method of HTTP begins with s.
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

// isTargetPrefix reports whether what follows a method begins as the target of a request:
// a path, a URL, host:port or an asterisk.
func isTargetPrefix(method string, rest []byte) bool {
	if len(rest) == 0 {
		return isMethodPrefix(method)
	}
	return rest[0] == '/' || rest[0] == '*' || bytes.HasPrefix(rest, []byte("http")) || bytes.HasPrefix([]byte("http"), rest) || method == "CONNECT"
}

// Sniff reads until the protocol is known. It stops early, Undecided, when the client sends
// nothing for a while: a server that speaks first may be what it waits for. A client that
// pauses after a beginning that only could be HTTP's waits for an answer to that: Other.
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
			// It is all that there is for now, or for good: it is passed on.
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

// HasHTTP2Preface reports whether a client begins with HTTP/2's preface, reading on
// while it may.
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

// IsTimeout reports whether an error is that of a deadline.
func IsTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// AwaitFirst waits for either side to send something, or to end. It reports whether that
// was the server; whatever came is left to be read.
//
// Errors: the client went away.
func AwaitFirst(client, server *Conn) (fromServer bool, err error) {
	done := make(chan error, 1)
	go func() {
		err := server.ReadMore(MaxRequestLine)
		// Whatever came, the client's wait is over.
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
