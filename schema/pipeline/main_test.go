package pipeline

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism" // registers the runner
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
)

// TestMain registers the pipeline as the program does. The test program is also each process of BenchmarkMemory.
func TestMain(m *testing.M) {
	flag.Parse()
	log.LogLevel = "warn"
	Register()
	beam.Init()
	if name := os.Getenv(processVar); name != "" {
		if err := runProcess(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A segmentSpec says what a segment of a test has.
type segmentSpec struct {
	client    string
	day       int
	exchanges int
	seed      uint64
	// extra adds field 9 to requests.
	extra bool
}

// message is a request or response: an id, a counter, text, nested messages, and field 9 in later versions.
func message(r *rand.Rand, extra bool) []byte {
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	m := text(nil, 1, fmt.Sprintf("id-%08x", r.Uint32()))
	m = number(m, 2, r.Uint64N(1000))
	if r.IntN(3) > 0 {
		m = text(m, 3, "some words that are "+fmt.Sprint(r.IntN(100)))
	}
	for range r.IntN(3) {
		inner := number(text(nil, 1, "key"), 2, r.Uint64N(5))
		m = protowire.AppendBytes(protowire.AppendTag(m, 4, protowire.BytesType), inner)
	}
	m = protowire.AppendFixed64(protowire.AppendTag(m, 5, protowire.Fixed64Type), binary.LittleEndian.Uint64([]byte("\x00\x00\x00\x00\x00\x00\xf0\x3f")))
	if extra {
		m = text(m, 9, "new in this version")
	}
	return m
}

// writeSegment records a segment.
func writeSegment(tb testing.TB, name string, spec segmentSpec) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		tb.Fatal(err)
	}
	s, err := store.Create(name, store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.New(rand.NewPCG(spec.seed, 1))
	for i := range spec.exchanges {
		rpc := []string{"Run", "List"}[i%2]
		kind := "application/connect+proto"
		if rpc == "List" {
			kind = "application/proto"
		}
		headers := captures.Headers{{Name: "content-type", Value: kind}}
		rec, err := s.Begin(captures.Exchange{
			Method: "POST", URL: "https://h.example/shop.v1.ShopService/" + rpc, HTTP: "2", Status: 200,
			Started:        time.Date(2026, 1, 2+spec.day, 10, 0, int(spec.seed%60), i, time.UTC),
			RequestHeaders: append(headers, captures.Header{Name: "user-agent", Value: spec.client + " (test)"}), ResponseHeaders: headers,
		})
		if err != nil {
			tb.Fatal(err)
		}
		if rpc == "List" {
			rec.Chunk(captures.Up, message(r, spec.extra))
			rec.Chunk(captures.Down, message(r, false))
		} else {
			rec.Chunk(captures.Up, envelope.Append(nil, 0, message(r, spec.extra)))
			for range 1 + r.IntN(5) {
				rec.Chunk(captures.Down, envelope.Append(nil, 0, message(r, false)))
			}
		}
		rec.End(captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// writeSegments records n segments of two versions of a client and several days, and returns their names.
func writeSegments(tb testing.TB, dir string, n, exchanges int) (names []string) {
	tb.Helper()
	for i := range n {
		spec := segmentSpec{client: "shop/1.9", day: i % 4, exchanges: exchanges, seed: uint64(i + 1)}
		if i%4 >= 2 {
			spec.client, spec.extra = "shop/1.10", i%4 == 3
		}
		name := filepath.Join(dir, fmt.Sprintf("%04d.uwc", i))
		writeSegment(tb, name, spec)
		names = append(names, name)
	}
	return names
}

// run runs the pipeline.
func run(tb testing.TB, o Options) *Report {
	tb.Helper()
	report, err := Run(context.Background(), "prism", o)
	if err != nil {
		tb.Fatal(err)
	}
	return report
}
