// Package h2 relays HTTP/2 between a client and its server, frame by frame, and
// records the exchanges that pass. Bytes go through as they came, so that flow
// control and header compression remain between the two ends; the header blocks
// are decoded in addition, for the record.
//
//	head, err := h2.ReadPreface(client, timeout)
//	...
//	h2.New(h2.Config{Client: client, Server: server, ...}).Run(ctx, head)
//
// A Relay has a pump for each direction, which reads frames from one side and writes
// them to the other. Frames that are longer than its buffer pass in parts. A header
// block is decoded when all its frames are there. A stream is an exchange that is
// being recorded. Conn buffers reads and joins writes. Package mitm alone calls this
// one, and decides what is recorded.
//
// Limits: a connection ends after a header block that HPACK does not explain, a header
// section of more than 8 MiB, or a frame of more than 1 MiB that is not DATA. A header
// table of more than 1 MiB is not offered.
//
// Source: mitm/README.md#http2
package h2

import (
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"

	"unwire/captures"
)

// A Config says what a Relay connects, and what it records to. All of it but
// Origin is required.
type Config struct {
	// Client and Server are the two connections: each a *Conn, or TLS on one.
	Client, Server net.Conn

	// Origin is the server that the client takes the proxy for: its requests are
	// addressed to that. Nil, the default, leaves them as they are.
	Origin *url.URL

	// Begin starts to record a request, by its pseudo-header fields and the others, which
	// :protocol is among.
	// It returns nil if the exchange is not recorded.
	Begin func(method, authority, path string, header captures.Headers) captures.Recording

	// Admit counts an exchange, and Release ends it when the last of its bytes are
	// written. If Admit returns false, the client's stream is refused.
	Admit   func() bool
	Release func()

	Logger *slog.Logger
}

// New makes a relay; Run starts it.
func New(c Config) *Relay {
	return &Relay{
		config: c,
		// The server's SETTINGS come first.
		client:  &side{buffered: connBelow(c.Client), conn: c.Client, midFrame: true},
		server:  &side{buffered: connBelow(c.Server), conn: c.Server},
		streams: make(map[uint32]*stream),
	}
}

// connBelow returns the Conn that a connection is, or that its TLS is on.
func connBelow(conn net.Conn) *Conn {
	if c, ok := conn.(*Conn); ok {
		return c
	}
	return conn.(interface{ NetConn() net.Conn }).NetConn().(*Conn)
}

// ReadPreface reads at least what a client begins HTTP/2 with, within a time.
func ReadPreface(conn net.Conn, timeout time.Duration) ([]byte, error) {
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	buf := make([]byte, 4<<10)
	n, err := io.ReadAtLeast(conn, buf, len(clientPreface))
	if err != nil {
		return nil, err
	}
	if string(buf[:len(clientPreface)]) != clientPreface {
		return nil, protocolErrorf(codeProtocol, "no preface")
	}
	return buf[:n], nil
}
