package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/decode/envelope"
)

// frameOf returns an enveloped message of n bytes of text, as a token delta is.
func frameOf(n int) []byte {
	return envelope.Append(nil, 0, bytes.Repeat([]byte("the answer, "), n/12+1)[:n])
}

// BenchmarkStoreFrames records one stream of small frames until all are
// committed. The ratio is the time against inserting the same rows in batches
// of 100 without anything else.
func BenchmarkStoreFrames(b *testing.B) {
	frame := frameOf(60)
	for _, c := range []struct {
		name string
		o    Options
	}{{"redacted", Options{}}, {"secrets kept", Options{KeepSecrets: true}}} {
		b.Run(c.name, func(b *testing.B) {
			s := require.Value(Create(filepath.Join(b.TempDir(), "a.uwc"), c.o))(b)
			h := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "authorization", Value: "Bearer made-up-secret-token"}}
			r := require.Value(s.Begin(captures.Exchange{RequestHeaders: h}))(b)
			r.Response(200, h)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				r.Chunk(captures.Down, frame)
			}
			require.NoError(b, s.Flush(b.Context()))
			took := b.Elapsed()
			b.StopTimer()
			require.NoError(b, s.Close())
			b.ReportMetric(float64(b.N)/took.Seconds(), "frames/s")
			b.ReportMetric(took.Seconds()/plainInsert(b, frame, b.N).Seconds(), "x-plain-insert")
		})
	}
}

// plainInsert is the time that n bare rows take.
func plainInsert(b *testing.B, frame []byte, n int) time.Duration {
	db := require.Value(sql.Open("sqlite", filepath.Join(b.TempDir(), "plain.db")))(b)
	db.SetMaxOpenConns(1)
	defer func() { require.NoError(b, db.Close()) }()
	if _, err := db.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE c (n INTEGER PRIMARY KEY, exchange INTEGER, seq INTEGER, dir INTEGER, t INTEGER, data BLOB)"); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for i := 0; i < n; {
		tx := require.Value(db.Begin())(b)
		add := require.Value(tx.Prepare("INSERT INTO c VALUES (?, ?, ?, ?, ?, ?)"))(b)
		for range 100 {
			if i++; i > n {
				break
			}
			if _, err := add.Exec(i, 1, i, 1, i, frame); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, tx.Commit())
	}
	return time.Since(began)
}

// BenchmarkStoreBulk records chunks of 64 KiB, as a download has them.
func BenchmarkStoreBulk(b *testing.B) {
	noise := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for name, p := range map[string][]byte{"random": noise, "text": frameOf(64 << 10)} {
		b.Run(name, func(b *testing.B) {
			s := require.Value(Create(filepath.Join(b.TempDir(), "a.uwc"), Options{}))(b)
			r := require.Value(s.Begin(captures.Exchange{}))(b)
			b.SetBytes(int64(len(p)))
			p := bytes.Clone(p)
			b.ResetTimer()
			for i := range b.N {
				copy(p, fmt.Sprint(i)) // no two alike
				r.Chunk(captures.Down, p)
			}
			require.NoError(b, s.Flush(b.Context()))
			b.StopTimer()
			require.NoError(b, s.Close())
		})
	}
}

// BenchmarkRead reads the chunks of an exchange back.
func BenchmarkRead(b *testing.B) {
	const n = 20_000
	path := filepath.Join(b.TempDir(), "a.uwc")
	s := require.Value(Create(path, Options{}))(b)
	r := require.Value(s.Begin(captures.Exchange{}))(b)
	frame := frameOf(60)
	for range n {
		r.Chunk(captures.Down, frame)
	}
	r.End(captures.Complete, "")
	require.NoError(b, s.Close())
	s = require.Value(Open(path, ReadOptions{}))(b)
	defer func() { require.NoError(b, s.Close()) }()
	b.ResetTimer()
	for range b.N {
		if got := len(require.All(b, s.Chunks(b.Context(), 1, 0))); got != n {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "chunks/s")
}

// BenchmarkStoreExchanges records small calls until all are committed, as a recorder sees
// them.
func BenchmarkStoreExchanges(b *testing.B) {
	s := require.Value(Create(filepath.Join(b.TempDir(), "a.uwc"), Options{}))(b)
	request := captures.Headers{
		{Name: "content-type", Value: "application/proto"},
		{Name: "user-agent", Value: "connect-go/1.19.1 (go1.26)"},
		{Name: "connect-protocol-version", Value: "1"},
		{Name: "authorization", Value: "Bearer made-up-secret-token"},
	}
	response := captures.Headers{{Name: "content-type", Value: "application/proto"}, {Name: "content-length", Value: "100"}, {Name: "date", Value: "Sun, 22 Nov 2026 12:00:00 GMT"}}
	tls := captures.TLS{Version: "1.3", Cipher: "TLS_AES_128_GCM_SHA256", ServerName: "h.example", ALPN: "h2"}
	body := bytes.Repeat([]byte("x"), 100)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		r := require.Value(s.Begin(captures.Exchange{Method: "POST", URL: "https://h.example/p.S/M", HTTP: "2", RequestHeaders: request, Client: "127.0.0.1:5000", Source: "proxy"}))(b)
		r.Connection(tls, "127.0.0.1:443")
		r.Chunk(captures.Up, body)
		r.Response(200, response)
		r.Chunk(captures.Down, body)
		r.End(captures.Complete, "")
	}
	require.NoError(b, s.Flush(b.Context()))
	b.StopTimer()
	require.NoError(b, s.Close())
}
