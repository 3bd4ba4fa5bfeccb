package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/database"
)

// Readers fetch pages and hold no transaction while their caller runs: a slow
// consumer must not keep the recorder's log from being folded.
const (
	pageRows  = 64
	pageBytes = 4 << 20
)

// readable is what a read runs on: a connection or a transaction.
type readable interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scan runs a query and calls each with every row until it returns false.
func scan(ctx context.Context, db readable, each func(c *rowValues) bool, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return database.Explain(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return database.Explain(err)
	}
	values := make([]any, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return database.Explain(err)
		}
		c := &rowValues{values: values}
		more := each(c)
		if c.err != nil {
			return c.err
		}
		if !more {
			return nil
		}
	}
	return database.Explain(rows.Err())
}

// page runs one query on a connection of its own.
func (s *Store) page(ctx context.Context, each func(c *rowValues) bool, query string, args ...any) error {
	return s.pageOf(ctx, maxHeadValue, each, query, args...)
}

// pageOf is page for values of up to limit bytes.
func (s *Store) pageOf(ctx context.Context, limit int, each func(c *rowValues) bool, query string, args ...any) error {
	ctx, cancel := s.meter.bounded(ctx)
	defer cancel()
	conn, err := s.reader(ctx, limit)
	if err != nil {
		return pathError(s.Path, database.ExplainTime(ctx, database.Explain(err)))
	}
	defer func() { _ = conn.Close() }()
	return pathError(s.Path, database.ExplainTime(ctx, scan(ctx, conn, each, query, args...)))
}

// Exchanges yields all exchanges in the order in which they began. It ends
// after the first error.
//
// Errors: ErrDamaged.
func (s *Store) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return s.ExchangesAfter(ctx, math.MinInt64)
}

// ExchangesAfter is Exchanges for those with greater numbers than one.
func (s *Store) ExchangesAfter(ctx context.Context, number int64) iter.Seq2[*captures.Exchange, error] {
	read := func(c *rowValues) (*captures.Exchange, int64) {
		e := c.exchange(s.unpack)
		return e, e.ID
	}
	query := `SELECT ` + columnsFor(s.format).exchange + ` WHERE e.id > ? ORDER BY e.id LIMIT ?`
	return rowsAfter(ctx, s, number, pageRows, query, read, s.oneFrom)
}

// A Request is the method and the URL of an exchange.
type Request struct{ Method, URL string }

// requestRows is how many requests are read at a time.
const requestRows = 4096

// Requests yields the method and the URL of each exchange, in order. It reads nothing else of
// them. It ends after the first error.
//
// Errors: ErrDamaged.
func (s *Store) Requests(ctx context.Context) iter.Seq2[Request, error] {
	read := func(c *rowValues) (Request, int64) {
		id := c.int()
		return Request{Method: c.text(), URL: c.text()}, id
	}
	first := func(ctx context.Context, from int64) (r Request, id int64, err error) {
		err = s.page(ctx, func(c *rowValues) bool {
			r, id = read(c)
			return false
		}, `SELECT id, method, url FROM exchanges WHERE id >= ? ORDER BY id LIMIT 1`, from)
		return r, id, err
	}
	return rowsAfter(ctx, s, math.MinInt64, requestRows, `SELECT id, method, url FROM exchanges WHERE id > ? ORDER BY id LIMIT ?`, read, first)
}

// rowsAfter yields what read makes of the rows that a query returns for a number
// and a count: all whose numbers are greater than that one, in order. From returns
// the first row from a number on; it is asked for what lies behind damaged pages.
//
// Limits: rows whose numbers do not ascend are damage, so their count is bounded by
// what the file can hold, and their bytes by the Limits.
func rowsAfter[T any](ctx context.Context, s *Store, number int64, count int, query string,
	read func(c *rowValues) (T, int64), from func(ctx context.Context, id int64) (T, int64, error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		r := rowReader[T]{s: s, ctx: ctx, after: number, count: count, query: query, read: read}
		give := func(value T, id int64) bool {
			if err := ctx.Err(); err != nil {
				yield(none, pathError(s.Path, err))
				return false
			}
			r.after = id
			return yield(value, nil)
		}
		for {
			rows, full, err := r.page()
			for _, row := range rows {
				if !give(row.value, row.id) {
					return
				}
			}
			if err == nil && full {
				continue
			}
			if err != nil {
				more := true
				more, err = walk(r.after, err, func(start int64) (int64, func() bool, error) {
					began := time.Now()
					value, id, err := from(ctx, start)
					if r.used.time += time.Since(began); err == nil || isDamage(err) {
						err = cmp.Or(pathError(s.Path, s.meter.charge(allExchanges, r.used)), err)
					}
					return id, func() bool { return give(value, id) }, err
				})
				if !more {
					return
				}
			}
			if err = s.damageOr(err); err != nil {
				yield(none, err)
			}
			return
		}
	}
}

// A rowReader reads the rows of a table, page by page.
type rowReader[T any] struct {
	s     *Store
	ctx   context.Context
	after int64 // the number of the last row
	count int   // rows of a page
	query string
	read  func(c *rowValues) (T, int64)
	used  usage // of all pages
}

// A numbered is a row with its number.
type numbered[T any] struct {
	id    int64
	value T
}

// page returns the next rows, and whether there may be more behind them.
func (r *rowReader[T]) page() (page []numbered[T], full bool, err error) {
	began, last, size := time.Now(), r.after, int64(0)
	err = r.s.page(r.ctx, func(c *rowValues) bool {
		value, id := r.read(c)
		if c.err == nil && id <= last {
			c.err = captures.Damaged("exchange %d stands behind %d", id, last)
		}
		if c.err == nil {
			c.err = r.s.meter.charge(id, usage{heads: c.bytesOf()})
		}
		if c.err != nil {
			return false
		}
		last = id
		page = append(page, numbered[T]{id, value})
		size += c.bytesOf()
		full = len(page) == r.count || size >= pageBytes
		return !full
	}, r.query, r.after, r.count)
	if r.used.time += time.Since(began); err == nil {
		err = pathError(r.s.Path, r.s.meter.charge(allExchanges, r.used))
	}
	return page, full, err
}

// oneFrom returns the first exchange from a number on, with its number; 0 for none.
func (s *Store) oneFrom(ctx context.Context, from int64) (e *captures.Exchange, id int64, err error) {
	err = s.page(ctx, func(c *rowValues) bool {
		if found := c.exchange(s.unpack); c.err == nil {
			e, id = found, found.ID
			c.err = s.meter.charge(id, usage{heads: c.bytesOf()})
		}
		return false
	}, `SELECT `+columnsFor(s.format).exchange+` WHERE e.id >= ? ORDER BY e.id LIMIT 1`, from)
	return e, id, err
}

// maxLost is how often it is looked in vain behind what is damaged.
const maxLost = 1000

// isDamage reports whether err is about damaged bytes, behind which there may be
// others, as opposed to a limit or the end of the context.
func isDamage(err error) bool {
	_, limited := errors.AsType[*LimitError](err)
	return errors.Is(err, captures.ErrDamaged) && !limited
}

// walk looks for what can be read behind the row after which err came. Read
// returns the first row from a number on: its own number, 0 where there is none,
// and how to give it away, which says whether more is wanted.
//
// A page that is lost takes the rows of a stretch of numbers with it, so the end
// of each is looked for by halves.
//
// Errors: err, or what ended the search for good.
func walk(after int64, err error, read func(from int64) (id int64, give func() bool, err error)) (more bool, why error) {
	if !isDamage(err) {
		return true, err
	}
	lost := 0
	for from := max(after, 0); lost < maxLost && from < math.MaxInt64/2; {
		from++
		id, give, rerr := read(from)
		for step := int64(1); isDamage(rerr) && step < math.MaxInt64/4; step *= 2 {
			lost++
			bad, good := from, from+step
			from = good
			if id, give, rerr = read(good); rerr != nil {
				continue
			}
			for good-bad > 1 {
				lost++
				middle := bad + (good-bad)/2
				i, g, merr := read(middle)
				switch {
				case merr == nil:
					good, id, give = middle, i, g
				case isDamage(merr):
					bad = middle
				default:
					return true, merr
				}
			}
		}
		switch {
		case rerr != nil && !isDamage(rerr):
			return true, rerr
		case rerr != nil || id < from: // no further row, or one that is out of order
			return true, err
		case !give():
			return false, nil
		}
		from = id
	}
	return true, err
}

// damageOr is what is wrong with the file as a whole, or else err.
func (s *Store) damageOr(err error) error {
	if s.damage != nil && (err == nil || isDamage(err)) {
		return pathError(s.Path, s.damage)
	}
	return err
}

// Exchange returns one exchange.
//
// Errors: ErrNoExchange, ErrDamaged.
func (s *Store) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	var e *captures.Exchange
	err := s.page(ctx, func(c *rowValues) bool {
		e = c.exchange(s.unpack)
		return false
	}, `SELECT `+columnsFor(s.format).exchange+` WHERE e.id = ?`, id)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, pathError(s.Path, fmt.Errorf("exchange %d: %w", id, captures.ErrNoExchange))
	}
	return e, nil
}

// BodyBytes returns how many bytes the bodies of all exchanges have together.
//
// Errors: ErrDamaged.
func (s *Store) BodyBytes(ctx context.Context) (n int64, err error) {
	err = s.page(ctx, func(c *rowValues) bool {
		n = c.size()
		return false
	}, `SELECT coalesce(sum(bytes_up + bytes_down), 0) FROM exchanges`)
	return n, err
}
