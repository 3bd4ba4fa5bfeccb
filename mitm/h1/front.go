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

// A Front is the connection of a client as an HTTP server sees it: it has the requests
// that Config.Route does not relay, one after the other. The others are relayed while
// the server reads.
type Front struct {
	relay *Relay
	stop  func() bool

	// The server's reader alone uses these: what is left of the head of the request that
	// it reads, and that request's body.
	head int
	body body

	mu      sync.Mutex
	changed sync.Cond

	// serving says that the server has a request that it has not answered, interrupted
	// that it wants to read no more.
	serving, interrupted bool
}

// NewFront makes a Front. The server has to call Idle, and Close or Detach.
func NewFront(ctx context.Context, c Config) *Front {
	f := &Front{relay: New(c), body: body{done: true}}
	f.changed.L = &f.mu
	f.relay.ctx = ctx
	f.stop = context.AfterFunc(ctx, f.relay.cutOff)
	return f
}

// Read reads requests that are not relayed. While the server has one to answer, it gets
// nothing of the next, but learns whether the client is there.
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

func (f *Front) isServing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serving
}

// await waits until the server has answered.
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

// readRequest waits for the next request that is not relayed.
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

// Idle notes that the server has answered.
func (f *Front) Idle() {
	f.mu.Lock()
	f.serving = false
	f.changed.Broadcast()
	f.mu.Unlock()
}

// Detach ends the relay, and returns what of the client's was read and not used. The
// connection is the caller's.
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

// Close closes the connection, when the exchange that is relayed has ended.
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

// CloseWrite tells the client that it gets nothing more.
func (f *Front) CloseWrite() error { return closeWrite(f.relay.client.conn) }

func (f *Front) Write(p []byte) (int, error) { return f.relay.client.conn.Write(p) }

// NetConn returns the client's connection.
func (f *Front) NetConn() net.Conn { return f.relay.client.conn }

// LocalAddr is that of the client's connection.
func (f *Front) LocalAddr() net.Addr { return f.relay.client.conn.LocalAddr() }

// RemoteAddr is that of the client's connection.
func (f *Front) RemoteAddr() net.Addr { return f.relay.client.conn.RemoteAddr() }

// SetDeadline sets both deadlines.
func (f *Front) SetDeadline(t time.Time) error {
	_ = f.SetReadDeadline(t)
	return f.SetWriteDeadline(t)
}

// SetReadDeadline bounds reading while the server has a request, and ends a read that
// waits for the server's own answer.
func (f *Front) SetReadDeadline(t time.Time) error {
	f.mu.Lock()
	f.interrupted = !t.IsZero() && t.Before(time.Now())
	f.changed.Broadcast()
	f.mu.Unlock()
	return f.relay.client.conn.SetReadDeadline(t)
}

// SetWriteDeadline sets that of the client's connection.
func (f *Front) SetWriteDeadline(t time.Time) error {
	return f.relay.client.conn.SetWriteDeadline(t)
}
