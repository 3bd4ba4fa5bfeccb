package captures

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// Readers fetch pages and hold no transaction while their caller runs: a slow
// consumer must not keep the recorder's log from being folded.
const (
	pageRows  = 64
	chunkRows = 1024 // preparing a query takes as long as a hundred small chunks
	pageBytes = 4 << 20
)

// readable is what a read runs on: a connection or a transaction.
type readable interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// liveExchange is exchangeColumns where the byte counts of an exchange that
// has not ended are taken from its chunks: they are written only at the end.
const liveExchange = `id, method, url, http, status, request_headers, request_trailers,
	response_headers, response_trailers, started_ns, duration_ns, client, server, tls, outcome, error,
	CASE outcome WHEN '' THEN coalesce((SELECT sum(size) FROM chunks WHERE exchange = id AND dir = 0), 0) ELSE bytes_up END,
	CASE outcome WHEN '' THEN coalesce((SELECT sum(size) FROM chunks WHERE exchange = id AND dir = 1), 0) ELSE bytes_down END,
	source`

// scan runs a query and calls each with every row until it returns false.
func scan(ctx context.Context, db readable, each func(c *cursor) bool, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return explain(err)
	}
	values := make([]any, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return explain(err)
		}
		c := &cursor{values: values}
		more := each(c)
		if c.err != nil {
			return c.err
		}
		if !more {
			return nil
		}
	}
	return explain(rows.Err())
}

// page runs one query on a connection of its own.
func (s *Store) page(ctx context.Context, each func(c *cursor) bool, query string, args ...any) error {
	conn, err := s.reader(ctx)
	if err != nil {
		return pathError(s.path, explain(err))
	}
	defer func() { _ = conn.Close() }()
	return pathError(s.path, scan(ctx, conn, each, query, args...))
}

// Exchanges yields all exchanges in the order in which they began. It ends
// after the first error.
//
// Errors: ErrDamaged.
func (s *Store) Exchanges(ctx context.Context) iter.Seq2[*Exchange, error] {
	return s.ExchangesAfter(ctx, math.MinInt64)
}

// ExchangesAfter is Exchanges for those with greater numbers than one.
func (s *Store) ExchangesAfter(ctx context.Context, number int64) iter.Seq2[*Exchange, error] {
	return func(yield func(*Exchange, error) bool) {
		for after := number; ; {
			var page []*Exchange
			err := s.page(ctx, func(c *cursor) bool {
				if e := c.exchange(); c.err == nil {
					page = append(page, e)
				}
				return true
			}, `SELECT `+liveExchange+` FROM exchanges WHERE id > ? ORDER BY id LIMIT ?`, after, pageRows)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.ID
			}
			if err == nil && len(page) == pageRows {
				continue
			}
			if err != nil && !walk(after, err, func(from int64) (int64, func() bool, error) {
				e, err := s.oneFrom(ctx, from)
				if e == nil {
					return 0, nil, err
				}
				return e.ID, func() bool { return yield(e, nil) }, err
			}) {
				return
			}
			if err = s.damageOr(err); err != nil {
				yield(nil, err)
			}
			return
		}
	}
}

// oneFrom returns the first exchange from a number on, or nil.
func (s *Store) oneFrom(ctx context.Context, from int64) (e *Exchange, err error) {
	err = s.page(ctx, func(c *cursor) bool {
		if found := c.exchange(); c.err == nil {
			e = found
		}
		return false
	}, `SELECT `+liveExchange+` FROM exchanges WHERE id >= ? ORDER BY id LIMIT 1`, from)
	return e, err
}

// maxLost is how often it is looked in vain behind what is damaged.
const maxLost = 1000

// walk looks for what can be read behind the row after which err came. Read
// returns the first row from a number on: its own number, 0 where there is none,
// and how to give it away, which says whether more is wanted.
//
// A page that is lost takes the rows of a stretch of numbers with it, so the end
// of each is looked for by halves.
func walk(after int64, err error, read func(from int64) (id int64, give func() bool, err error)) (more bool) {
	if !errors.Is(err, ErrDamaged) {
		return true
	}
	lost := 0
	for from := max(after, 0) + 1; lost < maxLost; {
		id, give, err := read(from)
		for step := int64(1); errors.Is(err, ErrDamaged) && step < math.MaxInt64/4; step *= 2 {
			lost++
			bad, good := from, from+step
			from = good
			if id, give, err = read(good); err != nil {
				continue
			}
			for good-bad > 1 {
				lost++
				middle := bad + (good-bad)/2
				if i, g, merr := read(middle); merr == nil {
					good, id, give = middle, i, g
				} else {
					bad = middle
				}
			}
		}
		if err != nil || id == 0 {
			return true
		}
		if !give() {
			return false
		}
		from = id + 1
	}
	return true
}

// damageOr is what is wrong with the file as a whole, or else err.
func (s *Store) damageOr(err error) error {
	if s.damage != nil {
		return pathError(s.path, s.damage)
	}
	return err
}

// Exchange returns one exchange.
//
// Errors: ErrNoExchange, ErrDamaged.
func (s *Store) Exchange(ctx context.Context, id int64) (*Exchange, error) {
	var e *Exchange
	err := s.page(ctx, func(c *cursor) bool {
		e = c.exchange()
		return false
	}, `SELECT `+liveExchange+` FROM exchanges WHERE id = ?`, id)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, pathError(s.path, fmt.Errorf("exchange %d: %w", id, ErrNoExchange))
	}
	return e, nil
}

// chunkColumns are what cursor.chunk reads, from chunks as c and blobs as b.
const chunkColumns = `c.exchange, c.seq, c.dir, c.t_ns, c.size, c.data, c.blob, b.codec, b.size, b.data, b.sha256`

// chunk reads the values of chunkColumns.
func (c *cursor) chunk(u *unpacker) Chunk {
	k := Chunk{Exchange: c.int(), Seq: c.size(), Dir: Direction(c.small(1)), T: time.Duration(c.size())}
	size := c.size()
	k.Data = c.bytes()
	if c.take() != nil && c.err == nil { // stored by its hash
		codec, declared := c.take(), c.take()
		data, sum := c.bytes(), c.bytes()
		ci, ok1 := codec.(int64)
		di, ok2 := declared.(int64)
		if !ok1 || !ok2 {
			c.err = damaged("exchange %d: chunk %d: its payload is missing", k.Exchange, k.Seq)
			return k
		}
		var err error
		if k.Data, err = u.unpack(ci, di, data); err != nil && c.err == nil {
			c.err = fmt.Errorf("exchange %d: chunk %d: %w", k.Exchange, k.Seq, err)
		}
		if u.verify && c.err == nil && !hasSum(k.Data, sum) {
			c.err = damaged("exchange %d: chunk %d: its payload is not what was stored", k.Exchange, k.Seq)
		}
	}
	if c.err == nil && int64(len(k.Data)) != size {
		c.err = damaged("exchange %d: chunk %d has %d bytes where %d were declared", k.Exchange, k.Seq, len(k.Data), size)
	}
	return k
}

func hasSum(data, sum []byte) bool {
	hash := sha256.Sum256(data)
	return bytes.Equal(hash[:], sum)
}

// Chunks yields the chunks of an exchange from sequence number fromSeq on, in
// order. It ends after the first error; an exchange that does not exist has none.
//
// Limits: a payload inflates to at most 64 MiB.
// Errors: ErrDamaged.
func (s *Store) Chunks(ctx context.Context, id, fromSeq int64) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		small := false // the chunks are many, and small
		for limit := pageFirst; ; limit = chunkRows {
			if small && s.damage == nil {
				pages := s.pageChunks(ctx, id, fromSeq)
				stopped := false
				n, all := pages.each(func(k Chunk) bool {
					fromSeq = k.Seq + 1
					stopped = !yield(k, nil)
					return !stopped
				})
				if stopped || all {
					return
				}
				if n >= pageFirst {
					continue
				}
			}
			page, size, full, err := s.queryChunks(ctx, id, fromSeq, limit)
			for _, k := range page {
				if !yield(k, nil) {
					return
				}
				fromSeq = k.Seq + 1
			}
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			if !full {
				return
			}
			small = size < pageSmall*len(page)
		}
	}
}

// queryChunks reads the next chunks of an exchange, up to so many or a few megabytes:
// how many bytes they have, and whether more may follow.
func (s *Store) queryChunks(ctx context.Context, id, from int64, limit int) (page []Chunk, size int, full bool, err error) {
	err = s.page(ctx, func(c *cursor) bool {
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
	return page, size, full, err
}
