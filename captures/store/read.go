package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/database"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
)

// Sizes of a page, i.e. of what one query reads, in rows and approximate bytes. No transaction is open while
// the caller processes a page, because an open transaction would prevent SQLite from checkpointing the
// recorder's log.
const (
	pageRows  = 64
	pageBytes = 4 << 20
)

// A querier is something that runs queries: a database connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scan runs a query and calls each for every row until each returns false or sets the row's error. It returns
// that error or the query's.
func scan(ctx context.Context, db querier, each func(c *rowValues) bool, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return database.Explain(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return database.Explain(err)
	}

	// Read values of any type: rowValues checks them.
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

// query runs a query on a connection of the pool and calls each for every row, as scan does. Values of more
// than maxHeadValue bytes are errors.
func (s *Store) query(ctx context.Context, each func(c *rowValues) bool, query string, args ...any) error {
	return s.queryLimited(ctx, maxHeadValue, each, query, args...)
}

// queryLimited runs a query and calls each for every row. Values of more than limit bytes are refused.
func (s *Store) queryLimited(ctx context.Context, limit int, each func(c *rowValues) bool, query string, args ...any) error {
	ctx, cancel := s.meter.withTimeLimit(ctx)
	defer cancel()
	r, err := s.readers.Get(ctx, limit)
	if err != nil {
		return pathError(s.Path, database.ExplainTime(ctx, database.Explain(err)))
	}
	defer s.readers.Put(r)
	return pathError(s.Path, database.ExplainTime(ctx, scan(ctx, r, each, query, args...)))
}

// Exchanges yields all exchanges, ordered by ID. It ends after the first error. In a damaged file, it yields
// what is readable, and then the error.
//
// Errors: ErrDamaged, a LimitError.
func (s *Store) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return s.ExchangesAfter(ctx, math.MinInt64)
}

// ExchangesAfter yields the exchanges whose ID is larger than number, as Exchanges does.
func (s *Store) ExchangesAfter(ctx context.Context, number int64) iter.Seq2[*captures.Exchange, error] {
	read := func(c *rowValues) (*captures.Exchange, int64) {
		e := c.exchange(s.unpacker)
		return e, e.ID
	}
	query := `SELECT ` + columnsFor(s.format).exchange + ` WHERE e.id > ? ORDER BY e.id LIMIT ?`
	received := rowsAfter(ctx, s, number, pageRows, query, read, s.firstExchangeFrom)
	if !s.showsForwarded() {
		return received
	}
	return func(yield func(*captures.Exchange, error) bool) {
		for e, err := range received {
			if err == nil {
				err = s.applyHeads(ctx, e, s.forwarded)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// A Request is the Method and the URL of an exchange.
type Request struct {
	// Method is the HTTP method; "" if the connection does not carry HTTP.
	Method string
	// URL is the absolute URL of the exchange.
	URL string
}

// requestRows is the number of requests in a page.
const requestRows = 4096

// Requests yields the method and the URL of each exchange, ordered by ID. It reads nothing else and is therefore
// fast. It ends after the first error.
//
// Errors: ErrDamaged.
func (s *Store) Requests(ctx context.Context) iter.Seq2[Request, error] {
	read := func(c *rowValues) (Request, int64) {
		id := c.int()
		return Request{Method: c.text(), URL: c.text()}, id
	}
	first := func(ctx context.Context, from int64) (r Request, id int64, err error) {
		err = s.query(ctx, func(c *rowValues) bool {
			r, id = read(c)
			return false
		}, `SELECT id, method, url FROM exchanges WHERE id >= ? ORDER BY id LIMIT 1`, from)
		return r, id, err
	}
	return rowsAfter(ctx, s, math.MinInt64, requestRows, `SELECT id, method, url FROM exchanges WHERE id > ? ORDER BY id LIMIT ?`, read, first)
}

// rowsAfter yields all rows with a number above number, in order. query has two parameters, a number and a
// count, and read converts its rows. from returns the first row whose number is at least id, with its number;
// it is used to skip damaged pages.
//
// Limits: numbers that do not increase are damage. This bounds the number of rows by what the file can contain;
// their bytes are bounded by Limits.
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

		// Read page after page until one is not full.
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

			// Yield what is still readable behind the damage, and then the error.
			if err != nil {
				more := true
				more, err = readPastDamage(r.after, err, func(start int64) (int64, func() bool, error) {
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
	// s is the capture from which the rows are read.
	s *Store
	// ctx is the context of the reading; its end cancels it.
	ctx context.Context
	// after is the number of the last row that was yielded.
	after int64
	// count is the number of rows in the current page.
	count int

	// query is the SQL text that selects a page of rows after a row number.
	query string
	// read converts the columns of a row to a value, and returns it with the row's number.
	read func(c *rowValues) (T, int64)
	// used is the amount of data read in all pages.
	used usage
}

// A numberedRow is the value of a row with the row's number.
type numberedRow[T any] struct {
	// id is the number of the row.
	id int64
	// value is the value of the row.
	value T
}

// page returns the next rows. full reports whether more may follow.
func (r *rowReader[T]) page() (page []numberedRow[T], full bool, err error) {
	began, last, size := time.Now(), r.after, int64(0)
	err = r.s.query(r.ctx, func(c *rowValues) bool {
		value, id := r.read(c)
		if c.err == nil && id <= last {
			c.err = captures.Damaged("exchange %d comes after exchange %d", id, last)
		}
		if c.err == nil {
			c.err = r.s.meter.charge(id, usage{heads: c.byteSize()})
		}
		if c.err != nil {
			return false
		}
		last = id
		page = append(page, numberedRow[T]{id, value})
		size += c.byteSize()
		full = len(page) == r.count || size >= pageBytes
		return !full
	}, r.query, r.after, r.count)
	if r.used.time += time.Since(began); err == nil {
		err = pathError(r.s.Path, r.s.meter.charge(allExchanges, r.used))
	}
	return page, full, err
}

// firstExchangeFrom returns the first exchange whose ID is at least from, and its ID; the ID is 0 if there is
// none.
func (s *Store) firstExchangeFrom(ctx context.Context, from int64) (e *captures.Exchange, id int64, err error) {
	err = s.query(ctx, func(c *rowValues) bool {
		if found := c.exchange(s.unpacker); c.err == nil {
			e, id = found, found.ID
			c.err = s.meter.charge(id, usage{heads: c.byteSize()})
		}
		return false
	}, `SELECT `+columnsFor(s.format).exchange+` WHERE e.id >= ? ORDER BY e.id LIMIT 1`, from)
	return e, id, err
}

// maxDamagedReads limits the number of failing reads in readPastDamage.
const maxDamagedReads = 1000

// isDamage reports whether err is due to damaged data, after which more rows may be readable, and not to a
// limit or a cancelled context.
func isDamage(err error) bool {
	_, limited := errors.AsType[*LimitError](err)
	return errors.Is(err, captures.ErrDamaged) && !limited
}

// readPastDamage continues after an error with the readable rows that follow the damaged ones. after is the
// number of the last row that was read. read returns the first row whose number is at least from: its number (0
// if there is none) and a function that yields it and reports whether the caller wants more. more is false if
// the caller wants no more.
//
// A damaged page hides a range of row numbers. The end of the range is found by galloping and then binary
// search.
//
// Errors: err, the error before, or the error that ended the search.
func readPastDamage(after int64, err error, read func(from int64) (id int64, give func() bool, err error)) (more bool, why error) {
	if !isDamage(err) {
		return true, err
	}
	lost := 0
	for from := max(after, 0); lost < maxDamagedReads && from < math.MaxInt64/2; {

		// Find the next readable row: double the step until one is found.
		from++
		id, give, rerr := read(from)
		for step := int64(1); isDamage(rerr) && step < math.MaxInt64/4; step *= 2 {
			lost++
			bad, good := from, from+step
			from = good
			if id, give, rerr = read(good); rerr != nil {
				continue
			}

			// The first readable row is between bad and good.
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

		// Yield the row, and try the one behind it.
		switch {
		case rerr != nil && !isDamage(rerr):
			return true, rerr
		case rerr != nil || id < from: // no more rows, or out of order
			return true, err
		case !give():
			return false, nil
		}
		from = id
	}
	return true, err
}

// damageOr returns the error that describes the damage of the whole file, if it is damaged and err is nil or is
// due to that; otherwise err.
func (s *Store) damageOr(err error) error {
	if s.damage != nil && (err == nil || isDamage(err)) {
		return pathError(s.Path, s.damage)
	}
	return err
}

// Exchange returns the exchange with an ID.
//
// Errors: ErrNoExchange, ErrDamaged.
func (s *Store) Exchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	e, err := s.receivedExchange(ctx, id)
	if err == nil && s.showsForwarded() {
		err = s.applyHeads(ctx, e, s.forwarded)
	}
	return e, err
}

// receivedExchange returns an exchange with the heads as unwire received them, without the changes of rules.
func (s *Store) receivedExchange(ctx context.Context, id int64) (*captures.Exchange, error) {
	var e *captures.Exchange
	err := s.query(ctx, func(c *rowValues) bool {
		e = c.exchange(s.unpacker)
		return false
	}, `SELECT `+columnsFor(s.format).exchange+` WHERE e.id = ?`, id)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, pathError(s.Path, captures.NoExchange(id))
	}
	return e, nil
}

// BodyBytes returns the total size of all bodies, in bytes. Exchanges in flight count as 0.
//
// Errors: ErrDamaged.
func (s *Store) BodyBytes(ctx context.Context) (n int64, err error) {
	err = s.query(ctx, func(c *rowValues) bool {
		n = c.nonNegative()
		return false
	}, `SELECT coalesce(sum(bytes_up + bytes_down), 0) FROM exchanges`)
	return n, err
}

const (
	// maxEdits limits the number of edits that are read for one exchange, and maxEditBytes their data together,
	// in bytes.
	maxEdits     = 1_000_000
	maxEditBytes = 256 << 20
)

// showsForwarded reports whether any direction is shown as it was forwarded.
func (s *Store) showsForwarded() bool { return s.forwarded[captures.Up] || s.forwarded[captures.Down] }

// applyHeads changes an exchange, in the directions selected by dirs, to what was forwarded: heads, sizes and
// declared lengths.
func (s *Store) applyHeads(ctx context.Context, ex *captures.Exchange, dirs [2]bool) error {
	heads, err := s.ForwardedHeads(ctx, ex.ID)
	if err != nil {
		return err
	}
	for _, h := range heads {
		switch {
		case !dirs[h.Dir]:
		case h.Dir == captures.Up:
			ex.Method, ex.URL, ex.RequestHeaders, ex.RequestTrailers = h.Method, h.URL, h.Headers, h.Trailers
		default:
			ex.Status, ex.ResponseHeaders, ex.ResponseTrailers = h.Status, h.Headers, h.Trailers
		}
	}
	edits, err := s.Edits(ctx, ex.ID)
	var longer [2]int64
	for _, e := range edits {
		longer[e.Dir] += int64(len(e.Data)) - (e.End - e.Start)
	}
	if dirs[captures.Up] {
		resize(&ex.BytesUp, longer[captures.Up], &ex.RequestHeaders)
	}
	if dirs[captures.Down] {
		resize(&ex.BytesDown, longer[captures.Down], &ex.ResponseHeaders)
	}
	return err
}

// resize adds longer bytes to the size of a body, and to the Content-Length in h if that was the size before.
func resize(size *int64, longer int64, h *captures.Headers) {
	before := strconv.FormatInt(*size, 10)
	*size += longer
	for i, f := range *h {
		if longer != 0 && f.Value == before && strings.EqualFold(f.Name, "content-length") {
			*h = slices.Clone(*h)
			(*h)[i].Value = strconv.FormatInt(*size, 10)
		}
	}
}

// Edits returns the changes that rules made to the bodies of an exchange, ordered by direction and offset.
//
// Limits: 1,000,000 edits with 256 MiB. Errors: ErrDamaged; a LimitError.
func (s *Store) Edits(ctx context.Context, id int64) ([]captures.Edit, error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	u, err := payload.NewUnpacker()
	if err != nil {
		return nil, err
	}
	var list []captures.Edit
	size := int64(0)
	ends := [2]int64{}
	err = s.queryLimited(ctx, payload.MaxSize, func(c *rowValues) bool {
		e := captures.Edit{
			Exchange: id, Dir: captures.Direction(c.intUpTo(1)), Start: c.nonNegative(), End: c.nonNegative(),
			T: time.Duration(c.nonNegative()), Rule: c.text(),
		}
		n := c.intUpTo(payload.MaxSize)
		if size += n; size > maxEditBytes || len(list) == maxEdits {
			c.err = &LimitError{Exchange: id, What: "has more than 256 MiB, or 1,000,000, of edits"}
			return false
		}
		if inBlob := c.values[c.next] != nil; inBlob {
			c.next++
			e.Data = c.payload(u)
		} else {
			c.next += 5
			e.Data = c.bytes()
		}
		switch {
		case c.err != nil:
			return false
		case int64(len(e.Data)) != n:
			c.err = captures.Damaged("an edit of exchange %d has %d bytes instead of %d", id, len(e.Data), n)
		case e.End < e.Start || e.Start < ends[e.Dir]:
			c.err = captures.Damaged("edits of exchange %d overlap", id)
		}
		ends[e.Dir] = e.End
		list = append(list, e)
		return c.err == nil
	}, `SELECT dir, start_off, end_off, t_ns, rule, e.size, e.blob, b.codec, b.size, b.data, b.sha256, e.data
		FROM edits e LEFT JOIN blobs b ON b.id = e.blob
		WHERE exchange = ? ORDER BY dir, start_off, n LIMIT ?`, id, maxEdits+1)
	return list, err
}

// ForwardedHeads returns the heads of an exchange that rules changed, as they were forwarded, by direction.
//
// Errors: ErrDamaged.
func (s *Store) ForwardedHeads(ctx context.Context, id int64) ([]captures.ForwardedHead, error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	u, err := payload.NewUnpacker()
	if err != nil {
		return nil, err
	}
	var list []captures.ForwardedHead
	err = s.query(ctx, func(c *rowValues) bool {
		h := captures.ForwardedHead{
			Exchange: id, Dir: captures.Direction(c.intUpTo(1)), Rule: c.text(), Method: c.text(), URL: c.text(),
			Status: int(c.intUpTo(math.MaxInt32)), Headers: c.headers(u), Trailers: c.headers(u),
		}
		list = append(list, h)
		return c.err == nil
	}, `SELECT e.dir, e.rule, e.method, e.url, e.status, `+section("headers", "h")+`, `+section("trailers", "t")+`
		FROM forwarded_heads e`+sectionTables("headers", "h")+sectionTables("trailers", "t")+`
		WHERE e.exchange = ? ORDER BY e.dir`, id)
	return list, err
}
