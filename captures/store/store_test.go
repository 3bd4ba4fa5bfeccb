package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// testKey has the shape of a secret.
const testKey = "sk-proj-a1b2c3d4e5f6g7h8i9j0k1l2"

// record makes a capture with one finished exchange and returns its path.
func record(t testing.TB, chunks ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.uwc")
	s := require.Value(Create(path, Options{}))(t)
	r := require.Value(s.Begin(captures.Exchange{Method: "POST", URL: "https://h/p.S/M"}))(t)
	r.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
	for _, c := range chunks {
		r.Chunk(captures.Down, []byte(c))
	}
	r.End(captures.Complete, "")
	require.NoError(t, s.Close())
	return path
}

func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "odd name?%#.uwc")
	s := require.Value(Create(path, Options{}))(t)
	info := require.Value(os.Stat(path))(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	want := captures.Exchange{
		Method: "POST", URL: "https://api.example/agent.v1.AgentService/Run", HTTP: "2",
		RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/connect+proto"}, {Name: "X-Odd", Value: "\xff\x00é"}, {Name: "x-twice", Value: "1"}, {Name: "x-twice", Value: "2"}},
		Started:        time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Client: "127.0.0.1:5", Source: "proxy",
	}
	r := require.Value(s.Begin(want))(t)
	r.Connection(captures.TLS{Version: "1.3", Cipher: "TLS_AES_128_GCM_SHA256", ServerName: "api.example", ALPN: "h2", Unverified: true}, "10.0.0.1:443")
	big := bytes.Repeat([]byte("repeat me, please. "), 1000)
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(i * i >> 3 * 7)
	}
	r.ChunkAt(captures.Up, 1, []byte("hello"))
	r.ChunkAt(captures.Up, 2, nil)
	r.Response(200, captures.Headers{{Name: "trailer", Value: "x"}})
	r.ChunkAt(captures.Down, 3, big)
	r.ChunkAt(captures.Up, 4, noise)
	r.ChunkAt(captures.Down, 5, big)
	r.Trailers(captures.Down, captures.Headers{{Name: "grpc-status", Value: "0"}})
	r.Trailers(captures.Up, captures.Headers{{Name: "up", Value: "1"}})
	r.EndAt(6, captures.Complete, "")
	r.Chunk(captures.Up, []byte("too late"))
	second := require.Value(s.Begin(captures.Exchange{}))(t)
	if r.ID() != 1 || second.ID() != 2 {
		t.Fatalf("ids %d, %d", r.ID(), second.ID())
	}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	if left := require.Value(filepath.Glob(filepath.Join(filepath.Dir(path), "*")))(t); len(left) != 1 {
		t.Errorf("after Close: %q, want one file", left)
	}

	s = require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	want.ID, want.Status, want.Outcome, want.Duration = 1, 200, captures.Complete, 6
	want.ResponseHeaders = captures.Headers{{Name: "trailer", Value: "x"}}
	want.ResponseTrailers, want.RequestTrailers = captures.Headers{{Name: "grpc-status", Value: "0"}}, captures.Headers{{Name: "up", Value: "1"}}
	want.TLS = captures.TLS{Version: "1.3", Cipher: "TLS_AES_128_GCM_SHA256", ServerName: "api.example", ALPN: "h2", Unverified: true}
	want.Server, want.BytesUp, want.BytesDown = "10.0.0.1:443", 5005, 38000
	got := require.All(t, s.Exchanges(ctx))
	if len(got) != 2 {
		t.Fatalf("%d exchanges", len(got))
	}
	if d := cmp.Diff(&want, got[0]); d != "" {
		t.Error(d)
	}
	if got[1].Outcome != captures.Incomplete {
		t.Errorf("an open recording was closed as %q", got[1].Outcome)
	}
	if one := require.Value(s.Exchange(ctx, 1))(t); !cmp.Equal(one, got[0]) {
		t.Error("Exchange and Exchanges differ")
	}
	wantChunks := []captures.Chunk{
		{Exchange: 1, Dir: captures.Up, Seq: 0, T: 1, Data: []byte("hello")},
		{Exchange: 1, Dir: captures.Down, Seq: 1, T: 3, Data: big},
		{Exchange: 1, Dir: captures.Up, Seq: 2, T: 4, Data: noise},
		{Exchange: 1, Dir: captures.Down, Seq: 3, T: 5, Data: big},
	}
	if d := cmp.Diff(wantChunks, require.All(t, s.Chunks(ctx, 1, 0))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(wantChunks[2:], require.All(t, s.Chunks(ctx, 1, 2))); d != "" {
		t.Error(d)
	}
	if _, err := s.Exchange(ctx, 3); !errors.Is(err, captures.ErrNoExchange) || !strings.Contains(err.Error(), "exchange 3 does not exist") {
		t.Errorf("exchange 3: %v", err)
	}
	if _, err := s.Begin(captures.Exchange{}); !errors.Is(err, captures.ErrReadOnly) {
		t.Errorf("Begin on a read-only store: %v", err)
	}
}

// Repeated and compressible payloads must not take their size in the file.
func TestPayloadsAreStoredOnce(t *testing.T) {
	noise := make([]byte, 100<<10)
	x := uint64(1)
	for i := range noise {
		x = x*6364136223846793005 + 1442695040888963407
		noise[i] = byte(x >> 56)
	}
	var chunks []string
	for range 20 {
		chunks = append(chunks, string(noise))
	}
	chunks = append(chunks, strings.Repeat("a", 4<<20))
	info := require.Value(os.Stat(record(t, chunks...)))(t)
	if info.Size() > 500<<10 {
		t.Errorf("2 MB of one payload and 4 MB of one letter take %d bytes", info.Size())
	}
}

func TestAppend(t *testing.T) {
	ctx := context.Background()
	path := record(t, "one")
	s := require.Value(Create(path, Options{}))(t)
	r := require.Value(s.Begin(captures.Exchange{URL: "http://second"}))(t)
	if r.ID() != 2 {
		t.Errorf("id %d", r.ID())
	}
	r.Chunk(captures.Up, []byte("abc"))
	require.NoError(t, s.Flush(ctx))
	live := require.Value(s.Exchange(ctx, 2))(t)
	if live.BytesUp != 3 || live.Ended() {
		t.Errorf("in flight: %d bytes up, outcome %q", live.BytesUp, live.Outcome)
	}
	if _, err := Create(path, Options{}); !errors.Is(err, captures.ErrInUse) {
		t.Errorf("a second recorder: %v", err)
	}
	require.NoError(t, s.Close())
	if _, err := s.Begin(captures.Exchange{}); !errors.Is(err, captures.ErrClosed) {
		t.Errorf("Begin after Close: %v", err)
	}
}

// Pages must meet without gap or overlap.
func TestManyChunks(t *testing.T) {
	var chunks []string
	for i := range 3*pageRows + 1 {
		chunks = append(chunks, fmt.Sprint(i))
	}
	chunks = append(chunks, strings.Repeat("x", pageBytes), "y", "z")
	s := require.Value(Open(record(t, chunks...), ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	got := require.All(t, s.Chunks(context.Background(), 1, 0))
	if len(got) != len(chunks) {
		t.Fatalf("%d chunks, want %d", len(got), len(chunks))
	}
	for i, c := range got {
		if string(c.Data) != chunks[i] || c.Seq != int64(i) {
			t.Fatalf("chunk %d is %d: %.20q", i, c.Seq, c.Data)
		}
	}
}
