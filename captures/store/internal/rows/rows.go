// Package rows converts recorded operations to the rows that FORMAT.md of package store describes. Only the
// writer of that package uses it, and decides when to commit.
//
// A Writer combines small chunks to segments, and stores repeated header sections, processes and payloads once.
// It keeps rows that may still change in memory until Flush.
//
//	w, err := rows.NewWriter(conn)
//	err = w.Exchange(&exchange, true)
//	err = w.Chunk(n, &chunk, false)
//	err = w.Flush()
package rows

import (
	"encoding/json"
	"errors"

	"unwire/captures"
	"unwire/captures/store/internal/engine"
	"unwire/captures/store/internal/payload"
)

const (
	// intoExchanges is the table exchanges with its columns, for INSERT statements.
	intoExchanges = `exchanges (id, protocol, method, url, http, status, request_headers, request_trailers,
		response_headers, response_trailers, started_ns, duration_ns, client, server, process, tls,
		outcome, error, bytes_up, bytes_down, source)`

	// updateExchange updates an exchange's row. Its parameters are those of intoExchanges; it does not change
	// columns that are fixed when an exchange begins.
	updateExchange = `UPDATE exchanges SET
		url=?4, http=?5, status=?6, request_trailers=?8, response_headers=?9, response_trailers=?10,
		duration_ns=?12, client=?13, server=?14, process=?15, tls=?16, outcome=?17, error=?18, bytes_up=?19, bytes_down=?20, source=?21
		WHERE id=?1`
)

// HTTP is the text by which the file represents captures.HTTP.
const HTTP = "http"

// protocolOf returns the text by which the file represents a transport.
func protocolOf(t captures.Transport) string {
	if t == captures.HTTP {
		return HTTP
	}
	return string(t)
}

// A Writer inserts recorded data into the tables of a capture. Its connection must have begun a transaction.
type Writer struct {
	// update is the statement that updates the row of an exchange.
	update *engine.Stmt
	// relate is the statement that inserts a link between two exchanges.
	relate *engine.Stmt

	// exchanges inserts rows into the table of exchanges.
	exchanges inserter[exchangeRow]
	// events inserts rows into the table of events, such as the start and end of an exchange.
	events inserter[eventRow]
	// segments writes body bytes to the table segments.
	segments segments
	// edits are the statements that record how rules changed forwarded data.
	edits edits
	// sections stores header sections, each distinct one once.
	sections sectionCache
	// processes stores client programs, each distinct one once.
	processes processCache

	// tls is the TLS value that was encoded last; most exchanges share it.
	tls captures.TLS
	// tlsText is the JSON of the TLS value that was encoded last.
	tlsText string
}

// NewWriter returns a Writer that inserts rows on a connection.
func NewWriter(c *engine.Conn) (w *Writer, err error) {
	w = &Writer{segments: newSegments()}

	// Prepare all statements once; a statement is then executed for each row without being parsed.
	for _, s := range []struct {
		stmt **engine.Stmt
		text string
	}{
		{&w.update, updateExchange},
		{&w.relate, `INSERT OR IGNORE INTO relations (n, exchange, kind, capture, target) VALUES (?, ?, ?, ?, ?)`},
		{&w.edits.insert, insertEdit},
		{&w.edits.insertHead, insertHead},
		{&w.segments.extend, extendSegment},
		{&w.segments.findInline, findInline},
		{&w.segments.referToBlob, referToBlob},
		{&w.segments.blobs.find, `SELECT id FROM blobs WHERE sha256 = ?`},
		{&w.segments.blobs.add, `INSERT INTO blobs (sha256, codec, size, data) VALUES (?, ?, ?, ?)`},
		{&w.sections.find, `SELECT id FROM headers WHERE sha256 = ?`},
		{&w.sections.add, `INSERT INTO headers (sha256, fields) VALUES (?, ?)`},
		{&w.processes.find, `SELECT id FROM processes WHERE pid = ? AND name = ? AND client = ? AND client_version = ?`},
		{&w.processes.add, `INSERT INTO processes (pid, name, client, client_version) VALUES (?, ?, ?, ?)`},
	} {
		if *s.stmt, err = c.Prepare(s.text); err != nil {
			return nil, err
		}
	}

	// These tables get several rows per statement.
	if err := errors.Join(
		w.exchanges.prepare(c, intoExchanges, bindExchange),
		w.events.prepare(c, intoEvents, bindEvent),
		w.segments.insert.prepare(c, intoSegments, bindSegment),
	); err != nil {
		return nil, err
	}
	w.segments.blobs.conn, w.sections.conn, w.processes.conn = c, c, c
	w.sections.blobs = &w.segments.blobs
	w.segments.blobs.pack, err = payload.NewPacker()
	return w, err
}

// Chunk adds a chunk, with n as its number in the capture. hasOpcode is set for the chunks of a WebSocket. The
// chunk's data must not change until Flush.
func (w *Writer) Chunk(n int64, c *captures.Chunk, hasOpcode bool) error {
	return w.segments.add(n, c, hasOpcode)
}

// Relation inserts a relation, with n as its row number.
func (w *Writer) Relation(n int64, r *captures.Relation) error {
	w.relate.Int(n)
	w.relate.Int(r.Exchange)
	w.relate.Text(string(r.Kind))
	w.relate.Blob([]byte(r.Capture))
	w.relate.Int(r.Target)
	return w.relate.Run()
}

// Event inserts an event of an exchange, with n as its row number.
func (w *Writer) Event(n, exchange int64, kind captures.EventKind) error {
	if kind == captures.Ended {
		if err := w.segments.end(exchange); err != nil {
			return err
		}
	}
	return w.events.add(eventRow{n, exchange, kind})
}

// intoEvents is the table events with the columns that bindEvent binds.
const intoEvents = `events (n, exchange, kind)`

// An eventRow is a row of the table events: an event of an exchange with its number.
type eventRow struct {
	// n is the number of the event in the capture.
	n int64
	// exchange is the ID of the exchange that the event belongs to.
	exchange int64
	// kind is the kind of the event, such as the end of an exchange.
	kind captures.EventKind
}

// bindEvent binds the columns of intoEvents.
func bindEvent(s *engine.Stmt, r *eventRow) {
	s.Int(r.n)
	s.Int(r.exchange)
	s.Int(int64(r.kind))
}

// Flush inserts all rows that are still buffered.
func (w *Writer) Flush() error {
	return errors.Join(w.segments.flush(), w.exchanges.flush(), w.events.flush())
}

// Exchange writes the current state of an exchange. isNew means that it has no row yet. e must not change until
// Flush.
func (w *Writer) Exchange(e *captures.Exchange, isNew bool) error {
	if w.tlsText == "" || w.tls != e.TLS {
		text, err := json.Marshal(e.TLS)
		if err != nil {
			return err
		}
		w.tls, w.tlsText = e.TLS, string(text)
	}

	// The row refers to sections and the process by their ids.
	r := exchangeRow{Exchange: e, tls: w.tlsText}
	for i, h := range []captures.Headers{e.RequestHeaders, e.RequestTrailers, e.ResponseHeaders, e.ResponseTrailers} {
		id, err := w.sections.store(h)
		if err != nil {
			return err
		}
		r.sections[i] = id
	}
	var err error
	if r.process, err = w.processes.store(e.Process); err != nil {
		return err
	}
	if isNew {
		return w.exchanges.add(r)
	}
	bindExchange(w.update, &r)
	return w.update.Run()
}

// An exchangeRow is a row of the table exchanges: an exchange with the ids of the rows that it refers to.
type exchangeRow struct {
	// The embedded Exchange supplies most column values.
	*captures.Exchange
	// tls is the JSON of the TLS parameters, also for a connection without TLS.
	tls string

	// sections are the row ids of the four header sections (headers and trailers of request and response); 0
	// for none.
	sections [4]int64
	// process is the row id of the client program; 0 for none.
	process int64
}

// bindExchange binds the columns of intoExchanges, in their order.
func bindExchange(s *engine.Stmt, e *exchangeRow) {
	var started int64
	if !e.Started.IsZero() {
		started = e.Started.UnixNano()
	}
	s.Int(e.ID)
	s.Text(protocolOf(e.Transport))
	s.Text(e.Method)
	s.Text(e.URL)
	s.Text(e.HTTP)
	s.Int(int64(e.Status))
	for _, id := range e.sections {
		s.Int(id)
	}
	s.Int(started)
	s.Int(int64(e.Duration))
	s.Text(e.Client)
	s.Text(e.Server)
	s.Int(e.process)
	s.Text(e.tls)
	s.Text(string(e.Outcome))
	s.Text(e.Error)
	s.Int(e.BytesUp)
	s.Int(e.BytesDown)
	s.Text(e.Source)
}
