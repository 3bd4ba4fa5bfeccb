package store

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// newQueue is a writer of which only the queue is used.
func newQueue() *writer {
	w := &writer{limit: 64 << 20, wake: make(chan struct{}, 1)}
	w.spaceFreed = sync.NewCond(&w.mu)
	return w
}

// TestQueueKeepsMemory: the memory of both queues, of which one fills up while the
// other is written, survives a queue that is found empty.
func TestQueueKeepsMemory(t *testing.T) {
	t.Parallel()
	w := newQueue()
	add := func() {
		for range 10 {
			require.NoError(t, w.enqueue(op{}))
		}
	}
	add()
	first, cost := w.nextBatch()
	add()
	w.finishBatch(cost, first, nil)
	second, cost := w.nextBatch()
	w.finishBatch(cost, second, nil)
	if none, _ := w.nextBatch(); len(none) > 0 {
		t.Errorf("%d operations remain", len(none))
	}
	if cap(w.ops) == 0 || cap(w.spare) == 0 {
		t.Errorf("the queues have room for %d and %d operations", cap(w.ops), cap(w.spare))
	}
}

// TestQueueAge: the age of the queue is that of the oldest batch that is not written.
func TestQueueAge(t *testing.T) { synctest.Test(t, testQueueAge) }

func testQueueAge(t *testing.T) {
	w := newQueue()
	var began []time.Time
	for range 3 { // two full batches, and the beginning of a third
		began = append(began, time.Now())
		require.NoError(t, w.enqueue(op{}))
		time.Sleep(10 * time.Millisecond)
		cost := int64(maxBatchBytes)
		if len(began) == 3 {
			cost = 0
		}
		require.NoError(t, w.enqueue(op{cost: cost}))
		time.Sleep(10 * time.Millisecond)
	}
	for i, want := range began {
		if w.oldest != want {
			t.Errorf("batch %d: the queue is %v older than its oldest operation", i, want.Sub(w.oldest))
		}
		batch, cost := w.nextBatch()
		if len(batch) != 2 {
			t.Errorf("batch %d has %d operations", i, len(batch))
		}
		w.finishBatch(cost, batch, nil)
	}
	if !w.oldest.IsZero() || w.queued != 0 {
		t.Errorf("an empty queue has %d bytes since %v", w.queued, w.oldest)
	}
}

// TestRecycledMemory: exchanges in the memory of earlier ones, in several commits, are
// stored as they were.
func TestRecycledMemory(t *testing.T) {
	t.Parallel()
	s := require.Value(Create(filepath.Join(t.TempDir(), "a.uwc"), Options{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	body := func(id int, dir captures.Direction) string {
		return fmt.Sprintf("%d of exchange %d:%*s", dir, id, 10*id%97, "end")
	}
	const rounds, each = 4, 30
	for range rounds {
		for range each {
			r := require.Value(s.Begin(captures.Exchange{}))(t)
			r.Chunk(captures.Up, []byte(body(int(r.ID()), captures.Up)))
			r.Response(200, nil)
			r.Chunk(captures.Down, []byte(body(int(r.ID()), captures.Down)))
			r.End(captures.Complete, "")
		}
		require.NoError(t, s.Flush(t.Context()))
	}
	for id := 1; id <= rounds*each; id++ {
		chunks := require.All(t, s.Chunks(t.Context(), int64(id), 0))
		if len(chunks) != 2 {
			t.Fatalf("exchange %d has %d chunks", id, len(chunks))
		}
		for _, c := range chunks {
			if want := body(id, c.Dir); string(c.Data) != want {
				t.Errorf("exchange %d has %q instead of %q", id, c.Data, want)
			}
		}
	}
}
