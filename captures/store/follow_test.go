package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// A follower in the same or another process sees everything once and in order.
func TestFollow(t *testing.T) {
	const exchanges, chunks = 20, 200
	path := filepath.Join(t.TempDir(), "f.uwc")
	s := require.Value(Create(path, Options{}))(t)
	old := require.Value(s.Begin(captures.Exchange{URL: "http://before"}))(t)
	old.Chunk(captures.Up, []byte("0"))
	require.NoError(t, s.Flush(t.Context()))

	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var done sync.WaitGroup
	for range 2 {
		reader := require.Value(Open(path, ReadOptions{}))(t)
		done.Go(func() {
			defer func() { _ = reader.Close() }()
			checkFollowed(t, reader, ctx, exchanges, chunks)
		})
	}
	var writers sync.WaitGroup
	for i := range exchanges {
		writers.Go(func() {
			r := require.Value(s.Begin(captures.Exchange{URL: fmt.Sprint("http://", i)}))(t)
			for j := range chunks {
				if j == chunks/2 {
					r.Response(200, nil)
				}
				data := fmt.Sprint(j)
				if j%50 == 0 {
					data += strings.Repeat(" ", 10000)
				}
				r.Chunk(captures.Direction(j%2), []byte(data))
				if j%20 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			r.Trailers(captures.Down, captures.Headers{{Name: "a", Value: "b"}})
			r.End(captures.Complete, "")
		})
	}
	writers.Wait()
	old.End(captures.Canceled, "")
	done.Wait()
	require.NoError(t, s.Close())
}

// checkFollowed follows until all have ended.
func checkFollowed(t *testing.T, s *Store, ctx context.Context, exchanges, chunks int) {
	next := map[int64]int64{}
	kinds := map[int64][]captures.EventKind{}
	last, ended := int64(0), 0
	for e, err := range s.Follow(ctx, time.Millisecond) {
		if err != nil {
			t.Error(err)
			return
		}
		if e.N <= last {
			t.Errorf("event %d after %d", e.N, last)
		}
		last = e.N
		if e.Kind != captures.Received {
			kinds[e.Exchange.ID] = append(kinds[e.Exchange.ID], e.Kind)
			if e.Kind == captures.Ended {
				ended++
			}
			if ended == exchanges+1 {
				break
			}
			continue
		}
		k := kinds[e.Chunk.Exchange]
		if len(k) == 0 || k[len(k)-1] == captures.Ended {
			t.Errorf("a chunk of exchange %d after %v", e.Chunk.Exchange, k)
		}
		if want := next[e.Chunk.Exchange]; e.Chunk.Seq != want || strings.TrimSpace(string(e.Chunk.Data)) != fmt.Sprint(want) {
			t.Errorf("exchange %d: chunk %d, want %d", e.Chunk.Exchange, e.Chunk.Seq, want)
		}
		next[e.Chunk.Exchange]++
	}
	if ctx.Err() != nil {
		t.Error("it did not see the end")
	}
	for id := int64(2); id <= int64(exchanges)+1; id++ {
		// What changed right before the end may be told with that.
		if k := strings.Replace(fmt.Sprint(kinds[id]), " changed", "", 1); k != "[began responded ended]" || next[id] != int64(chunks) {
			t.Errorf("exchange %d: %v, %d chunks", id, kinds[id], next[id])
		}
	}
	if fmt.Sprint(kinds[1]) != "[began ended]" || next[1] != 1 {
		t.Errorf("exchange 1: %v, %d chunks", kinds[1], next[1])
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	s := require.Value(Open(record(t, "x"), ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	for _, err := range s.Follow(ctx, time.Millisecond) {
		require.NoError(t, err)
		if n++; n == 4 {
			stop()
		}
	}
	if n != 4 {
		t.Errorf("%d events", n)
	}
}
