// Package h2 relays HTTP/2 between a client and its server frame by frame, and records the exchanges. Bytes are
// forwarded unchanged, so flow control and header compression stay between the two ends. Header blocks are
// decoded additionally, for the recording. Only package mitm uses this package; it decides what is recorded.
//
//	head, err := h2.ReadPreface(client, timeout)
//	...
//	h2.New(h2.Config{Client: client, Server: server, ...}).Run(ctx, head)
//
// A Relay has a pump for each direction, which reads frames from one side and writes them to the other. Frames
// larger than the buffer are forwarded in parts. A header block is decoded when all of its frames have arrived.
// A stream is an exchange that is being recorded. A Conn buffers reads and combines writes.
//
// Limits: the connection ends if a header block is not valid HPACK, a header section exceeds 8 MiB, or a frame
// other than DATA exceeds 1 MiB. HPACK tables are limited to 1 MiB.
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
	"unwire/mitm/rewrite"
)

// A Config describes what a Relay connects and records. All fields but Origin and Rewrites are required.
type Config struct {
	// Client is the connection to the client: a *Conn, or TLS on one.
	Client net.Conn
	// Server is the connection to the server: a *Conn, or TLS on one.
	Server net.Conn

	// Origin is set for a reverse proxy: requests are rewritten so that they address this server. nil leaves
	// them unchanged.
	Origin *url.URL

	// Begin starts the exchange of a request. method, authority and path are the values of the pseudo-header fields,
	// and header has all other fields, with :protocol. It returns the recording of the exchange, or nil if it is not
	// recorded, and how rules change it, or nil if they do not.
	Begin func(method, authority, path string, header captures.Headers) (captures.Recording, rewrite.Exchange)

	// Rewrites means that rules may change some exchanges. If it is unset, Begin always returns a nil
	// rewrite.Exchange.
	Rewrites bool

	// Admit is called before an exchange begins. If it returns false, the stream is refused with REFUSED_STREAM.
	Admit func() bool
	// Release is called once for each exchange that Admit has accepted, after the exchange's last bytes were written.
	Release func()

	// Logger receives errors that are not recorded in any exchange.
	Logger *slog.Logger
}

// New returns a Relay, which is started by Run.
func New(c Config) *Relay {
	r := &Relay{
		config: c,
		// The first frame to the client must be the server's SETTINGS.
		client:  newSide(c.Client),
		server:  newSide(c.Server),
		streams: make(map[uint32]*stream),
	}
	r.client.midFrame = true
	if c.Rewrites {
		r.client.sender, r.server.sender = newSender(r.client), newSender(r.server)
		r.cut = make(map[uint32]struct{})
	}
	return r
}

// ReadPreface reads the client's HTTP/2 connection preface, within timeout. It returns all bytes read, which may be
// more than the preface.
func ReadPreface(conn net.Conn, timeout time.Duration) ([]byte, error) {
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	buf := make([]byte, 4<<10)
	n, err := io.ReadAtLeast(conn, buf, len(clientPreface))
	if err != nil {
		return nil, err
	}
	if string(buf[:len(clientPreface)]) != clientPreface {
		return nil, protocolErrorf(codeProtocol, "the HTTP/2 connection preface is missing")
	}
	return buf[:n], nil
}
