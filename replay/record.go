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

// A record keeps what passes of the one exchange of a replay: in memory, to
// compare it, and in a capture where there is one.
type record struct {
	profile *profile.Profile

	mu     sync.Mutex
	ex     captures.Exchange
	chunks []captures.Chunk
	down   int64
	limit  int64
	out    captures.Recording // nil: memory only
}

func newRecord(p *Plan, out *store.Store) (*record, error) {
	return p.record(captures.Exchange{
		ID: 1, Method: p.shown.Method, URL: p.shown.URL, HTTP: p.shown.HTTP, RequestHeaders: p.kept, RequestTrailers: p.shown.Trailers,
	}, out)
}

// record begins the record of an exchange of a replay.
func (p *Plan) record(ex captures.Exchange, out *store.Store) (*record, error) {
	ex.Started, ex.Source = time.Now(), "replay"
	r := &record{profile: p.captured.Profile, limit: p.o.MaxBytes, ex: ex}
	if out == nil {
		return r, nil
	}
	if known := out.Redactor; known != nil {
		for _, secret := range p.secrets { // an answer may repeat them
			known.Headers(captures.Headers{{Name: "authorization", Value: secret}, {Name: "x-api-key", Value: secret}})
		}
	}
	var err error
	if r.out, err = out.Begin(r.ex); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return r, nil
}

// id is the exchange's number in the capture; 0 without one.
func (r *record) id() int64 {
	if r.out == nil {
		return 0
	}
	return r.out.ID()
}

// chunk keeps bytes of a body. b is not changed afterwards.
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

// snapshot is what is known of the exchange by now.
func (r *record) snapshot() captures.Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ex
}

// Exchange and Chunks make a record a captures.Source of its one exchange.
func (r *record) Exchange(context.Context, int64) (*captures.Exchange, error) {
	ex := r.snapshot()
	return &ex, nil
}

// Profile is that of the captured exchange.
func (r *record) Profile() *profile.Profile { return r.profile }

// Chunks yields the chunks so far.
func (r *record) Chunks(context.Context, int64, int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, c := range r.chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}
