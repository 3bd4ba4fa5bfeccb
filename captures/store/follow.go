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

// Follow yields everything that is in the capture, and then what is recorded from now on. It checks for new
// data at the interval every (0: 100 ms). It ends when ctx is done, when the caller stops the loop, or after an
// error was yielded.
//
// Events come in the order of recording. Each exchange has one Began, Responded and Ended event. A Changed
// event is added if something else became known that the next event does not imply. Each chunk is one event,
// between the Began and the Ended event of its exchange. A note, a reading or a definition is an Added event
// each time it is set; only its newest state is reported. Chunks of one direction are in order; a chunk that
// was held back because it might contain a secret can come after later ones of the other direction.
//
// Limits: the total of all bodies is bounded by Limits. Errors: ErrDamaged, a LimitError. The error of ctx is
// not yielded.
func (s *Store) Follow(ctx context.Context, every time.Duration) iter.Seq2[captures.Event, error] {
	if every <= 0 {
		every = 100 * time.Millisecond
	}
	return func(yield func(captures.Event, error) bool) {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		var used usage
		for last := int64(0); ; {

			// Yield everything that is there before waiting for the ticker.
			events, next, more, err := s.eventsAfter(ctx, last)
			if ctx.Err() != nil {
				return
			}

			// Charge each event against the limits, because a forged file could contain endless
			// events.
			for _, e := range events {
				if err := s.meter.chargeEvent(&used, &e); err != nil {
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

			// A full page means that more events are there already, so do not wait.
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

// eventsAfter returns the next events with numbers above last, in order, and the number to continue with. more
// reports that further events exist already.
//
// Events, chunks and additions are in separate tables. They are read in one transaction, up to a limit per
// table. The result ends where the first table was cut off, so that it contains every number of a range.
func (s *Store) eventsAfter(ctx context.Context, last int64) (page []captures.Event, next int64, more bool, err error) {
	ctx, cancel := s.meter.withTimeLimit(ctx)
	defer cancel()
	fail := func(err error) ([]captures.Event, int64, bool, error) {
		return nil, last, false, pathError(s.Path, database.ExplainTime(ctx, err))
	}
	conn, err := database.Conn(ctx, s.readDB, maxValue)
	if err != nil {
		return fail(database.Explain(err))
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fail(database.Explain(err))
	}
	// A rollback: nothing was written.
	defer func() { _ = tx.Rollback() }()

	// Chunks may be large; the values of all other tables are limited more tightly.
	pages := []*eventPage{{}}
	err = s.chunksAfter(ctx, tx, last, pages[0])
	if err == nil && s.format >= schema.WithSegments {
		pages = append(pages, &eventPage{})
		err = s.segmentsAfter(ctx, tx, last, pages[1])
	}
	if err != nil {
		return fail(err)
	}
	if err := database.LimitValues(conn, maxHeadValue); err != nil {
		return fail(err)
	}

	// These values are heads and texts.
	events := &eventPage{}
	if err := s.exchangeEventsAfter(ctx, tx, last, events); err != nil {
		return fail(err)
	}
	pages = append(pages, events)
	if s.format >= schema.WithSegments {
		added, err := additionsAfter(ctx, tx, last)
		if err != nil {
			return fail(err)
		}
		pages = append(pages, added...)
	}
	page, next, more = mergePages(pages, last)
	return page, next, more, nil
}

// An eventPage contains consecutive events from one table, up to a limit.
type eventPage struct {
	// events are the consecutive events of the page, in order of their numbers.
	events []captures.Event

	// full means that the page reached its limit, so the table may contain more events.
	full bool
	// completeTo is the event number up to which a full page contains all events of its table.
	completeTo int64
}

// mergePages merges the events from several tables into one ordered list, up to the number to which all pages
// are complete. next is that number, at least last, and more reports that further events exist.
func mergePages(pages []*eventPage, last int64) (all []captures.Event, next int64, more bool) {
	next = last
	for _, p := range pages {
		if n := len(p.events); n > 0 {
			next = max(next, p.events[n-1].N)
		}
	}

	// Beyond the end of a full page, events of its table are missing.
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

// chunksAfter adds to p the next chunks, with numbers above last, from the table chunks (formats 1 and 2).
func (s *Store) chunksAfter(ctx context.Context, db querier, last int64, p *eventPage) error {
	bytes := 0
	return scan(ctx, db, func(c *rowValues) bool {
		e := captures.Event{Kind: captures.Received, N: c.int(), Chunk: c.chunk(s.unpacker)}
		if c.err == nil && e.N <= last {
			c.err = captures.Damaged("chunk %d comes after chunk %d", e.N, last)
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

// segmentsAfter adds to p the next chunks, with numbers above last, from the table segments. A segment can
// begin at or before last and still contain later chunks, so earlier ones are read too.
func (s *Store) segmentsAfter(ctx context.Context, db querier, last int64, p *eventPage) error {
	bytes, rows := 0, 0
	previous := int64(math.MinInt64)
	err := scan(ctx, db, func(c *rowValues) bool {
		n, ok := c.values[0].(int64)
		if ok && n <= previous {
			c.err = captures.Damaged("segment %d comes after segment %d", n, previous)
		}
		c.segment(s.unpacker, func(number int64, k captures.Chunk) bool {
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

		// Segments are in the order of their first chunk. All chunks up to that number have been read.
		p.full, p.completeTo = n > last && (rows >= followSegments || bytes >= pageBytes), n
		return !p.full
	}, `SELECT `+segmentColumns+segmentTables+`WHERE g.n > ? AND g.last > ? ORDER BY g.n`, last-segment.MaxSpan, last)

	// The chunks of overlapping segments interleave.
	slices.SortFunc(p.events, func(a, b captures.Event) int { return cmp.Compare(a.N, b.N) })
	for i := 1; err == nil && i < len(p.events); i++ {
		if p.events[i].N == p.events[i-1].N {
			err = captures.Damaged("two chunks have the number %d", p.events[i].N)
		}
	}
	return err
}

// exchangeEventsAfter adds to p the next events of exchanges, with numbers above last.
func (s *Store) exchangeEventsAfter(ctx context.Context, db querier, last int64, p *eventPage) error {
	size := int64(0)
	return scan(ctx, db, func(c *rowValues) bool {
		e := captures.Event{N: c.int(), Kind: captures.EventKind(c.intUpTo(int64(captures.Ended))), Exchange: c.exchange(s.unpacker)}

		// A chunk has no row in the table events: this is a forged file.
		if c.err == nil && e.Kind == captures.Received {
			c.err = captures.Damaged("event %d has the unknown kind %d", e.N, e.Kind)
		}
		if c.err == nil && e.N <= last {
			c.err = captures.Damaged("event %d comes after event %d", e.N, last)
		}
		if c.err != nil {
			return false
		}
		last = e.N
		p.events = append(p.events, e)
		size += c.byteSize()
		p.full, p.completeTo = len(p.events) == pageRows || size >= pageBytes, e.N
		return !p.full
	}, `SELECT v.n, v.kind, `+columnsFor(s.format).exchange+` JOIN events v ON v.exchange = e.id
		WHERE v.n > ? ORDER BY v.n LIMIT ?`, last, pageRows)
}

// followSegments is the number of segments that segmentsAfter reads at once. The segments of many concurrent
// streams overlap, so with fewer of them only few events would be complete.
const followSegments = 512
