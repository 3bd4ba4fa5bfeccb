package h1

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"unwire/captures"
)

// A Front is a client's connection for use by an HTTP server in this process. The server reads from it only
// those requests that are not relayed: those for which Config.Route returns nil. All other requests are relayed
// while the server waits in Read.
type Front struct {
	// relay relays the requests that are not left to the HTTP server.
	relay *Relay

	// stop ends the watch over the end of the context.
	stop func() bool

	// head is the number of bytes of the current request's head that Read has not returned yet. Only the HTTP
	// server's reading goroutine uses it.
	head int
	// body finds the end of the current request's body. Only the HTTP server's reading goroutine uses it.
	body body

	// mu guards the fields below.
	mu sync.Mutex
	// changed is signalled when serving or interrupted changes.
	changed sync.Cond

	// serving means that the HTTP server still has to respond to its request.
	serving bool
	// interrupted means that the HTTP server stops reading.
	interrupted bool
}

// NewFront returns a Front. The server must call Idle after each response, and finally Close or Detach.
func NewFront(ctx context.Context, c Config) *Front {
	f := &Front{relay: New(c), body: body{done: true}}
	f.changed.L = &f.mu
	f.relay.ctx = ctx
	f.stop = context.AfterFunc(ctx, f.relay.cutOff)
	return f
}

// Read returns the bytes of requests that are not relayed. Until the server has responded to a request, Read
// returns nothing of the next one, but fails if the client closes the connection.
func (f *Front) Read(p []byte) (int, error) {
	in := &f.relay.client
	for {
		var err error
		switch {
		case f.head > 0:
			n := copy(p, in.buffered()[:f.head])
			in.consume(n)
			f.head -= n
			return n, nil
		case !f.body.done && len(in.buffered()) > 0:
			return f.readBody(p)
		case !f.body.done:
			err = in.fill()
		case f.isServing():
			err = f.await()
		default:
			err = f.readRequest()
		}
		if err != nil {
			return 0, err
		}
	}
}

// readBody returns buffered bytes of the current request's body, with its framing.
func (f *Front) readBody(p []byte) (int, error) {
	in := &f.relay.client
	part := in.buffered()
	part = part[:min(len(part), len(p))]
	n, _, err := f.body.scan(part, f.relay.contentBuffer())
	n = copy(p, part[:n])
	in.consume(n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// isServing reports whether the HTTP server still has to respond to a request.
func (f *Front) isServing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serving
}

// await waits until the HTTP server has responded. If the buffer is empty, it reads from the client, to notice
// the end of the connection.
func (f *Front) await() error {
	if len(f.relay.client.buffered()) == 0 {
		return f.relay.client.fill()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.serving && !f.interrupted {
		f.changed.Wait()
	}
	if f.interrupted {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// readRequest waits for the next request that is not relayed; requests before it are relayed.
func (f *Front) readRequest() error {
	q, err := f.relay.next()
	if err != nil {
		return io.EOF
	}
	f.mu.Lock()
	f.serving = true
	f.mu.Unlock()
	f.head, f.body = len(q.raw), q.bodyOf()
	return f.relay.client.conn.SetReadDeadline(time.Time{})
}

// Idle must be called when the HTTP server has responded to its request.
func (f *Front) Idle() {
	f.mu.Lock()
	f.serving = false
	f.changed.Broadcast()
	f.mu.Unlock()
}

// Detach ends the Front but keeps the client's connection, which then belongs to the caller. It returns the
// bytes that were read from it but not used.
func (f *Front) Detach() []byte {
	f.stop()
	r := f.relay
	r.mu.Lock()
	r.ended = true
	for _, s := range r.servers {
		s.close()
	}
	r.mu.Unlock()
	return r.client.buffered()
}

// Close closes the client's connection, after the end of the exchange that is being relayed.
func (f *Front) Close() error {
	f.relay.mu.Lock()
	running := f.relay.running != nil && !f.relay.ended
	f.relay.draining = true
	f.relay.mu.Unlock()
	if running {
		return nil
	}
	f.stop()
	f.relay.endAll(captures.Complete, nil)
	f.mu.Lock()
	f.interrupted = true
	f.changed.Broadcast()
	f.mu.Unlock()
	return nil
}

// CloseWrite closes the sending direction to the client.
func (f *Front) CloseWrite() error { return closeWrite(f.relay.client.conn) }

// Write sends the HTTP server's response to the client.
func (f *Front) Write(p []byte) (int, error) { return f.relay.client.conn.Write(p) }

// NetConn returns the client's connection.
func (f *Front) NetConn() net.Conn { return f.relay.client.conn }

// LocalAddr returns the local address of the client's connection.
func (f *Front) LocalAddr() net.Addr { return f.relay.client.conn.LocalAddr() }

// RemoteAddr returns the client's network address.
func (f *Front) RemoteAddr() net.Addr { return f.relay.client.conn.RemoteAddr() }

// SetDeadline sets the deadlines for reading from and writing to the client.
func (f *Front) SetDeadline(t time.Time) error {
	_ = f.SetReadDeadline(t)
	return f.SetWriteDeadline(t)
}

// SetReadDeadline limits reading while the server handles a request. A deadline in the past interrupts a Read
// that waits for the server's own response.
func (f *Front) SetReadDeadline(t time.Time) error {
	f.mu.Lock()
	f.interrupted = !t.IsZero() && t.Before(time.Now())
	f.changed.Broadcast()
	f.mu.Unlock()
	return f.relay.client.conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline for writing to the client.
func (f *Front) SetWriteDeadline(t time.Time) error {
	return f.relay.client.conn.SetWriteDeadline(t)
}
