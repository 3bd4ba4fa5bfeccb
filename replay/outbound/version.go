package outbound

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http2"
)

const (
	// answerTime is how long a server may take to answer the first bytes of a connection.
	answerTime = 2 * time.Second

	// closingTime is how long a server that supports only HTTP/2 may take to end a connection on which
	// HTTP/1.1 is sent.
	closingTime = 200 * time.Millisecond
)

const (
	// greetingHTTP2 begins a connection of HTTP/2: the preface and an empty SETTINGS frame.
	greetingHTTP2 = http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

	// partOfHTTP1 is the beginning of a request in HTTP/1.1, for the rest of which a server waits. It is
	// longer than the preface of HTTP/2.
	partOfHTTP1 = "OPTIONS * HTTP/1.1\r\nUser-Agent: "
)

// Version returns the version of HTTP, "1.1" or "2", in which a server can be sent a request: preferred if
// the server supports it, or if its version cannot be determined, and otherwise the other one.
//
// Shape: Version sends no complete request, so the server executes nothing. Without TLS, a server of
// HTTP/1.1 answers the first bytes of HTTP/2 with an error in HTTP/1.1. A server that supports only HTTP/2
// ends a connection on which HTTP/1.1 begins, or its TLS handshake. local restricts it to this machine.
func Version(ctx context.Context, u *url.URL, preferred string, local bool, p Policy) string {
	supports2 := true
	if u.Scheme == "http" {
		answer, _ := firstBytes(ctx, u, greetingHTTP2, answerTime, local, p)
		supports2 = !strings.HasPrefix(string(answer), "HTTP/")
	}
	switch {
	case preferred == "2" && !supports2:
		return "1.1"
	case preferred != "2" && supports2 && refusesHTTP1(ctx, u, local, p):
		return "2"
	}
	return preferred
}

// refusesHTTP1 reports whether a server ends a connection on which HTTP/1.1 begins.
func refusesHTTP1(ctx context.Context, u *url.URL, local bool, p Policy) bool {
	answer, err := firstBytes(ctx, u, partOfHTTP1, closingTime, local, p)
	switch {
	case errors.Is(err, errSilent):
		return false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), err != nil && isNoALPN(err):
		return true
	}
	return isSettings(answer)
}

// errSilent is the error of firstBytes if the server sends too few bytes in time, but keeps the connection.
var errSilent = errors.New("no answer in time")

// firstBytes opens a connection, sends a greeting, and returns the first bytes that the server sends
// within limit.
//
// Errors: errSilent; those of the connection, with the bytes before it ended.
func firstBytes(ctx context.Context, u *url.URL, greeting string, limit time.Duration, local bool, p Policy) ([]byte, error) {
	dialing, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, state, err := Dial(dialing, u, Secure{ALPN: "http/1.1"}, local, nil, p)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if state != nil && state.NegotiatedProtocol != "" {
		return nil, errSilent // agreed in the handshake
	}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, greeting); err != nil {
		return nil, err
	}
	answer := make([]byte, frameHeader)
	n, err := io.ReadFull(conn, answer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	return answer[:n], err
}

// isNoALPN reports whether err is the alert with which a server ends a TLS handshake because it supports
// none of the offered protocols. crypto/tls exports no type for it.
func isNoALPN(err error) bool {
	return strings.Contains(err.Error(), "remote error: tls: no application protocol")
}

// frameHeader is the length of an HTTP/2 frame's header, in bytes.
const frameHeader = 9

// isSettings reports whether b is the header of a SETTINGS frame of HTTP/2, the first frame of a server.
func isSettings(b []byte) bool {
	return len(b) == frameHeader && bytes.Equal(b[3:5], []byte{byte(http2.FrameSettings), 0}) && bytes.Equal(b[5:], make([]byte, 4))
}
