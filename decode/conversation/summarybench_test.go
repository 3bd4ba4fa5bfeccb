package conversation

import (
	"fmt"
	"path/filepath"
	"testing"

	"unwire/captures"
	"unwire/decode/envelope"
)

// recordMillion records n exchanges of frames frames each.
func recordMillion(tb testing.TB, path string, n, frames int) {
	tb.Helper()
	store, err := captures.Create(path, captures.Options{KeepSecrets: true})
	if err != nil {
		tb.Fatal(err)
	}
	c := headers("content-type", "application/connect+proto", "user-agent", "connect-es/1.6.1", "connect-protocol-version", "1",
		"x-request-id", "6b1f0c9e-2d0b-4a30-9f5e-0b9c1a7d1c11", "date", "Sat, 21 Nov 2026 10:22:09 GMT", "accept-encoding", "gzip, br")
	delta := envelope.Append(nil, 0, append([]byte{0x0a, 48, 0x0a, 46}, "the next words of an answer as a model says it"...))
	for range n {
		rec, err := store.Begin(captures.Exchange{Method: "POST", URL: "https://api.example.com" + "/agent.v1.AgentService/Run", HTTP: "2", RequestHeaders: c})
		if err != nil {
			tb.Fatal(err)
		}
		rec.Chunk(captures.Up, delta)
		rec.Response(200, c)
		for range frames - 2 {
			rec.Chunk(captures.Down, delta)
		}
		rec.Chunk(captures.Down, envelope.Append(nil, envelope.EndStream, []byte("{}")))
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkListMillionFrames opens and lists a capture of a million frames in
// 2,000 exchanges: without summaries, as a recorder that was killed leaves it,
// and with them.
func BenchmarkListMillionFrames(b *testing.B) {
	const exchanges, frames = 2000, 500
	path := filepath.Join(b.TempDir(), "a.uwc")
	recordMillion(b, path, exchanges, frames)
	list := func(b *testing.B, save bool) {
		store, err := captures.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close() //nolint:errcheck // open for reading
		l, err := ListExchanges(b.Context(), store)
		if err != nil || len(l.Exchanges) != exchanges || l.Exchanges[0].FramesDown != frames-1 {
			b.Fatal(fmt.Errorf("%d exchanges, %w", len(l.Exchanges), err))
		}
		if save {
			if err := l.Save(b.Context(), store); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("derived", func(b *testing.B) {
		for range b.N {
			list(b, false)
		}
		b.ReportMetric(float64(b.N)*exchanges*frames/b.Elapsed().Seconds(), "frames/s")
	})
	list(b, true)
	b.Run("summarised", func(b *testing.B) {
		for range b.N {
			list(b, false)
		}
	})
}
