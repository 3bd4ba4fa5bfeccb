package captures

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// frameOf returns an enveloped message of n bytes of text, as a token delta is.
func frameOf(n int) []byte {
	return envelope(0, bytes.Repeat([]byte("the answer, "), n/12+1)[:n])
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
			s := must(Create(filepath.Join(b.TempDir(), "a.uwc"), c.o))(b)
			h := Headers{{"content-type", "application/connect+proto"}, {"authorization", "Bearer made-up-secret-token"}}
			r := must(s.Begin(Exchange{RequestHeaders: h}))(b)
			r.Response(200, h)
			b.ResetTimer()
			for range b.N {
				r.Chunk(Down, frame)
			}
			check(b, s.Flush(b.Context()))
			took := b.Elapsed()
			b.StopTimer()
			check(b, s.Close())
			b.ReportMetric(float64(b.N)/took.Seconds(), "frames/s")
			b.ReportMetric(took.Seconds()/plainInsert(b, frame, b.N).Seconds(), "x-plain-insert")
		})
	}
}

// plainInsert is the time that n bare rows take.
func plainInsert(b *testing.B, frame []byte, n int) time.Duration {
	db := must(sql.Open("sqlite", filepath.Join(b.TempDir(), "plain.db")))(b)
	db.SetMaxOpenConns(1)
	defer func() { check(b, db.Close()) }()
	if _, err := db.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE c (n INTEGER PRIMARY KEY, exchange INTEGER, seq INTEGER, dir INTEGER, t INTEGER, data BLOB)"); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for i := 0; i < n; {
		tx := must(db.Begin())(b)
		add := must(tx.Prepare("INSERT INTO c VALUES (?, ?, ?, ?, ?, ?)"))(b)
		for range 100 {
			if i++; i > n {
				break
			}
			if _, err := add.Exec(i, 1, i, 1, i, frame); err != nil {
				b.Fatal(err)
			}
		}
		check(b, tx.Commit())
	}
	return time.Since(began)
}

// BenchmarkStoreBulk records chunks of 64 KiB, as a download has them.
func BenchmarkStoreBulk(b *testing.B) {
	noise := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for name, p := range map[string][]byte{"random": noise, "text": frameOf(64 << 10)} {
		b.Run(name, func(b *testing.B) {
			s := must(Create(filepath.Join(b.TempDir(), "a.uwc"), Options{}))(b)
			r := must(s.Begin(Exchange{}))(b)
			b.SetBytes(int64(len(p)))
			p := bytes.Clone(p)
			b.ResetTimer()
			for i := range b.N {
				copy(p, fmt.Sprint(i)) // no two alike
				r.Chunk(Down, p)
			}
			check(b, s.Flush(b.Context()))
			b.StopTimer()
			check(b, s.Close())
		})
	}
}

// BenchmarkRead reads the chunks of an exchange back.
func BenchmarkRead(b *testing.B) {
	const n = 20_000
	path := filepath.Join(b.TempDir(), "a.uwc")
	s := must(Create(path, Options{}))(b)
	r := must(s.Begin(Exchange{}))(b)
	frame := frameOf(60)
	for range n {
		r.Chunk(Down, frame)
	}
	r.End(Complete, "")
	check(b, s.Close())
	s = must(Open(path))(b)
	defer func() { check(b, s.Close()) }()
	b.ResetTimer()
	for range b.N {
		if got := len(all(b, s.Chunks(b.Context(), 1, 0))); got != n {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "chunks/s")
}

// BenchmarkRedact searches bodies for secrets, a hundred being known.
func BenchmarkRedact(b *testing.B) {
	noise := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	r := DefaultRedactor()
	for i := range 100 {
		r.Learn(fmt.Sprintf("%x-made-up-secret-%d", i*7919, i))
	}
	for name, p := range map[string][]byte{
		"random": noise, "text": frameOf(64 << 10),
		"json": bytes.Repeat([]byte(`{"id":"a1b2","text":"some words","n":[1,2,3],"ok":true},`), 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			body := NewBodyFilter(r, nil)
			for range b.N {
				body.Write(&Chunk{Data: p})
				body.Ready()
			}
		})
	}
}

// BenchmarkRedactCompressed searches small messages that are compressed one by one.
func BenchmarkRedactCompressed(b *testing.B) {
	for _, encoding := range []string{"gzip", "zstd", "br"} {
		b.Run(encoding, func(b *testing.B) {
			p := envelope(1, must(deflate(encoding, frameOf(200)))(b))
			h := Headers{{"content-type", "application/connect+proto"}, {"connect-content-encoding", encoding}}
			body := NewBodyFilter(DefaultRedactor(), h)
			b.ReportAllocs()
			for range b.N {
				body.Write(&Chunk{Data: p})
				body.Ready()
			}
		})
	}
}
