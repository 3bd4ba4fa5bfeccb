package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
	"unwire/captures/store/internal/payload"
)

// recordMany records small chunks of several exchanges in turn, and among them some
// that are large, empty, or stored by their hash.
func recordMany(t testing.TB, s *Store, exchanges, chunks int) {
	r := rand.New(rand.NewPCG(1, 2))
	var open []captures.Recording
	for range exchanges {
		open = append(open, require.Value(s.Begin(captures.Exchange{Method: "POST", URL: "https://h/p.S/M"}))(t))
	}
	again := make([]byte, 20<<10)
	for range chunks {
		to := open[r.IntN(len(open))]
		size := r.IntN(80)
		switch r.IntN(400) {
		case 0:
			size = 3900 + r.IntN(400) // about what a page has room for
		case 1:
			size = 30_000
		case 2:
			to.Chunk(captures.Down, again)
			continue
		}
		p := make([]byte, size)
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		to.Chunk(captures.Direction(r.IntN(2)), p)
	}
	for _, r := range open {
		r.End(captures.Complete, "")
	}
	require.NoError(t, s.Flush(t.Context()))
}

// byQueries reads an exchange's chunks without looking at pages.

func sameChunks(a, b []captures.Chunk) bool {
	return slices.EqualFunc(a, b, func(x, y captures.Chunk) bool {
		return x.Exchange == y.Exchange && x.Seq == y.Seq && x.Dir == y.Dir && x.T == y.T && x.Opcode == y.Opcode && bytes.Equal(x.Data, y.Data)
	})
}

// noise returns n bytes that do not compress, of a seed.
func noise(seed uint64, n int) []byte {
	p := make([]byte, n)
	r := rand.NewPCG(seed, 1)
	for i := range p {
		p[i] = byte(r.Uint64())
	}
	return p
}

// asOlderChunks puts the chunks of a capture where older formats have them, as in a file
// that was migrated.
func asOlderChunks(t testing.TB, path string) {
	t.Helper()
	s := require.Value(Open(path, ReadOptions{}))(t)
	type row struct {
		n int64
		captures.Chunk
		blob *int64
	}
	var rows []row
	blobs := make(map[int64]*int64)
	require.NoError(t, s.query(t.Context(), func(c *rowValues) bool {
		n, id := c.int(), c.int()
		blobs[n] = &id
		return true
	}, `SELECT n, blob FROM segments WHERE blob IS NOT NULL`))
	for e, err := range s.all(t.Context()) {
		require.NoError(t, err)
		if e.Kind == captures.Received {
			rows = append(rows, row{e.N, e.Chunk, blobs[e.N]})
		}
	}
	require.NoError(t, s.Close())
	db := require.Value(sql.Open("sqlite", path))(t)
	defer func() { require.NoError(t, db.Close()) }()
	tx := require.Value(db.Begin())(t)
	for _, r := range rows {
		var data any = r.Data
		if r.blob != nil {
			data = nil
		}
		require.Value(tx.Exec(`INSERT INTO chunks (n, exchange, seq, dir, t_ns, size, blob, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			r.n, r.Exchange, r.Seq, int64(r.Dir), int64(r.T), len(r.Data), r.blob, data))(t)
	}
	require.Value(tx.Exec(`DELETE FROM segments`))(t)
	require.NoError(t, tx.Commit())
}

// all yields all events of a capture that nobody records to.
func (s *Store) all(ctx context.Context) iter.Seq2[captures.Event, error] {
	return func(yield func(captures.Event, error) bool) {
		for last, more := int64(0), true; more; {
			var page []captures.Event
			var err error
			page, last, more, err = s.eventsAfter(ctx, last)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(captures.Event{}, err)
				return
			}
		}
	}
}

// TestChunksComeBack: whatever is read of a capture and from where, in a file that is being
// recorded, in a closed one, and where a part of the chunks is of an older format.
func TestChunksComeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{KeepSecrets: true}))(t)
	recordMany(t, w, 5, 6000)
	followed := make(map[int64][]captures.Chunk)
	last := int64(0)
	for e, err := range w.all(t.Context()) {
		require.NoError(t, err)
		if e.N <= last {
			t.Fatalf("number %d behind %d", e.N, last)
		}
		if last = e.N; e.Kind == captures.Received {
			followed[e.Chunk.Exchange] = append(followed[e.Chunk.Exchange], e.Chunk)
		}
	}
	compare := func(name string) {
		s := require.Value(Open(path, ReadOptions{}))(t)
		defer func() { require.NoError(t, s.Close()) }()
		for id, want := range followed {
			slices.SortFunc(want, func(a, b captures.Chunk) int { return int(a.Seq - b.Seq) })
			for from := 0; from < len(want); from += 397 {
				if got := require.All(t, s.Chunks(t.Context(), id, int64(from))); !sameChunks(want[from:], got) {
					t.Fatalf("%s: exchange %d from %d: %d chunks, want %d", name, id, from, len(got), len(want)-from)
				}
			}
			if got := require.All(t, s.Chunks(t.Context(), id, 1<<40)); len(got) > 0 {
				t.Errorf("%s: behind the last: %d chunks", name, len(got))
			}
		}
	}
	compare("being recorded")
	require.NoError(t, w.Close())
	compare("closed")
	asOlderChunks(t, path)
	compare("older")
	alter(t, path, "DELETE FROM chunks WHERE seq >= 500")
	w = require.Value(Create(path, Options{KeepSecrets: true}))(t)
	for id, want := range followed {
		for _, k := range want[500:] {
			require.NoError(t, w.writer.enqueue(op{chunk: &k}))
		}
		followed[id] = want
	}
	require.NoError(t, w.Close())
	compare("both")
}

// TestSegmentsAreExtended: chunks that are committed one by one share a row, and a
// follower sees each once.
func TestSegmentsAreExtended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{KeepSecrets: true}))(t)
	r := require.Value(w.Begin(captures.Exchange{}))(t)
	seen, last := 0, int64(0)
	for i := range 300 {
		r.Chunk(captures.Direction(i%2), []byte{byte(i)})
		require.NoError(t, w.Flush(t.Context()))
		page, next, _, err := w.eventsAfter(t.Context(), last)
		require.NoError(t, err)
		for _, e := range page {
			if e.Kind == captures.Received {
				if seen++; e.Chunk.Data[0] != byte(i) {
					t.Fatalf("chunk %d at %d", e.Chunk.Data[0], i)
				}
			}
		}
		last = next
	}
	var rows int
	require.NoError(t, w.readDB.QueryRow("SELECT count(*) FROM segments").Scan(&rows))
	if seen != 300 || rows > 2 {
		t.Errorf("%d chunks seen, in %d rows", seen, rows)
	}
	r.End(captures.Complete, "")
	require.NoError(t, w.Close())
	if got := require.All(t, require.Value(Open(path, ReadOptions{}))(t).Chunks(t.Context(), 1, 0)); len(got) != 300 || got[299].T < got[0].T {
		t.Errorf("%d chunks", len(got))
	}
}

// TestWebSocketMessages: opcodes and empty messages come back, also where a message is too
// long for one chunk.
func TestWebSocketMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	w := require.Value(Create(path, Options{KeepSecrets: true}))(t)
	h := require.Value(w.Begin(captures.Exchange{Method: "GET", URL: "http://h/ws"}))(t)
	r := require.Value(w.Begin(captures.Exchange{Transport: captures.WebSocket, URL: "ws://h/ws", Process: captures.Process{PID: 7, Name: "node", Client: "ws", Version: "8"}}))(t)
	r.Relate(captures.HandshakeOf, h.ID())
	r.MessageAt(captures.Up, 1, captures.OpText|captures.OpFinal, []byte("hello"))
	r.MessageAt(captures.Down, 2, captures.OpPing|captures.OpFinal, nil)
	r.MessageAt(captures.Down, 3, captures.OpBinary|captures.OpCompressed|captures.OpFinal, make([]byte, payload.MaxSize+1))
	r.End(captures.Complete, "")
	require.NoError(t, w.Close())
	s := require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	ex := require.Value(s.Exchange(t.Context(), 2))(t)
	if ex.Transport != captures.WebSocket || ex.Process != (captures.Process{PID: 7, Name: "node", Client: "ws", Version: "8"}) {
		t.Errorf("%+v", ex)
	}
	var got []string
	for _, k := range require.All(t, s.Chunks(t.Context(), 2, 0)) {
		got = append(got, fmt.Sprintf("%s %#x %d", k.Dir, byte(k.Opcode), len(k.Data)))
	}
	if want := []string{"up 0x81 5", "down 0x89 0", fmt.Sprintf("down 0x42 %d", payload.MaxSize), "down 0xc0 1"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if rel := require.Value(s.Relations(t.Context(), 2))(t); len(rel) != 1 || rel[0] != (captures.Relation{Exchange: 2, Kind: captures.HandshakeOf, Target: 1}) {
		t.Errorf("%+v", rel)
	}
}

// Payloads that differ only in bytes that a hash of parts does not look at are told apart,
// and each that comes again is stored once.
func TestAlikePayloads(t *testing.T) {
	for name, one := range map[string][]byte{"noise": noise(1, 20<<10), "text": bytes.Repeat([]byte("the answer, "), 2000)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.uwc")
			s := require.Value(Create(path, Options{}))(t)
			other := bytes.Clone(one)
			other[1000] ^= 1
			r := require.Value(s.Begin(captures.Exchange{}))(t)
			order := [][]byte{one, other, one, other, one, other, other, one}
			for _, p := range order {
				r.Chunk(captures.Down, p)
			}
			r.End(captures.Complete, "")
			require.NoError(t, s.Close())

			s = require.Value(Open(path, ReadOptions{}))(t)
			got := require.All(t, s.Chunks(t.Context(), 1, 0))
			require.NoError(t, s.Close())
			if len(got) != len(order) {
				t.Fatal(len(got))
			}
			for i, c := range got {
				if !bytes.Equal(c.Data, order[i]) {
					t.Errorf("chunk %d is another payload", i)
				}
			}
			db := require.Value(sql.Open("sqlite", path))(t)
			defer func() { require.NoError(t, db.Close()) }()
			var blobs, inline int
			require.NoError(t, db.QueryRow(`SELECT (SELECT count(*) FROM blobs), (SELECT count(*) FROM segments WHERE codec <> 2)`).Scan(&blobs, &inline))
			if blobs != 2 || inline > 1 {
				t.Errorf("%d payloads are shared, %d have their own row", blobs, inline)
			}
		})
	}
}
