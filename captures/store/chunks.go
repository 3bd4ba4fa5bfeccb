package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"math"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
	"unwire/captures/store/internal/segment"
)

const (
	// firstRows is how many rows a query for chunks reads first: most exchanges have no
	// more.
	firstRows = 64

	// Preparing a query takes as long as a hundred small chunks.
	chunkRows   = 1024
	segmentRows = 128
)

// Chunks yields the chunks of an exchange from sequence number fromSeq on, in
// order. It ends after the first error; an exchange that does not exist has none.
//
// Limits: a payload inflates to at most 64 MiB; all of them together are bounded
// by the Limits of the store.
// Errors: ErrDamaged, a LimitError, the context's.
func (s *Store) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return counted(ctx, s.Path, func(yield func(captures.Chunk, error) bool) {
		r := &chunkReader{s: s, ctx: ctx, id: id, next: fromSeq, yield: yield}
		switch {
		case s.format < schema.WithSegments:
			r.readAll(s.queryChunks, firstRows, chunkRows)
		case !s.hasOldChunks(ctx):
			r.readAll(s.querySegments, firstRows, segmentRows)
		default:
			r.readBoth(fromSeq)
		}
	})
}

// hasOldChunks reports whether the file has chunks of an older format, beside its segments.
func (s *Store) hasOldChunks(ctx context.Context) bool {
	s.oldChunks.Do(func() {
		found := false
		err := s.page(ctx, func(*rowValues) bool {
			found = true
			return false
		}, `SELECT n FROM chunks LIMIT 1`)
		s.noOldChunks = err == nil && !found
	})
	return !s.noOldChunks
}

// A chunkQuery reads the next chunks of an exchange, of up to so many rows or a few
// megabytes: how many rows they were, and whether more may follow.
type chunkQuery func(ctx context.Context, id, from int64, limit int) (page []captures.Chunk, full bool, err error)

// A chunkReader hands out the chunks of an exchange as far as they are in order
// and within the limits.
type chunkReader struct {
	s       *Store
	ctx     context.Context
	id      int64
	next    int64 // the least sequence number that may come
	last    bool  // none can come any more
	used    usage
	yield   func(captures.Chunk, error) bool
	stopped bool
}

// readAll hands out what a query returns, page by page.
func (r *chunkReader) readAll(query chunkQuery, first, limit int) {
	for rows := first; !r.stopped; rows = limit {
		began := time.Now()
		page, full, err := query(r.ctx, r.id, r.next, rows)
		r.used.time += time.Since(began)
		for _, k := range page {
			if !r.give(k) {
				return
			}
		}
		if err != nil {
			r.stopped = true
			r.yield(captures.Chunk{}, err)
			return
		}
		if !full || r.last {
			return
		}
	}
}

// readBoth hands out the chunks of the older format and those in segments by their
// sequence numbers.
func (r *chunkReader) readBoth(from int64) {
	old := func(yield func(captures.Chunk, error) bool) {
		(&chunkReader{s: r.s, ctx: r.ctx, id: r.id, next: from, yield: yield}).readAll(r.s.queryChunks, firstRows, chunkRows)
	}
	next, stop := iter.Pull2(old)
	defer stop()
	k, err, more := next()
	giveOld := func(before int64, all bool) bool {
		for more && err == nil && (all || k.Seq < before) {
			if !r.give(k) {
				return false
			}
			k, err, more = next()
		}
		if more && err != nil {
			r.stopped = true
			r.yield(captures.Chunk{}, err)
		}
		return !r.stopped
	}
	segments := chunkReader{s: r.s, ctx: r.ctx, id: r.id, next: from, yield: func(c captures.Chunk, err error) bool {
		if err != nil {
			if giveOld(0, true) {
				r.stopped = true
				r.yield(captures.Chunk{}, err)
			}
			return false
		}
		return giveOld(c.Seq, false) && r.give(c)
	}}
	segments.readAll(r.s.querySegments, firstRows, segmentRows)
	if !segments.stopped && !r.stopped {
		giveOld(0, true)
	}
}

// give yields a chunk, and returns whether to go on.
func (r *chunkReader) give(k captures.Chunk) bool {
	err := r.ctx.Err()
	if err == nil && (k.Seq < r.next || r.last) {
		// Forged pages may have them in any order; without this the same page
		// would be read for ever.
		err = captures.Damaged("exchange %d: chunk %d stands where %d or a later one belongs", r.id, k.Seq, r.next)
	}
	if err == nil {
		r.used.bodies += int64(len(k.Data))
		err = r.s.meter.charge(r.id, r.used)
	}
	if err != nil {
		r.stopped = true
		r.yield(captures.Chunk{}, pathError(r.s.Path, err))
		return false
	}
	if r.last = k.Seq == math.MaxInt64; !r.last {
		r.next = k.Seq + 1
	}
	r.stopped = !r.yield(k, nil)
	return !r.stopped
}

// payloadColumns are what rowValues.payload reads, from blobs as b.
const payloadColumns = `b.codec, b.size, b.data, b.sha256`

// payload reads the values of payloadColumns.
func (c *rowValues) payload(u *payload.Unpacker) (data []byte) {
	codec, declared := c.nextValue(), c.nextValue()
	data, sum := c.bytes(), c.bytes()
	ci, ok1 := codec.(int64)
	di, ok2 := declared.(int64)
	if c.err != nil {
		return nil
	}
	if !ok1 || !ok2 {
		c.err = captures.Damaged("its payload is missing")
		return nil
	}
	if data, c.err = u.Unpack(ci, di, data); c.err == nil && u.Verify && !hasSum(data, sum) {
		c.err = captures.Damaged("its payload is not what was stored")
	}
	return data
}

func hasSum(data, sum []byte) bool {
	hash := sha256.Sum256(data)
	return bytes.Equal(hash[:], sum)
}

// chunkColumns are what rowValues.chunk reads, from chunks as c and blobs as b.
const chunkColumns = `c.exchange, c.seq, c.dir, c.t_ns, c.size, c.data, c.blob, ` + payloadColumns

// chunk reads the values of chunkColumns.
func (c *rowValues) chunk(u *payload.Unpacker) captures.Chunk {
	k := captures.Chunk{Exchange: c.int(), Seq: c.size(), Dir: captures.Direction(c.small(1)), T: time.Duration(c.size())}
	size := c.size()
	k.Data = c.bytes()
	if c.nextValue() != nil && c.err == nil { // stored by its hash
		if k.Data = c.payload(u); c.err != nil {
			c.err = fmt.Errorf("exchange %d: chunk %d: %w", k.Exchange, k.Seq, c.err)
		}
	}
	if c.err == nil && int64(len(k.Data)) != size {
		c.err = captures.Damaged("exchange %d: chunk %d has %d bytes where %d were declared", k.Exchange, k.Seq, len(k.Data), size)
	}
	return k
}

// queryChunks is a chunkQuery for the chunks of older formats.
func (s *Store) queryChunks(ctx context.Context, id, from int64, limit int) (page []captures.Chunk, full bool, err error) {
	size := 0
	err = s.pageOf(ctx, maxValue, func(c *rowValues) bool {
		k := c.chunk(s.unpack)
		if c.err != nil {
			return false
		}
		page = append(page, k)
		size += len(k.Data)
		full = len(page) == limit || size >= pageBytes
		return !full
	}, `SELECT `+chunkColumns+` FROM chunks c LEFT JOIN blobs b ON b.id = c.blob
		WHERE c.exchange = ? AND c.seq >= ? ORDER BY c.seq LIMIT ?`, id, from, limit)
	return page, full, err
}

// segmentColumns are what rowValues.segment reads, from segments as g, blobs as b and
// exchanges as e.
const segmentColumns = segmentHead + `, g.codec, g.data, g.blob, ` + payloadColumns

const segmentHead = `g.n, g.last, g.exchange, g.seq, g.chunks, g.t_ns, g.size_up, g.size_down, g.entries, e.protocol`

// segmentTables are the tables of segmentColumns.
const segmentTables = ` FROM segments g LEFT JOIN exchanges e ON e.id = g.exchange LEFT JOIN blobs b ON b.id = g.blob `

// segmentHead reads the values of segmentHead.
func (c *rowValues) segmentHead() (r segment.Row, webSocket bool) {
	r = segment.Row{
		First: c.size(), Last: c.size(), Exchange: c.int(), Seq: c.size(), Chunks: c.size(),
		T: time.Duration(c.size()), SizeUp: c.size(), SizeDown: c.size(), Entries: c.bytes(),
	}
	protocol := c.text()
	switch {
	case c.err != nil:
		c.err = fmt.Errorf("exchange %d: the segment of chunk %d: %w", r.Exchange, r.Seq, c.err)
	case r.SizeUp > payload.MaxSize || r.SizeDown > payload.MaxSize || r.Seq > math.MaxInt64-segment.MaxChunks:
		c.err = captures.Damaged("exchange %d: the segment of chunk %d declares %d and %d bytes", r.Exchange, r.Seq, r.SizeUp, r.SizeDown)
	}
	return r, protocol == string(captures.WebSocket)
}

// segment reads the values of segmentColumns and yields the chunks with their numbers.
func (c *rowValues) segment(u *payload.Unpacker, yield func(n int64, k captures.Chunk) bool) {
	r, webSocket := c.segmentHead()
	if c.err != nil {
		return
	}
	codec, data := c.size(), c.bytes()
	blob := c.nextValue()
	switch {
	case c.err != nil:
	case codec == payload.InBlob:
		data = c.payload(u)
	case blob != nil || codec > payload.InBlob:
		c.err = captures.Damaged("it has the codec %d", codec)
	default:
		data, c.err = u.Unpack(codec, r.SizeUp+r.SizeDown, data)
	}
	if c.err != nil {
		c.err = fmt.Errorf("exchange %d: the segment of chunk %d: %w", r.Exchange, r.Seq, c.err)
		return
	}
	c.err = r.Each(data, webSocket, yield)
}

// querySegments is a chunkQuery for chunks in segments.
func (s *Store) querySegments(ctx context.Context, id, from int64, limit int) (page []captures.Chunk, full bool, err error) {
	size, rows := 0, 0
	err = s.pageOf(ctx, maxValue, func(c *rowValues) bool {
		c.segment(s.unpack, func(_ int64, k captures.Chunk) bool {
			size += len(k.Data)
			if k.Seq >= from {
				page = append(page, k)
			}
			return true
		})
		if c.err != nil {
			return false
		}
		rows++
		full = len(page) > 0 && (rows == limit || size >= pageBytes)
		return !full
	}, `SELECT `+segmentColumns+segmentTables+`WHERE g.exchange = ?1
		AND g.seq >= coalesce((SELECT max(seq) FROM segments WHERE exchange = ?1 AND seq <= ?2), ?2)
		AND g.seq + g.chunks > ?2 ORDER BY g.seq LIMIT ?3`, id, from, limit)
	return page, full, err
}

// chunkEnds returns the sequence number of the last chunk of each direction, -1 for none,
// and the greatest time of a chunk.
func (s *Store) chunkEnds(ctx context.Context, id int64) (last [2]int64, t time.Duration, err error) {
	last = [2]int64{-1, -1}
	note := func(dir captures.Direction, seq int64, at time.Duration) {
		last[dir], t = max(last[dir], seq), max(t, at)
	}
	if s.format < schema.WithSegments || s.hasOldChunks(ctx) {
		err = s.page(ctx, func(c *rowValues) bool {
			dir, seq, at := c.small(1), c.size(), c.size()
			if c.err == nil {
				note(captures.Direction(dir), seq, time.Duration(at))
			}
			return true
		}, `SELECT dir, max(seq), max(t_ns) FROM chunks WHERE exchange = ? GROUP BY dir`, id)
	}
	if err != nil || s.format < schema.WithSegments {
		return last, t, err
	}
	err = s.page(ctx, func(c *rowValues) bool {
		r, webSocket := c.segmentHead()
		if c.err != nil {
			return false
		}
		ends, at, err := r.LastOf(webSocket)
		c.err = err
		note(captures.Up, ends[0], at)
		note(captures.Down, ends[1], at)
		return c.err == nil
	}, `SELECT `+segmentHead+` FROM segments g LEFT JOIN exchanges e ON e.id = g.exchange WHERE g.exchange = ? ORDER BY g.seq`, id)
	return last, t, err
}
