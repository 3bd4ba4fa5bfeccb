package store

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/database"
	"unwire/captures/store/internal/schema"
	"unwire/captures/store/internal/segment"
)

// Follow yields everything in the capture and then, looking again as often as
// every (0: 100 ms), what is recorded meanwhile, until ctx is done, the loop
// is left, or an error is yielded.
//
// Events come in the order in which they were recorded: each exchange's Began,
// Responded and Ended once, Changed when something else became known that no event right
// behind it tells, each chunk once, all of an exchange's between its Began and its Ended. A
// note, a reading or a definition is Added whenever it is set, in its newest state only.
// Chunks of one direction come in order; one that was held back because a secret might
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
		return nil, last, false, pathError(s.Path, database.ExplainTime(ctx, err))
	}
	conn, err := s.reader(ctx, maxValue)
	if err != nil {
		return fail(database.Explain(err))
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fail(database.Explain(err))
	}
	defer func() { _ = tx.Rollback() }() // nothing to commit
	pages := []*eventPage{{}}
	err = s.chunksSince(ctx, tx, last, pages[0])
	if err == nil && s.format >= schema.WithSegments {
		pages = append(pages, &eventPage{})
		err = s.segmentsSince(ctx, tx, last, pages[1])
	}
	if err != nil {
		return fail(err)
	}
	if err := database.LimitValues(conn, maxHeadValue); err != nil {
		return fail(err)
	}
	events := &eventPage{}
	if err := s.eventsSince(ctx, tx, last, events); err != nil {
		return fail(err)
	}
	pages = append(pages, events)
	if s.format >= schema.WithSegments {
		added, err := additionsSince(ctx, tx, last)
		if err != nil {
			return fail(err)
		}
		pages = append(pages, added...)
	}
	page, next, more = mergePages(pages, last)
	return page, next, more, nil
}

// An eventPage is a page of what one table has behind a number, in order.
type eventPage struct {
	events []captures.Event

	// full says that there may be more; CompleteTo is then the number up to which none is
	// missing.
	full       bool
	completeTo int64
}

// mergePages puts the pages in order, up to the number to which all of them are
// complete, and returns that number.
func mergePages(pages []*eventPage, last int64) (all []captures.Event, next int64, more bool) {
	next = last
	for _, p := range pages {
		if n := len(p.events); n > 0 {
			next = max(next, p.events[n-1].N)
		}
	}
	for _, p := range pages {
		if p.full {
			next, more = min(next, p.completeTo), true
		}
		all = append(all, p.events...)
	}
	all = slices.DeleteFunc(all, func(e captures.Event) bool { return e.N > next })
	slices.SortFunc(all, func(a, b captures.Event) int { return cmp.Compare(a.N, b.N) })
	return all, next, more
}

// chunksSince reads a page of chunks of older formats.
func (s *Store) chunksSince(ctx context.Context, db readable, last int64, p *eventPage) error {
	bytes := 0
	return scan(ctx, db, func(c *rowValues) bool {
		e := captures.Event{Kind: captures.Received, N: c.int(), Chunk: c.chunk(s.unpack)}
		if c.err == nil && e.N <= last {
			c.err = captures.Damaged("chunk number %d stands behind %d", e.N, last)
		}
		if c.err != nil {
			return false
		}
		last = e.N
		bytes += len(e.Chunk.Data)
		p.events = append(p.events, e)
		p.full, p.completeTo = len(p.events) == pageRows || bytes >= pageBytes, e.N
		return !p.full
	}, `SELECT c.n, `+chunkColumns+` FROM chunks c LEFT JOIN blobs b ON b.id = c.blob
		WHERE c.n > ? ORDER BY c.n LIMIT ?`, last, pageRows)
}

// segmentsSince reads a page of segments. Those that began earlier may go on behind last.
func (s *Store) segmentsSince(ctx context.Context, db readable, last int64, p *eventPage) error {
	bytes, rows := 0, 0
	previous := int64(math.MinInt64)
	err := scan(ctx, db, func(c *rowValues) bool {
		n, ok := c.values[0].(int64)
		if ok && n <= previous {
			c.err = captures.Damaged("segment %d stands behind %d", n, previous)
		}
		c.segment(s.unpack, func(number int64, k captures.Chunk) bool {
			bytes += len(k.Data)
			if number > last {
				p.events = append(p.events, captures.Event{Kind: captures.Received, N: number, Chunk: k})
			}
			return true
		})
		if c.err != nil {
			return false
		}
		previous = n
		rows++
		p.full, p.completeTo = n > last && (rows >= followSegments || bytes >= pageBytes), n
		return !p.full
	}, `SELECT `+segmentColumns+segmentTables+`WHERE g.n > ? AND g.last > ? ORDER BY g.n`, last-segment.MaxSpan, last)
	slices.SortFunc(p.events, func(a, b captures.Event) int { return cmp.Compare(a.N, b.N) })
	for i := 1; err == nil && i < len(p.events); i++ {
		if p.events[i].N == p.events[i-1].N {
			err = captures.Damaged("two chunks have the number %d", p.events[i].N)
		}
	}
	return err
}

// eventsSince reads a page of what happened to exchanges.
func (s *Store) eventsSince(ctx context.Context, db readable, last int64, p *eventPage) error {
	size := int64(0)
	return scan(ctx, db, func(c *rowValues) bool {
		e := captures.Event{N: c.int(), Kind: captures.EventKind(c.small(int64(captures.Ended))), Exchange: c.exchange(s.unpack)}
		if c.err == nil && e.Kind == captures.Received {
			c.err = captures.Damaged("event %d has kind %d", e.N, e.Kind)
		}
		if c.err == nil && e.N <= last {
			c.err = captures.Damaged("event number %d stands behind %d", e.N, last)
		}
		if c.err != nil {
			return false
		}
		last = e.N
		p.events = append(p.events, e)
		size += c.bytesOf()
		p.full, p.completeTo = len(p.events) == pageRows || size >= pageBytes, e.N
		return !p.full
	}, `SELECT v.n, v.kind, `+columnsFor(s.format).exchange+` JOIN events v ON v.exchange = e.id
		WHERE v.n > ? ORDER BY v.n LIMIT ?`, last, pageRows)
}

// followSegments is how many segments are read at once: those of many streams overlap, so
// that of a small page little would be complete.
const followSegments = 512
