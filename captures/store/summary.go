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
	"unwire/captures/store/internal/segment"
)

const (
	// listedRows is the number of rows of a listing that one query reads. The rows are small because they have
	// no headers.
	listedRows = 512

	// maxSummaryText limits each text of a Summary, in bytes. Method names and media types are much shorter.
	maxSummaryText = 4 << 10

	// maxSummaryFrames limits the frame counts of a Summary.
	maxSummaryFrames = math.MaxInt32

	// summaryColumns are the columns of a Summary; a format or query without summaries has other values in
	// their place.
	summaryColumns = `s.version, s.truth, s.protocol, s.codec, s.service, s.rpc, s.code, s.frames_up, s.frames_down, s.thread`
	noSummary      = `NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL`

	// noHashed is a placeholder for the columns columnsOf.hashed, for queries in damaged files.
	noHashed = `NULL, NULL, NULL, NULL, NULL`

	// summarisedTo is the name of the row in meta with the ID up to which every exchange has a Summary, and the
	// version of these.
	summarisedTo = "summarised to"
)

// listed reads the values of columnsOf.listed, columnsOf.hashed and summaryColumns. It omits a Summary that is
// invalid or does not have the given version.
func (c *rowValues) listed(version int) captures.Listed {
	e := &captures.Exchange{ID: c.int(), Transport: c.transport(), Method: c.text(), URL: c.text(), HTTP: c.text(), Status: int(c.intUpTo(math.MaxInt32))}
	started := c.int()
	if started != 0 {
		e.Started = time.Unix(0, started).UTC()
	}
	e.Duration, e.Process = time.Duration(c.nonNegative()), c.process()
	e.Outcome, e.Error = captures.Outcome(c.text()), c.text()
	e.BytesUp, e.BytesDown = c.nonNegative(), c.nonNegative()
	tls := c.intUpTo(3)
	e.TLS.Unverified = tls&1 != 0
	if tls&2 != 0 {
		e.TLS.ClientCertificate = captures.CertificateRequested
	}

	// The hash covers all columns up to here.
	truthEnd := c.next + 5
	if c.err != nil {
		c.err = fmt.Errorf("exchange %d: %w", e.ID, c.err)
		return captures.Listed{}
	}
	l := captures.Listed{Exchange: e, ExchangeHash: hashValues(c.values[:truthEnd])}
	c.next = truthEnd
	if s := c.summary(e.ID); s != nil && e.Ended() && s.Version == version && s.ExchangeHash == l.ExchangeHash {
		l.Summary = s
	}
	return l
}

// summary reads the values of summaryColumns for exchange id. If they are invalid, it returns nil, because a
// summary can be derived again.
func (c *rowValues) summary(id int64) *captures.Summary {
	if c.values[c.next] == nil {
		return nil
	}
	d := &rowValues{values: c.values, next: c.next}
	s := &captures.Summary{
		Exchange: id, Version: int(d.intUpTo(math.MaxInt32)), ExchangeHash: d.int(),
		Protocol: d.text(), Codec: d.text(), Service: d.text(), RPC: d.text(), Code: d.text(),
		FramesUp: int(d.intUpTo(maxSummaryFrames)), FramesDown: int(d.intUpTo(maxSummaryFrames)), Thread: d.text(),
	}
	if d.err != nil || !summaryIsBounded(s) {
		return nil
	}
	return s
}

// summaryIsBounded reports whether no text of a Summary is too long.
func summaryIsBounded(s *captures.Summary) bool {
	for _, t := range []string{s.Protocol, s.Codec, s.Service, s.RPC, s.Code, s.Thread} {
		if len(t) > maxSummaryText {
			return false
		}
	}
	return true
}

// hashValues returns an FNV-1a hash of a row's values. It detects changes, not forgeries: whoever can forge a
// Summary can forge an exchange too.
func hashValues(values []any) int64 {
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

// hasSummaries reports whether the file's format has a table for summaries.
func (s *Store) hasSummaries() bool { return s.format >= schema.WithSummaries }

// listingQuery returns the query whose rows rowValues.listed reads. rest is its WHERE clause and anything after
// it.
func (s *Store) listingQuery(rest string) string {
	c := columnsFor(s.format)
	if !s.hasSummaries() {
		return `SELECT ` + c.listed + `, ` + c.hashed + `, ` + noSummary + ` FROM ` + c.listedFrom + ` ` + rest
	}
	return `SELECT ` + c.listed + `, ` + c.hashed + `, ` + summaryColumns + `
		FROM ` + c.listedFrom + ` LEFT JOIN summaries s ON s.exchange = e.id ` + rest
}

// Listing yields all exchanges, ordered by ID, without headers. In TLS, only Unverified and ClientCertificate
// may be set. Exchanges that have a valid Summary of the given version include it. It ends after the first
// error.
//
// Errors: ErrDamaged.
func (s *Store) Listing(ctx context.Context, version int) iter.Seq2[captures.Listed, error] {
	return s.listing(ctx, version, "")
}

// ListingSince yields the exchanges about which something was recorded after a row number, such as an earlier
// LastNumber, each with its stored summary if that has the given version.
func (s *Store) ListingSince(ctx context.Context, version int, number int64) iter.Seq2[captures.Listed, error] {
	if number <= 0 {
		return s.Listing(ctx, version)
	}
	after := strconv.FormatInt(number, 10)
	ids := `SELECT exchange FROM events WHERE n > ` + after + ` UNION SELECT exchange FROM chunks WHERE n > ` + after
	if s.format >= schema.WithSegments {
		// A segment that begins at or before the number can have later chunks.
		first := strconv.FormatInt(number-segment.MaxSpan, 10)
		ids += ` UNION SELECT exchange FROM segments WHERE n > ` + first + ` AND last > ` + after
	}
	return s.listing(ctx, version, `e.id IN (`+ids+`) AND `)
}

// listing yields the exchanges that meet an SQL condition, which is "" or ends with AND.
func (s *Store) listing(ctx context.Context, version int, condition string) iter.Seq2[captures.Listed, error] {
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
	return rowsAfter(ctx, s, math.MinInt64, listedRows, s.listingQuery(`WHERE `+condition+`e.id > ? ORDER BY e.id LIMIT ?`), read, from)
}

// listedFrom returns the first exchange whose ID is at least from, and its ID; the ID is 0 if there is none. If
// only the summary is damaged, the exchange has none.
func (s *Store) listedFrom(ctx context.Context, from int64, version int) (l captures.Listed, id int64, err error) {
	const rest = `WHERE e.id >= ? ORDER BY e.id LIMIT 1`
	for _, query := range []string{
		s.listingQuery(rest),
		`SELECT ` + columnsFor(s.format).listed + `, ` + noHashed + `, ` + noSummary + ` FROM ` + columnsFor(s.format).listedFrom + ` ` + rest,
	} {
		err = s.query(ctx, func(c *rowValues) bool {
			if found := c.listed(version); c.err == nil {
				l, id = found, found.Exchange.ID
				c.err = s.meter.charge(id, usage{heads: c.byteSize()})
			}
			return false
		}, query, from)
		if err == nil || !isDamage(err) {
			break
		}
	}
	return l, id, err
}

// Thread returns the summaries of a conversation's exchanges, ordered by ID, and the ID up to which every
// exchange has a summary. Parts of the conversation beyond that ID can be found only by decoding.
//
// Errors: ErrDamaged.
func (s *Store) Thread(ctx context.Context, thread string, version int) (pieces []captures.Summary, upTo int64, err error) {
	upTo = math.MinInt64
	if !s.hasSummaries() || thread == "" {
		return nil, upTo, nil
	}
	err = s.query(ctx, func(c *rowValues) bool {
		upTo = parseSummarisedTo(string(c.bytes()), version)
		return false
	}, `SELECT value FROM meta WHERE name = ?`, summarisedTo)
	if err != nil {
		return nil, upTo, err
	}

	// The join reads the exchanges too, to check that the summaries are valid.
	last := int64(math.MinInt64)
	err = s.query(ctx, func(c *rowValues) bool {
		l := c.listed(version)
		if c.err == nil && l.Exchange.ID <= last {
			c.err = captures.Damaged("exchange %d comes after exchange %d", l.Exchange.ID, last)
		}
		if c.err == nil {
			last = l.Exchange.ID
			c.err = s.meter.charge(last, usage{heads: c.byteSize()})
		}
		if c.err != nil {
			return false
		}
		switch {
		case l.Summary != nil:
			pieces = append(pieces, *l.Summary)
		// The summary is outdated: the caller must look at all exchanges.
		default:
			upTo = math.MinInt64
		}
		return true
	}, `SELECT `+columnsFor(s.format).listed+`, `+columnsFor(s.format).hashed+`, `+summaryColumns+`
		FROM summaries s INDEXED BY summaries_thread CROSS JOIN `+columnsFor(s.format).listedFrom+`
		WHERE e.id = s.exchange AND s.thread = ? AND s.thread <> '' ORDER BY s.exchange`, thread)
	return pieces, upTo, err
}

// formatSummarisedTo returns the text that records that all exchanges up to an ID have summaries of a version.
func formatSummarisedTo(version int, id int64) string { return fmt.Sprintf("%d %d", version, id) }

// parseSummarisedTo returns the ID in a text of formatSummarisedTo, or the smallest int64 if the text is
// invalid or of another version.
func parseSummarisedTo(s string, version int) int64 {
	v, id, _ := strings.Cut(s, " ")
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && v == strconv.Itoa(version) {
		return n
	}
	return math.MinInt64
}

// PutSummaries stores summaries of exchanges, all of the same version. They replace older ones. Afterwards,
// every exchange up to the ID upTo must have one; upTo is the smallest int64 if that is unknown.
//
// If the capture is open for reading, it opens the file for writing for a moment. This needs write
// permission, and that nobody is recording to the file.
//
// Errors: ErrInUse, ErrOlderFormat, and errors of the system.
func (s *Store) PutSummaries(ctx context.Context, summaries []captures.Summary, upTo int64) error {
	put := func(tx *sql.Tx) error { return putSummaries(ctx, tx, summaries, upTo) }
	if s.writer != nil {
		return pathError(s.Path, s.writer.runInTransaction(ctx, put))
	}
	return pathError(s.Path, s.putSummariesAsReader(ctx, put))
}

// putSummaries writes summaries in a transaction. It keeps summaries of newer code (see captures.ProfileBits).
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

		// An exchange without a stored summary ends the complete range.
		if !summaryIsBounded(m) {
			upTo = min(upTo, m.Exchange-1)
			continue
		}
		if _, err := add.ExecContext(ctx, m.Exchange, m.Version, m.ExchangeHash, m.Protocol, m.Codec, m.Service, m.RPC, m.Code, m.FramesUp, m.FramesDown, m.Thread, captures.ProfileBits); err != nil {
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

// putSummariesAsReader runs fn as writeAsReader does, or returns an error if the format has no summaries.
func (s *Store) putSummariesAsReader(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if !s.hasSummaries() {
		return captures.ErrOlderFormat
	}
	return s.writeAsReader(ctx, fn)
}

// HasChangedSince reports whether, after a row number, something was recorded of an exchange, or anything was
// added on which decoding any exchange depends: a relation, a reading, a definition, or an edit.
//
// Errors: ErrDamaged.
func (s *Store) HasChangedSince(ctx context.Context, id, number int64) (changed bool, err error) {
	query := `SELECT EXISTS (SELECT 1 FROM events WHERE n > ?1 AND exchange = ?2) OR EXISTS (SELECT 1 FROM chunks WHERE n > ?1 AND exchange = ?2)`
	if s.format >= schema.WithSegments {
		query += ` OR EXISTS (SELECT 1 FROM segments WHERE n > ?3 AND last > ?1 AND exchange = ?2)`
		for _, table := range []string{"relations", "readings", "definitions", "edits", "forwarded_heads"} {
			query += ` OR EXISTS (SELECT 1 FROM ` + table + ` WHERE n > ?1)`
		}
	}
	err = s.query(ctx, func(c *rowValues) bool {
		changed = c.int() != 0
		return false
	}, query, number, id, number-segment.MaxSpan)
	return changed, err
}
