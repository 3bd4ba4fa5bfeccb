package store

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"unwire/captures"
	"unwire/captures/internal/require"
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
func byQueries(t testing.TB, s *Store, id, from int64) (list []captures.Chunk) {
	for full := true; full; {
		var page []captures.Chunk
		var err error
		page, _, full, err = s.queryChunks(t.Context(), id, from, chunkRows)
		require.NoError(t, err)
		for _, k := range page {
			list = append(list, k)
			from = k.Seq + 1
		}
	}
	return list
}

// paged reads chunks from pages alone.
func paged(s *Store, t testing.TB, id, from int64) (list []captures.Chunk, all bool) {
	pages := s.pageChunks(t.Context(), id, from)
	_, all = pages(func(k captures.Chunk) bool {
		list = append(list, k)
		return true
	})
	return list, all
}

func sameChunks(a, b []captures.Chunk) bool {
	return slices.EqualFunc(a, b, func(x, y captures.Chunk) bool {
		return x.Exchange == y.Exchange && x.Seq == y.Seq && x.Dir == y.Dir && x.T == y.T && bytes.Equal(x.Data, y.Data)
	})
}

// TestPagesAreWhatQueriesRead: in a closed file, and in one with a write-ahead log.
func TestPagesAreWhatQueriesRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	writing := require.Value(Create(path, Options{KeepSecrets: true}))(t)
	recordMany(t, writing, 5, 6000)
	compare := func(name string) {
		s := require.Value(Open(path, ReadOptions{}))(t)
		defer func() { require.NoError(t, s.Close()) }()
		fromPages := 0
		for id := int64(1); id <= 6; id++ {
			want := byQueries(t, s, id, 0)
			if got := require.All(t, s.Chunks(t.Context(), id, 0)); !sameChunks(want, got) {
				t.Fatalf("%s: exchange %d: %d chunks, want %d", name, id, len(got), len(want))
			}
			for at := 0; at < len(want); at += 397 {
				list, whole := paged(s, t, id, want[at].Seq)
				if !sameChunks(want[at:at+len(list)], list) || whole != (at+len(list) == len(want)) {
					t.Fatalf("%s: exchange %d from %d: %d chunks, %v", name, id, want[at].Seq, len(list), whole)
				}
				fromPages += len(list)
			}
			if list, whole := paged(s, t, id, 1<<40); len(list) > 0 || !whole {
				t.Errorf("%s: behind the last: %d chunks, %v", name, len(list), whole)
			}
		}
		if fromPages < 2000 {
			t.Errorf("%s: only %d chunks came from pages", name, fromPages)
		}
	}
	compare("being recorded")
	require.NoError(t, writing.Close())
	compare("closed")
}

// FuzzPages: whatever stands in the pages, reading them ends, and what comes is of the
// exchange, in order.
func FuzzPages(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.uwc")
	s := require.Value(Create(path, Options{KeepSecrets: true}))(f)
	recordMany(f, s, 2, 900)
	require.NoError(f, s.Close())
	whole := require.Value(os.ReadFile(path))(f)
	const page = 4096
	for i := 0; i < len(whole); i += 7 * page {
		f.Add(i, []byte{5, 0, 0, 0, 200})
		f.Add(i+8, []byte{0, 0, 0, 1})
		f.Add(i+page-30, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	}
	f.Fuzz(func(t *testing.T, at int, with []byte) {
		if at < 0 || at >= len(whole) {
			return
		}
		p := append([]byte(nil), whole...)
		copy(p[at:], with)
		path := filepath.Join(t.TempDir(), "f.uwc")
		require.NoError(t, os.WriteFile(path, p, 0o600))
		s, err := Open(path, ReadOptions{})
		if err != nil {
			return
		}
		defer func() { _ = s.Close() }()
		last := int64(-1)
		list, _ := paged(s, t, 1, 0)
		for _, k := range list {
			if k.Exchange != 1 || k.Seq <= last {
				t.Fatalf("chunk %d of exchange %d behind %d", k.Seq, k.Exchange, last)
			}
			last = k.Seq
		}
	})
}
