package additions

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
)

// A Change is a validated addition (note, reading or definition) that is ready to be written.
type Change struct {
	// The embedded Addition is the note, reading (a type chosen for a field) or definition to be written.
	captures.Addition

	// packed is the compressed data of a definition. It is prepared before the transaction, so that recording
	// does not wait for the compression.
	packed packedBlob
}

// A packedBlob is a row for the table blobs: data compressed with a codec (see payload), its decompressed size
// in bytes and its SHA-256 hash.
type packedBlob struct {
	// sum is the SHA-256 hash of the decompressed data.
	sum [sha256.Size]byte
	// codec is the number of the compression of data, as in package payload; 0 means uncompressed.
	codec int
	// size is the size of the decompressed data in bytes.
	size int
	// data is the data as stored, compressed with the codec.
	data []byte
}

// Prepare validates an addition and compresses its data.
//
// Errors: those of Check.
func Prepare(a captures.Addition) (*Change, error) {
	if err := Check(&a); err != nil {
		return nil, err
	}
	c := &Change{Addition: a}
	if d := a.Definition; d != nil && d.Active {
		p, err := payload.NewPacker()
		if err != nil {
			return nil, err
		}
		codec, data := p.Pack(d.Data)
		c.packed = packedBlob{sha256.Sum256(d.Data), codec, len(d.Data), data}
	}
	return c, nil
}

// Write writes the change and returns the number of its row. next returns the next free row number of the
// capture.
//
// Errors: ErrInvalid, captures.ErrNoExchange, captures.ErrFull, captures.ErrTooLarge, or those of the database.
func (c *Change) Write(ctx context.Context, tx *sql.Tx, next func() int64) (n int64, err error) {
	w := writer{ctx, tx, next, time.Now().UnixNano()}
	switch {
	case c.Note != nil:
		return w.note(c.Note)
	case c.Reading != nil:
		return w.reading(c.Reading)
	case c.Definition.Active:
		return w.definition(c.Definition, &c.packed)
	}
	return w.deactivate(c.Definition)
}

// A writer writes one addition in a transaction.
type writer struct {
	// ctx is the context of the transaction; its end cancels it.
	ctx context.Context
	// tx is the open transaction in which the addition is written.
	tx *sql.Tx

	// next returns the next free row number of the capture.
	next func() int64
	// changed is the time of the change in nanoseconds since 1970.
	changed int64
}

// note inserts or replaces a note, and returns its row number.
func (w *writer) note(t *captures.Note) (n int64, err error) {
	switch known, err := w.exists(`SELECT 1 FROM exchanges WHERE id = ?`, t.Exchange); {
	case err != nil:
		return 0, err
	case !known:
		return 0, captures.NoExchange(t.Exchange)
	}

	// The direction of a note on the exchange as a whole is stored as -1.
	dir, frame := int64(t.Dir), int64(t.Frame)
	if t.Frame == captures.NoFrame {
		dir = captures.NoFrame
	}

	// A place has at most one note of each kind.
	key := []any{t.Exchange, dir, frame, t.Path, string(t.Kind)}
	err = w.checkCapacity("notes", `exchange = ? AND dir = ? AND frame = ? AND path = ? AND kind = ?`, maxNotes, key)
	if err != nil {
		return 0, err
	}
	return w.setRow(`INSERT INTO notes (n, changed_ns, value, exchange, dir, frame, path, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (exchange, dir, frame, path, kind) DO UPDATE SET n = excluded.n, value = excluded.value, changed_ns = excluded.changed_ns`,
		append([]any{t.Value}, key...))
}

// reading inserts or replaces a reading, and returns its row number.
func (w *writer) reading(r *captures.Reading) (n int64, err error) {
	key := []any{r.Method, int64(r.Dir), r.Path}
	if err := w.checkCapacity("readings", `method = ? AND dir = ? AND path = ?`, maxReadings, key); err != nil {
		return 0, err
	}
	return w.setRow(`INSERT INTO readings (n, changed_ns, type, method, dir, path) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (method, dir, path) DO UPDATE SET n = excluded.n, type = excluded.type, changed_ns = excluded.changed_ns`,
		append([]any{r.Type}, key...))
}

// definition writes a definition and, to the table blobs, its data. It returns the definition's row number.
func (w *writer) definition(d *captures.Definition, b *packedBlob) (n int64, err error) {
	key := []any{string(d.Kind), d.Name}
	if err := w.checkCapacity("definitions", `kind = ? AND name = ?`, maxDefinitions, key); err != nil {
		return 0, err
	}

	// The total size is limited, apart from the definition that is replaced.
	var others int64
	err = w.tx.QueryRowContext(w.ctx, `SELECT coalesce(sum(b.size), 0) FROM definitions d JOIN blobs b ON b.id = d.blob
		WHERE d.active = 1 AND NOT (d.kind = ? AND d.name = ?)`, key...).Scan(&others)
	if err != nil {
		return 0, err
	}
	if others+int64(b.size) > maxDefinitionBytes {
		return 0, fmt.Errorf("%w: the definitions have more than %d bytes together", captures.ErrTooLarge, maxDefinitionBytes)
	}
	id, err := w.storeBlob(b)
	if err != nil {
		return 0, err
	}
	return w.setRow(`INSERT INTO definitions (n, changed_ns, active, blob, kind, name) VALUES (?, ?, 1, ?, ?, ?)
		ON CONFLICT (kind, name) DO UPDATE SET n = excluded.n, blob = excluded.blob, active = 1, changed_ns = excluded.changed_ns`,
		append([]any{id}, key...))
}

// deactivate marks the active definitions with the name of d as removed: those of d.Kind, or of all kinds if it
// is "". It returns the last row number. It is an error if there are none.
func (w *writer) deactivate(d *captures.Definition) (n int64, err error) {
	rows, err := w.tx.QueryContext(w.ctx, `SELECT kind FROM definitions WHERE name = ?1 AND active = 1 AND (kind = ?2 OR ?2 = '')`, d.Name, string(d.Kind))
	if err != nil {
		return 0, err
	}
	var kinds []string
	for rows.Next() {
		var kind string
		if err := rows.Scan(&kind); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		kinds = append(kinds, kind)
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}

	// Report a wrong name instead of doing nothing.
	if len(kinds) == 0 {
		return 0, fmt.Errorf("%w: the capture has no definitions named %.80q", ErrInvalid, d.Name)
	}

	// The rows stay, so that followers see the removal.
	for _, kind := range kinds {
		n = w.next()
		if _, err := w.tx.ExecContext(w.ctx, `UPDATE definitions SET n = ?, active = 0, changed_ns = ? WHERE kind = ? AND name = ?`, n, w.changed, kind, d.Name); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// setRow runs an INSERT … ON CONFLICT statement whose first parameters are the row number and the time,
// followed by values. It returns the row number.
func (w *writer) setRow(statement string, values []any) (n int64, err error) {
	n = w.next()
	_, err = w.tx.ExecContext(w.ctx, statement, append([]any{n, w.changed}, values...)...)
	return n, err
}

// checkCapacity returns ErrFull if a table already has limit rows and none of them would be replaced. The
// condition where, with the parameters key, selects the row to be replaced.
func (w *writer) checkCapacity(table, where string, limit int, key []any) error {
	// If the row exists, it is replaced. Check this first, because counting takes longer.
	known, err := w.exists(`SELECT 1 FROM `+table+` WHERE `+where, key...)
	if known || err != nil {
		return err
	}
	var have int
	if err := w.tx.QueryRowContext(w.ctx, `SELECT count(*) FROM `+table).Scan(&have); err != nil {
		return err
	}
	if have >= limit {
		return fmt.Errorf("%w: the capture already has %d %s", captures.ErrFull, limit, table)
	}
	return nil
}

// storeBlob stores data in the table blobs unless it is already there, and returns its id.
func (w *writer) storeBlob(b *packedBlob) (id int64, err error) {
	err = w.tx.QueryRowContext(w.ctx, `SELECT id FROM blobs WHERE sha256 = ?`, b.sum[:]).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	res, err := w.tx.ExecContext(w.ctx, `INSERT INTO blobs (sha256, codec, size, data) VALUES (?, ?, ?, ?)`, b.sum[:], b.codec, b.size, b.data)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// exists reports whether a query returns a row.
func (w *writer) exists(query string, args ...any) (bool, error) {
	var one int
	err := w.tx.QueryRowContext(w.ctx, query, args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
