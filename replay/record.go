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

// errTooLarge ends an answer that is larger than Options.MaxBytes.
var errTooLarge = errors.New("the answer is larger than the limit")

// A record stores the one exchange of a replay: in memory, for the comparison, and in a capture if
// there is one.
type record struct {
	profile *profile.Profile

	mu     sync.Mutex
	ex     captures.Exchange
	chunks []captures.Chunk
	down   int64
	limit  int64
	// out is the recording in the output capture; nil if nothing is recorded.
	out captures.Recording
}

func newRecord(p *Plan, out *store.Store) (*record, error) {
	if p.overConnection() {
		return newConnectionRecord(p, out)
	}
	return p.record(captures.Exchange{
		ID: 1, Method: p.shown.Method, URL: p.shown.URL, HTTP: p.shown.HTTP, RequestHeaders: p.kept, RequestTrailers: p.shown.Trailers,
	}, out)
}

// record starts to record an exchange of a replay.
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

// chunk records bytes of a body. b must not be modified afterwards.
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

func (r *record) response(status int, version string, h captures.Headers, tls captures.TLS, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.Status, r.ex.ResponseHeaders, r.ex.TLS, r.ex.Server, r.ex.HTTP = status, h, tls, server, version
	if r.out != nil {
		r.out.Connection(tls, server)
		r.out.Response(status, h)
	}
}

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

// Exchange returns the one exchange. With Chunks, it makes a record a captures.Source.
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

// message keeps a message of a WebSocket, or bytes of another connection.
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

// tooLarge reports whether the response exceeded the size limit.
func (r *record) tooLarge() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down > r.limit
}

// connection records the TLS state of a connection without HTTP.
func (r *record) connection(t captures.TLS) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ex.TLS = t; r.out != nil {
		r.out.Connection(t, r.ex.Server)
	}
}

// opened makes r the recording of the WebSocket that a handshake has opened.
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

// newConnectionRecord begins the record of a connection: of its handshake, if it has one.
func newConnectionRecord(p *Plan, out *store.Store) (*record, error) {
	if p.captured.Transport == captures.WebSocket {
		return p.record(captures.Exchange{ID: 1, Method: p.shown.Method, URL: requestURL(p.shown.URL), HTTP: "1.1", RequestHeaders: p.kept}, out)
	}
	return p.record(captures.Exchange{ID: 1, Transport: p.transportOf(), URL: p.shown.URL}, out)
}
