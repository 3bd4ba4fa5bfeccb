package schemacmd_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/cli"
	"unwire/decode/envelope"
)

// chatFrame is one of a stream's messages, of about so many bytes: an id, a number that
// counts, a kind and text, and in the larger ones parts of the same again.
func chatFrame(r *rand.Rand, i, size int) []byte {
	const words = "the answer is that a stream of words which a model writes has more to say of files and tests than one would think "
	text := func(n int) []byte {
		var p []byte
		for len(p) < n {
			at := r.IntN(len(words) - 8)
			p = append(p, words[at:at+min(8, n-len(p))]...)
		}
		return p
	}
	put := func(b []byte, n protowire.Number, p []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), p)
	}
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	m := number(number(nil, 1, uint64(i)), 2, r.Uint64N(4))
	if size < 64 {
		return put(nil, 1, put(m, 3, text(size-len(m)-4)))
	}
	m = put(m, 4, fmt.Appendf(nil, "%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48)))
	m = number(m, 5, 1_780_000_000_000+r.Uint64N(1e9))
	for len(m) < size-4 {
		m = put(m, 6, number(put(nil, 1, text(min(size-len(m), 20+r.IntN(200)))), 2, r.Uint64N(900)))
	}
	return put(nil, 1, m)
}

// chatCapture writes streams of chat frames, a chunk each as a proxy records them, of
// about so many bytes in all, and returns the messages one behind the other, too.
func chatCapture(tb testing.TB, exchanges, size, total int) (file string, messages []byte, frames int) {
	tb.Helper()
	file = filepath.Join(tb.TempDir(), "a.uwc")
	store, err := store.Create(file, store.Options{KeepSecrets: true})
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, uint64(size)))
	proto := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	for range exchanges {
		rec, err := store.Begin(captures.Exchange{
			Method: "POST", URL: "https://h.example/a.B/Run", HTTP: "2", Status: 200, RequestHeaders: proto, ResponseHeaders: proto,
		})
		if err != nil {
			tb.Fatal(err)
		}
		for done := 0; done < total/exchanges; frames++ {
			m := chatFrame(r, frames, size)
			rec.Chunk(captures.Down, envelope.Append(nil, 0, m))
			done += len(m)
			messages = append(messages, m...)
		}
		rec.End(captures.Complete, "")
	}
	if err := store.Close(); err != nil {
		tb.Fatal(err)
	}
	return file, messages, frames
}

// besideWalk runs f as the benchmark, and a walk over the tags of messages in turn
// with it. It reports as "x-walk" how many times as long the best round of f takes.
func besideWalk(b *testing.B, messages []byte, f func()) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(messages)))
	best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	round := func(i int, f func()) {
		start := time.Now()
		f()
		best[i] = min(best[i], time.Since(start))
	}
	for b.Loop() {
		round(0, f)
		b.StopTimer()
		round(1, func() { walkTags(messages) })
		b.StartTimer()
	}
	b.ReportMetric(float64(best[0])/float64(best[1]), "x-walk")
}

// walkTags reads all fields of messages, and of payloads that begin like one.
func walkTags(b []byte) {
	for len(b) > 0 {
		_, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if typ == protowire.BytesType {
			var v []byte
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				walkTags(v)
			}
		} else {
			n = protowire.ConsumeFieldValue(1, typ, b)
		}
		if n < 0 {
			return
		}
		b = b[n:]
	}
}

// BenchmarkInfer is 'schema infer' from a capture's file to the definitions, on one core,
// by the size of its frames, beside a bare walk over the same messages; and of one
// stream, on all cores.
func BenchmarkInfer(b *testing.B) {
	infer := func(b *testing.B, file string) {
		if status := cli.Run([]string{"schema", "infer", file}, strings.NewReader(""), io.Discard, io.Discard); status != 0 {
			b.Fatalf("status %d", status)
		}
	}
	for _, size := range []int{30, 150, 430, 4000} {
		b.Run(fmt.Sprintf("%d-byte-frames", size), func(b *testing.B) {
			file, messages, frames := chatCapture(b, 8, size, 12<<20)
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			besideWalk(b, messages, func() { infer(b, file) })
			b.ReportMetric(float64(b.N)*float64(frames)/b.Elapsed().Seconds(), "frames/s")
		})
	}
	b.Run("one-stream", func(b *testing.B) {
		file, messages, _ := chatCapture(b, 1, 150, 12<<20)
		besideWalk(b, messages, func() { infer(b, file) })
	})
	b.Run("10000-frames", func(b *testing.B) {
		file, _, _ := chatCapture(b, 1, 150, 1_500_000)
		for b.Loop() {
			infer(b, file)
		}
	})
}
