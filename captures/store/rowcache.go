package store

import (
	"crypto/sha256"
	"database/sql"
	"errors"

	"unwire/captures"
	"unwire/captures/store/internal/fields"
)

// maxCachedRows is how many rows a rowCache finds without asking the database, and
// maxCachedText the length of the longest text that it remembers for that.
const (
	maxCachedRows = 1024
	maxCachedText = 16 << 10
)

// A rowCache adds rows that are stored once to a table, and remembers the last ones. Its
// statements find and add a row.
type rowCache[K comparable] struct {
	find, add *sql.Stmt
	known     map[K]int64
}

// put returns the id of the row with a key, which it adds if there is none.
func (r *rowCache[K]) put(tx *sql.Tx, key K, found, added []any) (id int64, err error) {
	err = tx.Stmt(r.find).QueryRow(found...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		var res sql.Result
		if res, err = tx.Stmt(r.add).Exec(added...); err == nil {
			id, err = res.LastInsertId()
		}
	}
	if err != nil {
		return 0, err
	}
	if len(r.known) >= maxCachedRows || r.known == nil {
		r.known = make(map[K]int64)
	}
	r.known[key] = id
	return id, nil
}

// section stores a section of headers, and returns its id; 0 for an empty one.
func (t *statements) section(tx *sql.Tx, h captures.Headers) (id int64, err error) {
	if len(h) == 0 {
		return 0, nil
	}
	fields := fields.Text(h)
	if id, ok := t.sections.known[fields]; ok {
		return id, nil
	}
	sum := sha256.Sum256([]byte(fields))
	key := fields
	if len(key) > maxCachedText {
		key = string(sum[:])
	}
	return t.sections.put(tx, key, []any{sum[:]}, []any{sum[:], fields})
}

// process stores a process, and returns its id; 0 if nothing is known of it.
func (t *statements) process(tx *sql.Tx, p captures.Process) (id int64, err error) {
	if p == (captures.Process{}) {
		return 0, nil
	}
	if id, ok := t.processes.known[p]; ok {
		return id, nil
	}
	row := []any{p.PID, p.Name, p.Client, p.Version}
	return t.processes.put(tx, p, row, row)
}
