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
	// firstRows is the number of rows in the first page of a query for chunks. Most exchanges need no more.
	firstRows = 64

	// chunkRows and segmentRows are the numbers of rows in further pages. They are large because preparing a
	// query takes as long as reading a hundred small chunks.
	chunkRows   = 1024
	segmentRows = 128
)

// Chunks yields the chunks of an exchange in order, from sequence number fromSeq on. It ends after the first
// error. For an exchange that does not exist, it yields nothing.
//
// Limits: a payload has at most 64 MiB when decompressed; the total is bounded by Limits. Errors: ErrDamaged, a
// LimitError, and that of ctx.
func (s *Store) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	if s.showsForwarded() {
		return s.forwardedChunks(ctx, id, fromSeq, s.forwarded)
	}
	return s.receivedChunks(ctx, id, fromSeq)
}

// receivedChunks yields the chunks of an exchange as unwire received them, without the edits of rules.
func (s *Store) receivedChunks(ctx context.Context, id, fromSeq int64) iter.Seq2[captures.Chunk, error] {
	return countReads(ctx, s.Path, func(yield func(captures.Chunk, error) bool) {
		// Files that an older unwire began may have both forms of chunks.
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

// hasOldChunks reports whether the file contains chunks as formats 1 and 2 store them, one per row, in addition
// to segments, i.e. rows with several chunks.
func (s *Store) hasOldChunks(ctx context.Context) bool {
	s.oldChunks.Do(func() {
		found := false
		err := s.query(ctx, func(*rowValues) bool {
			found = true
			return false
		}, `SELECT n FROM chunks LIMIT 1`)
		s.noOldChunks = err == nil && !found
	})
	return !s.noOldChunks
}

// A chunkQuery reads the next chunks of an exchange, from sequence number from on: at most limit rows, and a
// few megabytes. full reports whether more may follow.
type chunkQuery func(ctx context.Context, id, from int64, limit int) (page []captures.Chunk, full bool, err error)

// A chunkReader yields the chunks of one exchange, after checking their order and the limits for reading.
type chunkReader struct {
	// s is the capture from which the chunks are read.
	s *Store
	// ctx is the context of the reading; its end cancels it.
	ctx context.Context

	// id is the ID of the exchange.
	id int64
	// next is the smallest sequence number that the next chunk may have.
	next int64
	// reachedEnd means that the chunk with the largest possible sequence number was read.
	reachedEnd bool
	// used is the amount of data read so far, for comparison with the limits.
	used usage

	// yield receives the chunks in order, or the error that ends the iteration; it returns false to end it.
	yield func(captures.Chunk, error) bool
	// stopped means that yield returned false or received an error, so it must not be called again.
	stopped bool
}

// readAll yields the results of a query, page by page. first is the size of the first page in rows, and limit
// that of further pages.
func (r *chunkReader) readAll(query chunkQuery, first, limit int) {
	for rows := first; !r.stopped; rows = limit {
		began := time.Now()
		page, full, err := query(r.ctx, r.id, r.next, rows)
		r.used.time += time.Since(began)
		for _, k := range page {
			if !r.yieldChunk(k) {
				return
			}
		}
		if err != nil {
			r.stopped = true
			r.yield(captures.Chunk{}, err)
			return
		}
		if !full || r.reachedEnd {
			return
		}
	}
}

// readBoth yields, from sequence number from on, the chunks in rows of older formats merged with those in
// segments.
func (r *chunkReader) readBoth(from int64) {
	// Pull the old chunks one by one, and push them before each newer chunk of a segment.
	old := func(yield func(captures.Chunk, error) bool) {
		(&chunkReader{s: r.s, ctx: r.ctx, id: r.id, next: from, yield: yield}).readAll(r.s.queryChunks, firstRows, chunkRows)
	}
	next, stop := iter.Pull2(old)
	defer stop()
	k, err, more := next()
	giveOld := func(before int64, all bool) bool {
		for more && err == nil && (all || k.Seq < before) {
			if !r.yieldChunk(k) {
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

	// An error of a segment comes after the old chunks that precede it.
	segments := chunkReader{s: r.s, ctx: r.ctx, id: r.id, next: from, yield: func(c captures.Chunk, err error) bool {
		if err != nil {
			if giveOld(0, true) {
				r.stopped = true
				r.yield(captures.Chunk{}, err)
			}
			return false
		}
		return giveOld(c.Seq, false) && r.yieldChunk(c)
	}}
	segments.readAll(r.s.querySegments, firstRows, segmentRows)
	if !segments.stopped && !r.stopped {
		giveOld(0, true)
	}
}

// yieldChunk checks a chunk and passes it to the caller. It returns whether to continue.
func (r *chunkReader) yieldChunk(k captures.Chunk) bool {
	err := r.ctx.Err()
	if err == nil && (k.Seq < r.next || r.reachedEnd) {
		// A forged file may contain them in any order; without this check, the same page would be read for ever.
		err = captures.Damaged("exchange %d: chunk %d comes where chunk %d or a later one is expected", r.id, k.Seq, r.next)
	}
	if err == nil {
		r.used.bodies += int64(len(k.Data))
		err = r.s.meter.charge(r.id, r.used)
	}

	// Errors end the iteration.
	if err != nil {
		r.stopped = true
		r.yield(captures.Chunk{}, pathError(r.s.Path, err))
		return false
	}
	if r.reachedEnd = k.Seq == math.MaxInt64; !r.reachedEnd {
		r.next = k.Seq + 1
	}
	r.stopped = !r.yield(k, nil)
	return !r.stopped
}

// payloadColumns are the columns that rowValues.payload reads. In the query, b is the table blobs.
const payloadColumns = `b.codec, b.size, b.data, b.sha256`

// payload reads the values of payloadColumns and returns the decompressed payload. The table blobs stores each
// payload once, under its hash.
func (c *rowValues) payload(u *payload.Unpacker) (data []byte) {
	codec, declared := c.nextValue(), c.nextValue()
	data, sum := c.bytes(), c.bytes()
	ci, ok1 := codec.(int64)
	di, ok2 := declared.(int64)
	if c.err != nil {
		return nil
	}
	if !ok1 || !ok2 {
		c.err = captures.Damaged("the payload is missing")
		return nil
	}

	// Hashes are checked only if the file is damaged (see Unpacker.Verify).
	if data, c.err = u.Unpack(ci, di, data); c.err == nil && u.Verify && !hasHash(data, sum) {
		c.err = captures.Damaged("the payload differs from the stored hash")
	}
	return data
}

// hasHash reports whether sum is the SHA-256 hash of data.
func hasHash(data, sum []byte) bool {
	hash := sha256.Sum256(data)
	return bytes.Equal(hash[:], sum)
}

// chunkColumns are the columns that rowValues.chunk reads. In the query, c is the table chunks, and b the table
// blobs.
const chunkColumns = `c.exchange, c.seq, c.dir, c.t_ns, c.size, c.data, c.blob, ` + payloadColumns

// chunk reads the values of chunkColumns and returns the chunk.
func (c *rowValues) chunk(u *payload.Unpacker) captures.Chunk {
	k := captures.Chunk{Exchange: c.int(), Seq: c.nonNegative(), Dir: captures.Direction(c.intUpTo(1)), T: time.Duration(c.nonNegative())}
	size := c.nonNegative()
	k.Data = c.bytes()
	// Chunks with equal data share one row of blobs.
	if c.nextValue() != nil && c.err == nil {
		if k.Data = c.payload(u); c.err != nil {
			c.err = fmt.Errorf("chunk %[2]d of exchange %[1]d cannot be read: %[3]w", k.Exchange, k.Seq, c.err)
		}
	}
	if c.err == nil && int64(len(k.Data)) != size {
		c.err = captures.Damaged("exchange %d: chunk %d has %d bytes, but %d were declared", k.Exchange, k.Seq, len(k.Data), size)
	}
	return k
}

// queryChunks is the chunkQuery for the table chunks of formats 1 and 2.
func (s *Store) queryChunks(ctx context.Context, id, from int64, limit int) (page []captures.Chunk, full bool, err error) {
	size := 0
	err = s.queryLimited(ctx, maxValue, func(c *rowValues) bool {
		k := c.chunk(s.unpacker)
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

// segmentColumns are the columns that rowValues.segment reads. In the query, g is the table segments, b the
// table blobs, and e the table exchanges.
const segmentColumns = segmentHead + `, g.codec, g.data, g.blob, ` + payloadColumns

// segmentHead are the columns that rowValues.segmentHead reads: those of a segment without its data.
const segmentHead = `g.n, g.last, g.exchange, g.seq, g.chunks, g.t_ns, g.size_up, g.size_down, g.entries, e.protocol`

// segmentTables is the FROM clause for segmentColumns.
const segmentTables = ` FROM segments g LEFT JOIN exchanges e ON e.id = g.exchange LEFT JOIN blobs b ON b.id = g.blob `

// segmentHead reads the values of the columns segmentHead. webSocket means that the segment's exchange is a
// WebSocket.
func (c *rowValues) segmentHead() (r segment.Row, webSocket bool) {
	r = segment.Row{
		First: c.nonNegative(), Last: c.nonNegative(), Exchange: c.int(), Seq: c.nonNegative(), Chunks: c.nonNegative(),
		T: time.Duration(c.nonNegative()), SizeUp: c.nonNegative(), SizeDown: c.nonNegative(), Entries: c.bytes(),
	}
	protocol := c.text()

	// Check what a forged file could declare before anything is allocated for it.
	switch {
	case c.err != nil:
		c.err = fmt.Errorf("the segment of chunk %[2]d in exchange %[1]d cannot be read: %[3]w", r.Exchange, r.Seq, c.err)
	case r.SizeUp > payload.MaxSize || r.SizeDown > payload.MaxSize || r.Seq > math.MaxInt64-segment.MaxChunks:
		c.err = captures.Damaged("exchange %d: the segment of chunk %d claims to have %d and %d bytes", r.Exchange, r.Seq, r.SizeUp, r.SizeDown)
	}
	return r, protocol == string(captures.WebSocket)
}

// segment reads the values of segmentColumns, and yields the chunks of the segment with their numbers in the
// capture.
func (c *rowValues) segment(u *payload.Unpacker, yield func(n int64, k captures.Chunk) bool) {
	r, webSocket := c.segmentHead()
	if c.err != nil {
		return
	}
	codec, data := c.nonNegative(), c.bytes()
	blob := c.nextValue()
	switch {
	case c.err != nil:
	case codec == payload.InBlob:
		data = c.payload(u)
	case blob != nil || codec > payload.InBlob:
		c.err = captures.Damaged("the segment has the unknown compression %d", codec)
	default:
		data, c.err = u.Unpack(codec, r.SizeUp+r.SizeDown, data)
	}
	if c.err != nil {
		c.err = fmt.Errorf("the segment of chunk %[2]d in exchange %[1]d cannot be read: %[3]w", r.Exchange, r.Seq, c.err)
		return
	}
	c.err = r.Each(data, webSocket, yield)
}

// querySegments is the chunkQuery for chunks in segments. The first segment of a page may begin before from.
func (s *Store) querySegments(ctx context.Context, id, from int64, limit int) (page []captures.Chunk, full bool, err error) {
	size, rows := 0, 0
	err = s.queryLimited(ctx, maxValue, func(c *rowValues) bool {
		c.segment(s.unpacker, func(_ int64, k captures.Chunk) bool {
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

// chunkEnds returns the sequence number of the last chunk of each direction (-1 if there is none), and the time
// of the latest chunk. If no edits are shown, it reads no payloads.
func (s *Store) chunkEnds(ctx context.Context, id int64) (last [2]int64, t time.Duration, err error) {
	last = [2]int64{-1, -1}
	if s.showsForwarded() {
		for c, err := range s.Chunks(ctx, id, 0) {
			if err != nil {
				return last, t, err
			}
			last[c.Dir], t = c.Seq, max(t, c.T)
		}
		return last, t, nil
	}
	note := func(dir captures.Direction, seq int64, at time.Duration) {
		last[dir], t = max(last[dir], seq), max(t, at)
	}
	if s.format < schema.WithSegments || s.hasOldChunks(ctx) {
		err = s.query(ctx, func(c *rowValues) bool {
			dir, seq, at := c.intUpTo(1), c.nonNegative(), c.nonNegative()
			if c.err == nil {
				note(captures.Direction(dir), seq, time.Duration(at))
			}
			return true
		}, `SELECT dir, max(seq), max(t_ns) FROM chunks WHERE exchange = ? GROUP BY dir`, id)
	}

	// In segments, the ends are read from each segment's head.
	if err != nil || s.format < schema.WithSegments {
		return last, t, err
	}
	err = s.query(ctx, func(c *rowValues) bool {
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

// forwardedChunks yields the chunks of an exchange: in the directions selected by show as they were forwarded,
// in the others as they were received.
func (s *Store) forwardedChunks(ctx context.Context, id, fromSeq int64, show [2]bool) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		edits, err := s.Edits(ctx, id)
		if err != nil {
			yield(captures.Chunk{}, err)
			return
		}
		var dirs [2]editedDirection
		for _, e := range edits {
			if show[e.Dir] {
				dirs[e.Dir].edits = append(dirs[e.Dir].edits, e)
			}
		}
		last := int64(-1)
		for c, err := range s.receivedChunks(ctx, id, 0) {
			if err != nil {
				yield(c, err)
				return
			}
			last = c.Seq
			received := len(c.Data)
			if d := &dirs[c.Dir]; len(d.edits) > 0 || d.skip > 0 {
				c.Data = d.apply(c.Data)
			} else {
				d.at += int64(len(c.Data))
			}
			if dropped := received > 0 && len(c.Data) == 0; dropped || c.Seq < fromSeq {
				continue
			}
			if !yield(c, nil) {
				return
			}
		}

		// What was added behind the last received byte.
		for dir := range dirs {
			for _, e := range dirs[dir].edits {
				if last++; last < fromSeq {
					continue
				}
				if !yield(captures.Chunk{Exchange: id, Dir: captures.Direction(dir), Seq: last, T: e.T, Data: e.Data}, nil) {
					return
				}
			}
		}
	}
}

// An editedDirection applies edits to the chunks of one direction.
type editedDirection struct {
	// edits are the replacements that were not applied yet, in order of their offsets.
	edits []captures.Edit
	// at is the offset, in the received bytes of the direction, of the next byte.
	at int64
	// skip is the number of received bytes from offset at that an applied edit has replaced.
	skip int64
}

// apply returns the bytes that were forwarded instead of p, the next received bytes.
func (d *editedDirection) apply(p []byte) []byte {
	var out []byte
	for end := d.at + int64(len(p)); d.at < end; {
		n := end - d.at
		switch {
		case d.skip > 0:
			n = min(n, d.skip)
			d.skip -= n
		case len(d.edits) > 0 && d.edits[0].Start <= d.at:
			e := d.edits[0]
			d.edits = d.edits[1:]
			out = append(out, e.Data...)
			d.skip = e.End - d.at
			continue
		default:
			if len(d.edits) > 0 {
				n = min(n, d.edits[0].Start-d.at)
			}
			out = append(out, p[:n]...)
		}
		p = p[n:]
		d.at += n
	}
	return out
}
