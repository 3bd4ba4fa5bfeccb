// Package samples makes captures for the tests of the foreign formats, and
// reads them whole to compare them.
package samples

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
)

// Store creates an empty capture, which is closed at the end of the test.
func Store(t testing.TB, dir string, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Create(filepath.Join(dir, "a.uwc"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Record records n pseudo-random exchanges, which depend on seed: plain HTTP with and without content-encoding,
// Connect streams with compressed frames, failures, header values that are not UTF-8, trailers, and chunks
// whose boundaries are not those of frames.
func Record(t testing.TB, s *store.Store, seed uint64, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		ex := captures.Exchange{
			Method: "POST", URL: fmt.Sprintf("https://api.example/p.v1.Service/Call%d?x=%d&y=a%%20b", r.IntN(4), r.IntN(100)),
			HTTP: []string{"1.1", "2"}[r.IntN(2)], Started: time.Unix(1_700_000_000+int64(i), r.Int64N(1e9)).UTC(),
			Client: "127.0.0.1:5000", Server: "10.0.0.1:443", Source: "proxy",
			TLS:            captures.TLS{Version: "1.3", ALPN: "h2", ServerName: "api.example"},
			RequestHeaders: captures.Headers{{Name: "X-Odd", Value: "\xff\x01\"é"}, {Name: "x-twice", Value: "1"}, {Name: "x-twice", Value: "a\nb"}},
		}

		// Draw all properties from the seeded generator, so that a failing test can be repeated.
		end := time.Duration(r.Int64N(5e9))
		stream := r.IntN(2) == 0
		media := "application/proto"
		if stream {
			media = "application/connect+proto"
			ex.RequestHeaders = append(ex.RequestHeaders, captures.Header{Name: "connect-content-encoding", Value: "gzip"})
		}
		ex.RequestHeaders = append(ex.RequestHeaders, captures.Header{Name: "content-type", Value: media})
		rec, err := s.Begin(ex)
		if err != nil {
			t.Fatal(err)
		}

		// Some exchanges fail before a response.
		if r.IntN(8) == 0 {
			rec.EndAt(end, captures.Failed, "dial tcp: refused")
			continue
		}
		down := captures.Headers{{Name: "content-type", Value: media}, {Name: "x-session-id", Value: fmt.Sprint(r.IntN(3))}}
		body := message(r, r.IntN(200))
		if stream {
			body = frames(r)
			down = append(down, captures.Header{Name: "connect-content-encoding", Value: "gzip"})
		} else if r.IntN(2) == 0 && len(body) > 0 {
			down = append(down, captures.Header{Name: "content-encoding", Value: "gzip"})
			body = gzip(body)
		}
		up := frames(r)
		if !stream {
			up = message(r, r.IntN(50))
		}

		// The body arrives in random pieces, because formats must keep the boundaries of chunks.
		at := recordPieces(r, rec, captures.Up, up, 0)
		rec.Response(200, down)
		recordPieces(r, rec, captures.Down, body, at)
		if r.IntN(2) == 0 {
			rec.Trailers(captures.Up, captures.Headers{{Name: "x-up", Value: "\xfe"}})
			rec.Trailers(captures.Down, captures.Headers{{Name: "grpc-status", Value: "0"}, {Name: "x-t", Value: "v"}})
		}

		// The outcomes include endings without an end of the stream, which formats must keep.
		outcome := []captures.Outcome{captures.Complete, captures.Complete, captures.Reset, captures.Canceled}[r.IntN(4)]
		rec.EndAt(end, outcome, "")
	}
	if err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// message returns a random protobuf message with a text, a number, and n random bytes in a bytes field.
func message(r *rand.Rand, n int) []byte {
	if n == 0 {
		return nil
	}
	text := fmt.Sprintf("Hello, %d of %d times.", r.IntN(10), n)
	b := append([]byte{0x0a, byte(len(text))}, text...)
	b = append(b, 0x10, byte(r.IntN(128)), 0x1a, byte(n%100))
	for range n % 100 {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// gzip returns p compressed with gzip.
func gzip(p []byte) []byte {
	b, err := envelope.Compress("gzip", p)
	if err != nil {
		panic(err) // gzip is a codec that there is
	}
	return b
}

// frames returns the random frames of a Connect stream, some of them compressed.
func frames(r *rand.Rand) []byte {
	var b []byte
	for range r.IntN(5) {
		p := message(r, 1+r.IntN(120))
		if r.IntN(2) == 0 {
			b = envelope.Append(b, envelope.Compressed, gzip(p))
		} else {
			b = envelope.Append(b, 0, p)
		}
	}
	return envelope.Append(b, envelope.EndStream, []byte("{}"))
}

// recordPieces records a body in chunks of random sizes, the first of them at time at, and returns the time of
// the last one.
func recordPieces(r *rand.Rand, rec captures.Recording, dir captures.Direction, body []byte, at time.Duration) time.Duration {
	for len(body) > 0 {
		n := 1 + r.IntN(min(len(body), 150))
		at += time.Duration(r.Int64N(1e7))
		rec.ChunkAt(dir, at, body[:n])
		body = body[n:]
	}
	return at
}

// A Whole is an exchange with its chunks and relations.
type Whole struct {
	// The embedded Exchange is the request and response without their bodies.
	captures.Exchange
	// Chunks are the body bytes of the exchange, in the order of arrival.
	Chunks []captures.Chunk
	// Relations are the links from the exchange to other exchanges, such as to the handshake of a WebSocket.
	Relations []captures.Relation
}

// Read reads all exchanges of a capture into memory.
func Read(t testing.TB, s *store.Store) []Whole {
	t.Helper()
	ctx := context.Background()
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	related, err := s.Relations(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []Whole
	for ex, err := range s.Exchanges(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		w := Whole{Exchange: *ex}
		w.Started = w.Started.UTC()
		for c, err := range s.Chunks(ctx, ex.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			w.Chunks = append(w.Chunks, c)
		}
		// Relations are read once for the whole capture.
		for _, r := range related {
			if r.Exchange == ex.ID {
				w.Relations = append(w.Relations, r)
			}
		}
		all = append(all, w)
	}
	return all
}
