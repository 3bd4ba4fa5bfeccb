package store

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/schema"
)

const (
	// listedRows is how many rows of a listing are read at once: they are
	// small, as their headers are not kept.
	listedRows = 512

	// maxSummaryText bounds a text of a Summary, in bytes: a request id, a
	// method's name or a media type is shorter by far.
	maxSummaryText = 4 << 10

	// maxSummaryFrames bounds a count.
	maxSummaryFrames = math.MaxInt32

	summaryColumns = `s.version, s.truth, s.protocol, s.codec, s.service, s.rpc, s.code, s.frames_up, s.frames_down, s.thread`
	noSummary      = `NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL`

	noTruth = `NULL, NULL, NULL, NULL, NULL`

	// summarisedTo is the name in meta of the exchange up to which each has a
	// Summary, with the version of these.
	summarisedTo = "summarised to"
)

// listed reads the values of columnsOf.listed, columnsOf.truth and summaryColumns.
func (c *rowValues) listed(version int) captures.Listed {
	e := &captures.Exchange{ID: c.int(), Transport: c.transport(), Method: c.text(), URL: c.text(), HTTP: c.text(), Status: int(c.small(math.MaxInt32))}
	started := c.int()
	if started != 0 {
		e.Started = time.Unix(0, started).UTC()
	}
	e.Duration, e.Process = time.Duration(c.size()), c.process()
	e.Outcome, e.Error = captures.Outcome(c.text()), c.text()
	e.BytesUp, e.BytesDown = c.size(), c.size()
	tls := c.small(3)
	e.TLS.Unverified = tls&1 != 0
	if tls&2 != 0 {
		e.TLS.ClientCertificate = captures.CertificateRequested
	}
	truthEnd := c.next + 5
	if c.err != nil {
		c.err = fmt.Errorf("exchange %d: %w", e.ID, c.err)
		return captures.Listed{}
	}
	l := captures.Listed{Exchange: e, Truth: hashOf(c.values[:truthEnd])}
	c.next = truthEnd
	if s := c.summary(e.ID); s != nil && e.Ended() && s.Version == version && s.Truth == l.Truth {
		l.Summary = s
	}
	return l
}

// summary reads the values of summaryColumns; nil where they are none that can
// be: what is derived is made again, and no reason to refuse a file.
func (c *rowValues) summary(id int64) *captures.Summary {
	if c.values[c.next] == nil {
		return nil
	}
	d := &rowValues{values: c.values, next: c.next}
	s := &captures.Summary{
		Exchange: id, Version: int(d.small(math.MaxInt32)), Truth: d.int(),
		Protocol: d.text(), Codec: d.text(), Service: d.text(), RPC: d.text(), Code: d.text(),
		FramesUp: int(d.small(maxSummaryFrames)), FramesDown: int(d.small(maxSummaryFrames)), Thread: d.text(),
	}
	if d.err != nil || !summaryIsBounded(s) {
		return nil
	}
	return s
}

func summaryIsBounded(s *captures.Summary) bool {
	for _, t := range []string{s.Protocol, s.Codec, s.Service, s.RPC, s.Code, s.Thread} {
		if len(t) > maxSummaryText {
			return false
		}
	}
	return true
}

// hashOf tells rows of a database apart. It is no defence: who can write a
// false Summary can write a false exchange.
func hashOf(values []any) int64 {
	h := fnv.New64a()
	for _, v := range values {
		switch v := v.(type) {
		case string:
			_, _ = h.Write([]byte(strconv.Itoa(len(v)) + ":" + v))
		case int64:
			_, _ = h.Write([]byte(strconv.FormatInt(v, 10) + ";"))
		default:
			_, _ = h.Write([]byte("-"))
		}
	}
	return int64(h.Sum64())
}

// summarises reports whether the file's format has a place for summaries.
func (s *Store) summarises() bool { return s.format >= schema.WithSummaries }

// listingQuery selects what rowValues.listed reads.
func (s *Store) listingQuery(rest string) string {
	c := columnsFor(s.format)
	if !s.summarises() {
		return `SELECT ` + c.listed + `, ` + c.truth + `, ` + noSummary + ` FROM ` + c.listedFrom + ` ` + rest
	}
	return `SELECT ` + c.listed + `, ` + c.truth + `, ` + summaryColumns + `
		FROM ` + c.listedFrom + ` LEFT JOIN summaries s ON s.exchange = e.id ` + rest
}

// Listing yields all exchanges in the order in which they began, without their headers.
// Of TLS there are Unverified and CertificateRequested. Exchanges that have a Summary of
// the version come with it. It ends after the first error.
//
// Errors: ErrDamaged.
func (s *Store) Listing(ctx context.Context, version int) iter.Seq2[captures.Listed, error] {
	read := func(c *rowValues) (captures.Listed, int64) {
		l := c.listed(version)
		if c.err != nil {
			return l, 0
		}
		return l, l.Exchange.ID
	}
	from := func(ctx context.Context, id int64) (captures.Listed, int64, error) {
		return s.listedFrom(ctx, id, version)
	}
	return rowsAfter(ctx, s, math.MinInt64, listedRows, s.listingQuery(`WHERE e.id > ? ORDER BY e.id LIMIT ?`), read, from)
}

// listedFrom returns the first exchange from a number on, with its number; 0 for
// none. If only its summary cannot be read, the exchange comes without one.
func (s *Store) listedFrom(ctx context.Context, from int64, version int) (l captures.Listed, id int64, err error) {
	const rest = `WHERE e.id >= ? ORDER BY e.id LIMIT 1`
	for _, query := range []string{
		s.listingQuery(rest),
		`SELECT ` + columnsFor(s.format).listed + `, ` + noTruth + `, ` + noSummary + ` FROM ` + columnsFor(s.format).listedFrom + ` ` + rest,
	} {
		err = s.page(ctx, func(c *rowValues) bool {
			if found := c.listed(version); c.err == nil {
				l, id = found, found.Exchange.ID
				c.err = s.meter.charge(id, usage{heads: c.bytesOf()})
			}
			return false
		}, query, from)
		if err == nil || !isDamage(err) {
			break
		}
	}
	return l, id, err
}

// Thread returns the summaries of a version that have a thread, in the order of
// their exchanges, and the exchange up to which none is missing: whatever
// belongs to the thread beyond it may be found only by looking.
//
// Errors: ErrDamaged.
func (s *Store) Thread(ctx context.Context, thread string, version int) (pieces []captures.Summary, upTo int64, err error) {
	upTo = math.MinInt64
	if !s.summarises() || thread == "" {
		return nil, upTo, nil
	}
	err = s.page(ctx, func(c *rowValues) bool {
		upTo = parseSummarisedTo(string(c.bytes()), version)
		return false
	}, `SELECT value FROM meta WHERE name = ?`, summarisedTo)
	if err != nil {
		return nil, upTo, err
	}
	last := int64(math.MinInt64)
	err = s.page(ctx, func(c *rowValues) bool {
		l := c.listed(version)
		if c.err == nil && l.Exchange.ID <= last {
			c.err = captures.Damaged("exchange %d stands behind %d", l.Exchange.ID, last)
		}
		if c.err == nil {
			last = l.Exchange.ID
			c.err = s.meter.charge(last, usage{heads: c.bytesOf()})
		}
		if c.err != nil {
			return false
		}
		switch {
		case l.Summary != nil:
			pieces = append(pieces, *l.Summary)
		default: // not what it was derived from: look at all
			upTo = math.MinInt64
		}
		return true
	}, `SELECT `+columnsFor(s.format).listed+`, `+columnsFor(s.format).truth+`, `+summaryColumns+`
		FROM summaries s INDEXED BY summaries_thread CROSS JOIN `+columnsFor(s.format).listedFrom+`
		WHERE e.id = s.exchange AND s.thread = ? AND s.thread <> '' ORDER BY s.exchange`, thread)
	return pieces, upTo, err
}

func formatSummarisedTo(version int, id int64) string { return fmt.Sprintf("%d %d", version, id) }

// parseSummarisedTo returns the exchange, or the least there can be.
func parseSummarisedTo(s string, version int) int64 {
	v, id, _ := strings.Cut(s, " ")
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && v == strconv.Itoa(version) {
		return n
	}
	return math.MinInt64
}

// PutSummaries stores summaries of one version in the place of older ones.
// UpTo is the exchange up to which each has one by then; the least int64 where
// that is not known.
//
// In a capture that is open for reading, it writes past that: while nobody
// records to the file, and where it may be written to.
//
// Errors: ErrInUse, ErrOlderFormat, or what the system says.
func (s *Store) PutSummaries(ctx context.Context, summaries []captures.Summary, upTo int64) error {
	put := func(tx *sql.Tx) error { return putSummaries(ctx, tx, summaries, upTo) }
	if s.writer != nil {
		return pathError(s.Path, s.writer.do(ctx, put))
	}
	return pathError(s.Path, s.putBeside(ctx, put))
}

func putSummaries(ctx context.Context, tx *sql.Tx, summaries []captures.Summary, upTo int64) error {
	add, err := tx.PrepareContext(ctx, `INSERT INTO summaries
		(exchange, version, truth, protocol, codec, service, rpc, code, frames_up, frames_down, thread)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
		ON CONFLICT (exchange) DO UPDATE SET
			version=?2, truth=?3, protocol=?4, codec=?5, service=?6, rpc=?7, code=?8, frames_up=?9, frames_down=?10, thread=?11
			WHERE version >> ?12 <= ?2 >> ?12`)
	if err != nil {
		return err
	}
	defer func() { _ = add.Close() }()
	version := 0
	for i := range summaries {
		m := &summaries[i]
		version = m.Version
		if !summaryIsBounded(m) {
			upTo = min(upTo, m.Exchange-1)
			continue
		}
		if _, err := add.ExecContext(ctx, m.Exchange, m.Version, m.Truth, m.Protocol, m.Codec, m.Service, m.RPC, m.Code, m.FramesUp, m.FramesDown, m.Thread, captures.ProfileBits); err != nil {
			return fmt.Errorf("exchange %d: %w", m.Exchange, err)
		}
	}
	if len(summaries) == 0 || upTo == math.MinInt64 {
		return nil
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		summarisedTo, []byte(formatSummarisedTo(version, upTo)))
	return err
}

// putBeside is writeBeside for a format that has summaries.
func (s *Store) putBeside(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if !s.summarises() {
		return captures.ErrOlderFormat
	}
	return s.writeBeside(ctx, fn)
}
