// Package rows writes what is recorded as the rows that FORMAT.md of package store
// describes. The writer of that package, which alone uses this one, decides what is
// committed when.
//
// A Writer puts small chunks together to segments, and stores sections of headers,
// processes and payloads that repeat once. It gathers rows: Flush writes them.
package rows

import (
	"database/sql"
	"encoding/json"
	"hash/maphash"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
)

// insertExchange inserts the columns that Writer.exchangeRow returns.
const (
	exchangeWidth  = 21
	insertExchange = `INSERT INTO exchanges (id, protocol, method, url, http, status, request_headers, request_trailers,
	response_headers, response_trailers, started_ns, duration_ns, client, server, process, tls,
	outcome, error, bytes_up, bytes_down, source) VALUES `
)

// updateExchange leaves what is fixed when an exchange begins.
const updateExchange = `UPDATE exchanges SET
	url=?4, http=?5, status=?6, request_trailers=?8, response_headers=?9, response_trailers=?10,
	duration_ns=?12, client=?13, server=?14, process=?15, tls=?16, outcome=?17, error=?18, bytes_up=?19, bytes_down=?20, source=?21
	WHERE id=?1`

// HTTP is how the file spells captures.HTTP.
const HTTP = "http"

// protocolOf is what the file has for a transport.
func protocolOf(t captures.Transport) string {
	if t == captures.HTTP {
		return HTTP
	}
	return string(t)
}

// A Writer has statements that are prepared once; a transaction borrows them.
type Writer struct {
	update, relate *sql.Stmt
	begin, events  *bulkInsert
	segments       segments
	sections       sectionCache
	processes      processCache

	tls     captures.TLS // that was written last, and
	tlsText string       // as JSON
}

// NewWriter returns a Writer of the rows of db.
func NewWriter(db *sql.DB) (w *Writer, err error) {
	w = new(Writer)
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.update, updateExchange},
		{&w.relate, `INSERT OR IGNORE INTO relations (n, exchange, kind, capture, target) VALUES (?, ?, ?, ?, ?)`},
		{&w.segments.extend, extendSegment},
		{&w.segments.findInline, findInline},
		{&w.segments.refer, refer},
		{&w.segments.blobs.find, `SELECT id FROM blobs WHERE sha256 = ?`},
		{&w.segments.blobs.add, `INSERT INTO blobs (sha256, codec, size, data) VALUES (?, ?, ?, ?)`},
		{&w.sections.find, `SELECT id FROM headers WHERE sha256 = ?`},
		{&w.sections.add, `INSERT INTO headers (sha256, fields) VALUES (?, ?)`},
		{&w.processes.find, `SELECT id FROM processes WHERE pid = ? AND name = ? AND client = ? AND client_version = ?`},
		{&w.processes.add, `INSERT INTO processes (pid, name, client, client_version) VALUES (?, ?, ?, ?)`},
	} {
		if *s.stmt, err = db.Prepare(s.text); err != nil {
			return nil, err
		}
	}
	for _, b := range []struct {
		bulk    **bulkInsert
		text    string
		columns int
	}{
		{&w.begin, insertExchange, exchangeWidth},
		{&w.events, `INSERT INTO events (n, exchange, kind) VALUES `, 3},
		{&w.segments.insert, insertSegment, segmentWidth},
	} {
		if *b.bulk, err = prepareBulk(db, b.text, b.columns); err != nil {
			return nil, err
		}
	}
	w.segments.firsts, w.segments.shared, w.segments.seed = make(map[uint64]int64), make(map[uint64]sharedPayload), maphash.MakeSeed()
	w.sections.blobs = &w.segments.blobs
	w.segments.blobs.pack, err = payload.NewPacker()
	return w, err
}

// Chunk adds a chunk with its number, which has an opcode if it is of a WebSocket.
func (w *Writer) Chunk(tx *sql.Tx, n int64, c *captures.Chunk, hasOpcode bool) error {
	return w.segments.add(tx, n, c, hasOpcode)
}

// Relation adds a relation with its number.
func (w *Writer) Relation(tx *sql.Tx, n int64, r *captures.Relation) error {
	_, err := tx.Stmt(w.relate).Exec(n, r.Exchange, string(r.Kind), []byte(r.Capture), r.Target)
	return err
}

// Event adds what happened to an exchange under a number.
func (w *Writer) Event(tx *sql.Tx, n, exchange int64, kind captures.EventKind) error {
	if kind == captures.Ended {
		if err := w.segments.end(tx, exchange); err != nil {
			return err
		}
	}
	return w.events.addRow(tx, n, exchange, int64(kind))
}

// Flush writes the rows that were gathered.
func (w *Writer) Flush(tx *sql.Tx) error {
	if err := w.segments.flush(tx); err != nil {
		return err
	}
	for _, b := range []*bulkInsert{w.begin, w.events} {
		if err := b.flush(tx); err != nil {
			return err
		}
	}
	return nil
}

// Exchange writes the state of an exchange, which has no row if it is new.
func (w *Writer) Exchange(tx *sql.Tx, e *captures.Exchange, isNew bool) error {
	row, err := w.exchangeRow(tx, e)
	if err != nil {
		return err
	}
	if isNew {
		return w.begin.addRow(tx, row...)
	}
	_, err = tx.Stmt(w.update).Exec(row...)
	return err
}

// exchangeRow returns the values of insertExchange.
func (w *Writer) exchangeRow(tx *sql.Tx, e *captures.Exchange) ([]any, error) {
	if w.tlsText == "" || w.tls != e.TLS {
		text, err := json.Marshal(e.TLS)
		if err != nil {
			return nil, err
		}
		w.tls, w.tlsText = e.TLS, string(text)
	}
	var started int64
	if !e.Started.IsZero() {
		started = e.Started.UnixNano()
	}
	row := append(make([]any, 0, exchangeWidth), e.ID, protocolOf(e.Transport), e.Method, e.URL, e.HTTP, e.Status)
	for _, h := range []captures.Headers{e.RequestHeaders, e.RequestTrailers, e.ResponseHeaders, e.ResponseTrailers} {
		id, err := w.sections.store(tx, h)
		if err != nil {
			return nil, err
		}
		row = append(row, id)
	}
	process, err := w.processes.store(tx, e.Process)
	return append(row,
		started, int64(e.Duration), e.Client, e.Server, process, w.tlsText,
		string(e.Outcome), e.Error, e.BytesUp, e.BytesDown, e.Source), err
}
