package mitm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

const (
	maxHello       = 64 << 10
	maxRequestLine = 16 << 10
	maxMethod      = 24
	recordTypeTLS  = 0x16
	prefaceH2      = "PRI * HTTP/2.0\r\n"
)

// A protocol is what a client speaks inside a tunnel.
type protocol uint8

const (
	undecided protocol = iota
	protocolTLS
	protocolHTTP // version 1, or version 2 with prior knowledge
	protocolOther
)

// sniff tells the protocol from the first bytes of a connection; undecided
// means that more of them are needed.
func sniff(head []byte) protocol {
	if len(head) == 0 {
		return undecided
	}
	if head[0] == recordTypeTLS {
		return protocolTLS
	}
	if n := min(len(head), len(prefaceH2)); string(head[:n]) == prefaceH2[:n] {
		if n == len(prefaceH2) {
			return protocolHTTP
		}
		return undecided
	}
	method, rest, found := bytes.Cut(head, []byte(" "))
	if len(method) == 0 || len(method) > maxMethod || bytes.ContainsFunc(method, notMethod) {
		return protocolOther
	}
	if !found {
		return undecided
	}
	line, _, found := bytes.Cut(rest, []byte("\n"))
	if !found {
		if len(head) > maxRequestLine {
			return protocolOther
		}
		return undecided
	}
	_, version, _ := strings.Cut(strings.TrimSuffix(string(line), "\r"), " ")
	if version == "HTTP/1.1" || version == "HTTP/1.0" {
		return protocolHTTP
	}
	return protocolOther
}

func notMethod(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' && r != '_' }

// sniffProtocol reads until the protocol is known. It stops early, undecided, when
// the client sends nothing for a while: a server that speaks first may be what
// it waits for.
func (c *clientConn) sniffProtocol(wait time.Duration) (protocol, error) {
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	for {
		if kind := sniff(c.peeked); kind != undecided {
			return kind, nil
		}
		if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return undecided, err
		}
		if err := c.readMore(maxRequestLine + 1); err != nil {
			if isTimeout(err) {
				return undecided, nil
			}
			return undecided, err
		}
	}
}

// hasHTTP2Preface reports whether a client begins with HTTP/2's preface, reading on
// while it may.
func (c *clientConn) hasHTTP2Preface() bool {
	for {
		n := min(len(c.peeked), len(prefaceH2))
		if string(c.peeked[:n]) != prefaceH2[:n] {
			return false
		}
		if n == len(prefaceH2) {
			return true
		}
		if err := c.readMore(maxRequestLine); err != nil {
			return false
		}
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// A clientHello is what the proxy needs of TLS's ClientHello.
type clientHello struct {
	sni  string
	alpn []string
}

var errHelloRead = errors.New("mitm: hello read")

// readHello reads a ClientHello and leaves it to be read again.
func (c *clientConn) readHello(ctx context.Context) (clientHello, error) {
	var h clientHello
	rec := &helloReader{Conn: c.Conn, head: c.peeked}
	err := tls.Server(rec, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h = clientHello{info.ServerName, info.SupportedProtos}
		return nil, errHelloRead
	}}).HandshakeContext(ctx)
	c.peeked = append(rec.seen, rec.head...)
	if !errors.Is(err, errHelloRead) {
		return h, err
	}
	return h, nil
}

// A helloReader keeps what is read from it, and answers nothing.
type helloReader struct {
	net.Conn
	head, seen []byte
}

func (h *helloReader) Read(p []byte) (n int, err error) {
	if len(h.seen) > maxHello {
		return 0, errors.New("mitm: ClientHello too long")
	}
	if len(h.head) > 0 {
		n = copy(p, h.head)
		h.head = h.head[n:]
	} else {
		n, err = h.Conn.Read(p)
	}
	h.seen = append(h.seen, p[:n]...)
	return n, err
}

func (h *helloReader) Write(p []byte) (int, error) { return len(p), nil }
func (h *helloReader) Close() error                { return nil }

// speaksHTTP reports whether an offer of protocols is for HTTP: no offer is
// HTTP/1, and one without HTTP is for something that is passed on unread.
func (h clientHello) speaksHTTP() bool {
	return len(h.alpn) == 0 || len(h.offer()) > 0
}

// offer is the part of the client's offer that can be served, in its order.
func (h clientHello) offer() []string {
	var out []string
	for _, p := range h.alpn {
		if p == protoH2 || p == protoH1 {
			out = append(out, p)
		}
	}
	return out
}

// awaitFirstBytes waits for either side to send something. It reports whether that was
// the server, with the server's bytes; the client's are left to be read.
func awaitFirstBytes(client *clientConn, server net.Conn) (fromServer bool, first []byte, err error) {
	type read struct {
		p   []byte
		err error
	}
	answer := make(chan read, 1)
	go func() {
		var p [2048]byte
		n, err := server.Read(p[:])
		// Whatever came, the client's wait is over.
		_ = client.SetReadDeadline(time.Unix(1, 0))
		answer <- read{p[:n], err}
	}()
	fillErr := client.readMore(maxRequestLine + 1)
	_ = server.SetReadDeadline(time.Unix(1, 0))
	got := <-answer
	_ = client.SetReadDeadline(time.Time{})
	_ = server.SetReadDeadline(time.Time{})
	switch {
	case len(got.p) > 0:
		return true, got.p, nil
	case fillErr == nil:
		return false, nil, nil
	case isTimeout(fillErr): // the server ended the wait, with an end
		return true, nil, got.err
	case errors.Is(fillErr, io.EOF):
		return true, nil, nil // half-closed by a client that only listens
	}
	return false, nil, fillErr
}
