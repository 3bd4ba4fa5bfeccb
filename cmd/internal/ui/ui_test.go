package ui_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/cli"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/ui"
	"unwire/decode/envelope"
	"unwire/schema"
)

// serve serves the workbench for captures, and returns its address with the token.
func serve(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	s, err := ui.New(ui.Options{
		Files:   func() []string { return files },
		Open:    func(path string) (*query.Capture, error) { return query.Open(path, store.ReadOptions{}) },
		Filters: filepath.Join(dir, "config", "filters.json"),
		Version: "test",
		Definitions: func(ctx context.Context, path string) (*schema.Schema, error) {
			c, err := query.Open(path, store.ReadOptions{})
			if err != nil {
				return nil, err
			}
			defer c.Close()
			return c.KeptDefinitions(ctx)
		},
		Run: func(_ context.Context, args ...string) (stdout, stderr []byte, status int) {
			var out, said bytes.Buffer
			status = cli.Run(args, strings.NewReader(""), &out, &said)
			return out.Bytes(), said.Bytes(), status
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s.URL(l.Addr())
}

// create creates a capture, which finish closes.
func create(t testing.TB, name string) (s *store.Store, finish func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() string {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// started is when the exchanges of tests start.
var started = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// str is a field with a text, and num one with a number.
func str(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s)
}

func num(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

// msg is a field with a message.
func msg(n protowire.Number, fields ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), bytes.Join(fields, nil))
}

// A piece is a frame of a stream.
type piece struct {
	dir     captures.Direction
	at      time.Duration
	flags   envelope.Flags
	payload []byte
}

// recordStream records a Connect stream.
func recordStream(t testing.TB, s *store.Store, url string, outcome captures.Outcome, why string, pieces ...piece) int64 {
	t.Helper()
	media := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: url, HTTP: "2", Started: started, RequestHeaders: append(media, captures.Header{Name: "authorization", Value: "Bearer secret-token-1234567890abcdef"}), Source: "proxy"})
	if err != nil {
		t.Fatal(err)
	}
	rec.Response(200, media)
	last := time.Duration(0)
	for _, p := range pieces {
		rec.ChunkAt(p.dir, p.at, envelope.Append(nil, p.flags, p.payload))
		last = p.at
	}
	rec.EndAt(last+time.Millisecond, outcome, why)
	return rec.ID()
}

// sample is a capture with a conversation, a failed call, JSON, and many plain calls.
func sample(t testing.TB) string {
	t.Helper()
	s, finish := create(t, "sample.uwc")
	compressed, err := envelope.Compress("gzip", bytes.Join([][]byte{str(1, "inside gzip"), num(2, 42)}, nil))
	if err != nil {
		t.Fatal(err)
	}
	pieces := []piece{
		{captures.Up, 0, 0, bytes.Join([][]byte{
			msg(1, str(1, "What does Backoff do?"), num(2, 1), str(3, "composer-1")),
			str(2, `{"model":"composer-1","tools":[{"name":"read_file","args":{"path":"a.go"}}]}`),
			msg(3, num(1, 1), num(1, 2), str(9, "9f1c7e0a-6a31-4f55-9d5e-2b8f6c1d0e11")),
			protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), compressed),
		}, nil)},
	}
	for i, word := range strings.Fields("Backoff waits longer after each failure and adds jitter so that clients do not retry together") {
		pieces = append(pieces, piece{captures.Down, time.Duration(100+40*i) * time.Millisecond, 0, msg(1, msg(1, str(1, word+" ")))})
	}
	pieces = append(pieces,
		piece{captures.Down, 3 * time.Second, 0, msg(1, msg(2, num(1, 17), num(2, 240)))},
		piece{captures.Down, 3100 * time.Millisecond, envelope.EndStream, []byte("{}")})
	recordStream(t, s, "https://api.example.com/agent.v1.AgentService/Run", captures.Complete, "", pieces...)
	recordStream(t, s, "https://api.example.com/agent.v1.AgentService/Run", captures.Complete, "",
		piece{captures.Up, 0, 0, msg(1, str(1, "Hello"), num(2, 0), str(3, "composer-2"))},
		piece{captures.Down, 20 * time.Millisecond, envelope.EndStream, []byte(`{"error":{"code":"resource_exhausted","message":"rate limit reached"}}`)})
	recordStream(t, s, "https://down.example.net/shop.v1.Shop/List", captures.Failed, "dial tcp 10.0.0.9:443: connect: connection refused")
	for i := range 40 {
		rec, err := s.Begin(captures.Exchange{
			Method: "POST", URL: fmt.Sprintf("https://shop.example.org/v1/items?page=%d", i), HTTP: "1.1", Started: started.Add(time.Duration(i) * time.Second),
			RequestHeaders: captures.Headers{{Name: "Content-Type", Value: "application/json"}}, Source: "proxy",
		})
		if err != nil {
			t.Fatal(err)
		}
		rec.ChunkAt(captures.Up, 0, fmt.Appendf(nil, `{"page":%d,"query":{"text":"blue shoes","tags":["a","b"]}}`, i))
		rec.Response(200, captures.Headers{{Name: "Content-Type", Value: "application/json"}})
		rec.ChunkAt(captures.Down, time.Duration(5+i)*time.Millisecond, fmt.Appendf(nil, `{"items":[{"id":%d,"name":"shoe","price":19.5}],"next":null}`, 1000+i))
		rec.EndAt(time.Duration(6+i)*time.Millisecond, captures.Complete, "")
	}
	return finish()
}

// shots is a folder for screenshots; "" for none.
var shots = os.Getenv("UNWIRE_SHOTS")
