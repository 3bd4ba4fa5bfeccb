package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"unwire/captures"
)

// Follow yields everything in the capture and then, looking again as often as
// every (0: 100 ms), what is recorded meanwhile, until ctx is done, the loop
// is left, or an error is yielded.
//
// Events come in the order in which they were recorded: each exchange's Began,
// Responded and Ended once, Changed when something else became known, each
// chunk once, all of an exchange's between its Began and its Ended. Chunks of
// one direction come in order; one that was held back because a secret might
// have been passing can come after a later one of the other direction.
//
// Limits: the bodies together are bounded by the Limits of the store.
// Errors: ErrDamaged, a LimitError; the context's error is not yielded.
func (s *Store) Follow(ctx context.Context, every time.Duration) iter.Seq2[captures.Event, error] {
	if every <= 0 {
		every = 100 * time.Millisecond
	}
	return func(yield func(captures.Event, error) bool) {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		var used usage
		for last := int64(0); ; {
			events, next, more, err := s.since(ctx, last)
			if ctx.Err() != nil {
				return
			}
			for _, e := range events {
				if err := s.meter.follow(&used, &e); err != nil {
					yield(captures.Event{}, pathError(s.Path, err))
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(captures.Event{}, err)
				return
			}
			last = next
			if more {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}

// since returns the events numbered above last, in order, and the number to
// ask for next; more says that there are more already.
//
// Chunks and events are read in one transaction, so that the pages of both,
// cut off at the end of the shorter one, are a whole stretch of the numbers.
func (s *Store) since(ctx context.Context, last int64) (page []captures.Event, next int64, more bool, err error) {
	ctx, cancel := s.meter.bounded(ctx)
	defer cancel()
	fail := func(err error) ([]captures.Event, int64, bool, error) {
		return nil, last, false, pathError(s.Path, explainTime(ctx, err))
	}
	conn, err := s.reader(ctx, maxValue)
	if err != nil {
		return fail(explain(err))
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fail(explain(err))
	}
	defer func() { _ = tx.Rollback() }() // nothing to commit
	chunks, more1, err := s.chunksSince(ctx, tx, last)
	if err != nil {
		return fail(err)
	}
	if err := limitValues(conn, maxHeadValue); err != nil {
		return fail(err)
	}
	events, more2, err := eventsSince(ctx, tx, last)
	if err != nil {
		return fail(err)
	}
	next = last
	for _, l := range [][]captures.Event{chunks, events} {
		if len(l) > 0 {
			next = max(next, l[len(l)-1].N)
		}
	}
	if more1 {
		next = min(next, chunks[len(chunks)-1].N)
	}
	if more2 {
		next = min(next, events[len(events)-1].N)
	}
	page = slices.DeleteFunc(append(chunks, events...), func(e captures.Event) bool { return e.N > next })
	slices.SortFunc(page, func(a, b captures.Event) int { return cmp.Compare(a.N, b.N) })
	return page, next, more1 || more2, nil
}

// chunksSince reads a page of chunks; more says that it is full.
func (s *Store) chunksSince(ctx context.Context, db readable, last int64) (page []captures.Event, more bool, err error) {
	bytes := 0
	err = scan(ctx, db, func(c *rowValues) bool {
		e := captures.Event{Kind: captures.Received, N: c.int(), Chunk: c.chunk(s.unpack)}
		if c.err == nil && e.N <= last {
			c.err = damaged("chunk number %d stands behind %d", e.N, last)
		}
		if c.err != nil {
			return false
		}
		last = e.N
		page = append(page, e)
		bytes += len(e.Chunk.Data)
		more = len(page) == pageRows || bytes >= pageBytes
		return !more
	}, `SELECT c.n, `+chunkColumns+` FROM chunks c LEFT JOIN blobs b ON b.id = c.blob
		WHERE c.n > ? ORDER BY c.n LIMIT ?`, last, pageRows)
	return page, more, err
}

// eventsSince reads a page of what happened to exchanges.
func eventsSince(ctx context.Context, db readable, last int64) (page []captures.Event, more bool, err error) {
	size := int64(0)
	err = scan(ctx, db, func(c *rowValues) bool {
		e := captures.Event{N: c.int(), Kind: captures.EventKind(c.small(int64(captures.Ended))), Exchange: c.exchange()}
		if c.err == nil && e.Kind == captures.Received {
			c.err = damaged("event %d has kind %d", e.N, e.Kind)
		}
		if c.err == nil && e.N <= last {
			c.err = damaged("event number %d stands behind %d", e.N, last)
		}
		if c.err != nil {
			return false
		}
		last = e.N
		page = append(page, e)
		size += c.bytesOf()
		more = len(page) == pageRows || size >= pageBytes
		return !more
	}, `SELECT n, kind, `+liveExchange+` FROM events JOIN exchanges ON id = exchange
		WHERE n > ? ORDER BY n LIMIT ?`, last, pageRows)
	return page, more, err
}
