package rows

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"hash/maphash"
	"slices"
	"strconv"

	"unwire/captures"
	"unwire/captures/store/internal/fields"
)

// maxCachedRows is how many rows are found without asking the database, and maxCachedText
// the size of the largest section that is remembered for that.
const (
	maxCachedRows = 1024
	maxCachedText = 16 << 10

	// maxSection is how many bytes a section has that stands in its row: with HPACK, a few
	// bytes on the wire can stand for many, which mostly compress.
	maxSection = 4 << 10
)

// A rowCache adds rows that are stored once to a table, and remembers the last ones. Its
// statements find and add a row.
type rowCache[K comparable] struct {
	find, add *sql.Stmt
	known     map[K]int64
}

// put returns the id of the row with a key. Found are the arguments of the statement that
// looks for it, and added returns those of the one that adds it if there is none.
func (r *rowCache[K]) put(tx *sql.Tx, key K, found []any, added func() []any) (id int64, err error) {
	if id, ok := r.known[key]; ok {
		return id, nil
	}
	err = tx.Stmt(r.find).QueryRow(found...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		var res sql.Result
		if res, err = tx.Stmt(r.add).Exec(added()...); err == nil {
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

	blobs  *blobs // of large ones
	recent map[uint64]storedSection
	seed   maphash.Seed
}

// A storedSection is a section that has a row.
type storedSection struct {
	fields captures.Headers
	id     int64
}

// store stores a section of headers, and returns its id; 0 for an empty one.
func (c *sectionCache) store(tx *sql.Tx, h captures.Headers) (id int64, err error) {
	if len(h) == 0 {
		return 0, nil
	}
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
	if len(text) > maxSection {
		if text, err = c.asPayload(tx, hash, text); err != nil {
			return 0, err
		}
	}
	if id, err = c.put(tx, hash, []any{hash[:]}, func() []any { return []any{hash[:], text} }); err != nil {
		return 0, err
	}
	if size <= maxCachedText {
		c.recent[key] = storedSection{h, id}
	}
	return id, nil
}

// asPayload stores a section as a payload, unless it has a row, and returns what its row has:
// the payload's id.
func (c *sectionCache) asPayload(tx *sql.Tx, hash [sha256.Size]byte, text string) (string, error) {
	if _, ok := c.known[hash]; ok {
		return "", nil
	}
	id, err := c.blobs.put(tx, []byte(text))
	return strconv.FormatInt(id, 10), err
}

// A processCache finds processes that were stored.
type processCache struct {
	rowCache[captures.Process]
}

// store stores a process, and returns its id; 0 if nothing is known of it.
func (c *processCache) store(tx *sql.Tx, p captures.Process) (id int64, err error) {
	if p == (captures.Process{}) {
		return 0, nil
	}
	row := []any{p.PID, p.Name, p.Client, p.Version}
	return c.put(tx, p, row, func() []any { return row })
}
