package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/captures/store"
)

// errTooLarge ends reading a response that is larger than Options.MaxBytes.
var errTooLarge = errors.New("the answer is larger than the limit")

// A record stores one exchange that is sent during a replay: in memory, for the comparison with the
// captured one, and in the output capture if there is one.
type record struct {
	// profile is the profile of the captured exchange.
	profile *profile.Profile

	// mu guards the fields below: request and response are recorded concurrently.
	mu sync.Mutex

	// ex is the exchange as recorded so far.
	ex captures.Exchange

	// chunks are the body bytes of both directions, in order.
	chunks []captures.Chunk

	// down is the number of bytes that the server has sent.
	down int64

	// limit is the maximum of down. The call ends with an error beyond it.
	limit int64
	// out is the recording in the output capture; nil if nothing is recorded.
	out captures.Recording
}

// newRecord starts the record of a plan's request, or of its connection. out is the output capture; it
// may be nil.
func newRecord(p *Plan, out *store.Store) (*record, error) {
	if p.overConnection() {
		return newConnectionRecord(p, out)
	}
	return p.record(captures.Exchange{
		ID: 1, Method: p.shown.Method, URL: p.shown.URL, HTTP: p.shown.HTTP, RequestHeaders: p.kept, RequestTrailers: p.shown.Trailers,
	}, out)
}

// record starts the record of an exchange that is about to be sent; ex has the request. Secrets of the
// plan are redacted in the output capture out, which may be nil.
func (p *Plan) record(ex captures.Exchange, out *store.Store) (*record, error) {
	ex.Started, ex.Source = time.Now(), "replay"
	r := &record{profile: p.captured.Profile, limit: p.o.MaxBytes, ex: ex}
	if out == nil {
		return r, nil
	}
	if known := out.Redactor; known != nil {
		// an answer may repeat them
		for _, secret := range p.secrets {
			known.Headers(captures.Headers{{Name: "authorization", Value: secret}, {Name: "x-api-key", Value: secret}})
		}
	}
	var err error
	if r.out, err = out.Begin(r.ex); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return r, nil
}

// id returns the number of the exchange in the output capture; 0 if nothing is recorded.
func (r *record) id() int64 {
	if r.out == nil {
		return 0
	}
	return r.out.ID()
}

// chunk records bytes of a body in direction dir, which must not be modified afterwards.
//
// Errors: errTooLarge.
func (r *record) chunk(dir captures.Direction, b []byte) (captures.Chunk, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := captures.Chunk{Exchange: r.ex.ID, Dir: dir, Seq: int64(len(r.chunks)), T: time.Since(r.ex.Started), Data: b}
	if dir == captures.Down {
		if r.down += int64(len(b)); r.down > r.limit {
			return c, fmt.Errorf("%w of %d bytes", errTooLarge, r.limit)
		}
		r.ex.BytesDown += int64(len(b))
	} else {
		r.ex.BytesUp += int64(len(b))
	}
	r.chunks = append(r.chunks, c)
	if r.out != nil {
		r.out.Chunk(dir, b)
	}
	return c, nil
}

// response records the status, HTTP version, headers and connection of the response. server is the
// address that answered.
func (r *record) response(status int, version string, h captures.Headers, tls captures.TLS, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.Status, r.ex.ResponseHeaders, r.ex.TLS, r.ex.Server, r.ex.HTTP = status, h, tls, server, version
	if r.out != nil {
		r.out.Connection(tls, server)
		r.out.Response(status, h)
	}
}

// end records how the exchange ended. reason describes the error; "" if there was none.
func (r *record) end(trailers captures.Headers, o captures.Outcome, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.ResponseTrailers, r.ex.Outcome, r.ex.Error, r.ex.Duration = trailers, o, reason, time.Since(r.ex.Started)
	if r.out != nil {
		if len(trailers) > 0 {
			r.out.Trailers(captures.Down, trailers)
		}
		r.out.End(o, reason)
	}
}

// snapshot returns a copy of the exchange as recorded so far.
func (r *record) snapshot() captures.Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ex
}

// Exchange returns the recorded exchange; its arguments are ignored. With Profile and Chunks, it makes
// record a captures.Source, so that a record can be decoded like a capture.
func (r *record) Exchange(context.Context, int64) (*captures.Exchange, error) {
	ex := r.snapshot()
	return &ex, nil
}

// Profile returns the profile of the captured exchange.
func (r *record) Profile() *profile.Profile { return r.profile }

// Chunks yields the body chunks recorded so far.
func (r *record) Chunks(context.Context, int64, int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, c := range r.chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// message records a WebSocket message, or bytes of a raw connection, in direction dir. op is the
// message's opcode.
func (r *record) message(dir captures.Direction, op captures.Opcode, b []byte) captures.Chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := captures.Chunk{Exchange: r.ex.ID, Dir: dir, Seq: int64(len(r.chunks)), T: time.Since(r.ex.Started), Data: b}
	if r.ex.Transport == captures.WebSocket {
		c.Opcode = op | captures.OpFinal
	}
	if dir == captures.Down {
		r.down += int64(len(b))
		r.ex.BytesDown += int64(len(b))
	} else {
		r.ex.BytesUp += int64(len(b))
	}
	r.chunks = append(r.chunks, c)
	switch {
	case r.out == nil:
	case r.ex.Transport == captures.WebSocket:
		r.out.Message(dir, c.Opcode, b)
	default:
		r.out.Chunk(dir, b)
	}
	return c
}

// tooLarge reports whether the server has sent more bytes than the limit.
func (r *record) tooLarge() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down > r.limit
}

// connection records the TLS state of a WebSocket or raw connection.
func (r *record) connection(t captures.TLS) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ex.TLS = t; r.out != nil {
		r.out.Connection(t, r.ex.Server)
	}
}

// opened completes the record r of a WebSocket after its handshake: it copies the connection, and
// status and headers of the response, and relates both exchanges. server is the address that answered.
func (r *record) opened(handshake *record, h captures.Headers, server string) {
	was := handshake.snapshot()
	r.connection(was.TLS)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.Server = server
	r.ex.Status, r.ex.ResponseHeaders = was.Status, h // in memory, to be compared
	if r.out != nil {
		r.out.Connection(was.TLS, server)
		r.out.Relate(captures.HandshakeOf, handshake.id())
	}
}

// newConnectionRecord starts the record of a connection. For a WebSocket, that is the record of its
// handshake.
func newConnectionRecord(p *Plan, out *store.Store) (*record, error) {
	if p.captured.Transport == captures.WebSocket {
		return p.record(captures.Exchange{ID: 1, Method: p.shown.Method, URL: requestURL(p.shown.URL), HTTP: "1.1", RequestHeaders: p.kept}, out)
	}
	return p.record(captures.Exchange{ID: 1, Transport: p.transportOf(), URL: p.shown.URL}, out)
}
