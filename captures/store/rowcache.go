package store

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"hash/maphash"
	"slices"

	"unwire/captures"
	"unwire/captures/store/internal/fields"
)

// maxCachedRows is how many rows are found without asking the database, and maxCachedText
// the size of the largest section that is remembered for that.
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

// A sectionCache finds sections of headers that were stored by their content.
type sectionCache struct {
	rowCache[[sha256.Size]byte]

	recent map[uint64]storedSection
	seed   maphash.Seed
}

// A storedSection is a section that has a row.
type storedSection struct {
	fields captures.Headers
	id     int64
}

// section stores a section of headers, and returns its id; 0 for an empty one.
func (t *statements) section(tx *sql.Tx, h captures.Headers) (id int64, err error) {
	if len(h) == 0 {
		return 0, nil
	}
	c := &t.sections
	if c.recent == nil || len(c.recent) >= maxCachedRows {
		c.recent, c.seed = make(map[uint64]storedSection), maphash.MakeSeed()
	}
	var sum maphash.Hash
	sum.SetSeed(c.seed)
	size := 0
	for i := range h {
		_, _ = sum.WriteString(h[i].Name)
		_ = sum.WriteByte(0)
		_, _ = sum.WriteString(h[i].Value)
		_ = sum.WriteByte(0)
		size += len(h[i].Name) + len(h[i].Value)
	}
	key := sum.Sum64()
	if at, ok := c.recent[key]; ok && slices.Equal(at.fields, h) {
		return at.id, nil
	}
	text := fields.Text(h)
	hash := sha256.Sum256([]byte(text))
	id, known := c.known[hash]
	if !known {
		if id, err = c.put(tx, hash, []any{hash[:]}, []any{hash[:], text}); err != nil {
			return 0, err
		}
	}
	if size <= maxCachedText {
		c.recent[key] = storedSection{h, id}
	}
	return id, nil
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
