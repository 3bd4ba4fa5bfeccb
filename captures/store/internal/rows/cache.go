package rows

import (
	"crypto/sha256"
	"hash/maphash"
	"slices"
	"strconv"

	"unwire/captures"
	"unwire/captures/store/internal/engine"
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
	conn      *engine.Conn
	find, add *engine.Stmt
	known     map[K]int64
}

// put returns the id of the row with a key. BindKey binds the parameters of the statement
// that looks for it, and bindRow those of the one that adds it if there is none.
func (r *rowCache[K]) put(key K, bindKey, bindRow func(*engine.Stmt)) (id int64, err error) {
	if id, ok := r.known[key]; ok {
		return id, nil
	}
	bindKey(r.find)
	found, err := r.find.Row(func(c engine.Columns) { id = c.Int(0) })
	if err == nil && !found {
		bindRow(r.add)
		err = r.add.Run()
		id = r.conn.LastInsertID()
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
func (c *sectionCache) store(h captures.Headers) (id int64, err error) {
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
		if text, err = c.asPayload(hash, text); err != nil {
			return 0, err
		}
	}
	id, err = c.put(hash, func(s *engine.Stmt) { s.Blob(hash[:]) }, func(s *engine.Stmt) {
		s.Blob(hash[:])
		s.Text(text)
	})
	if err != nil {
		return 0, err
	}
	if size <= maxCachedText {
		c.recent[key] = storedSection{h, id}
	}
	return id, nil
}

// asPayload stores a section as a payload, unless it has a row, and returns what its row has:
// the payload's id.
func (c *sectionCache) asPayload(hash [sha256.Size]byte, text string) (string, error) {
	if _, ok := c.known[hash]; ok {
		return "", nil
	}
	id, err := c.blobs.put([]byte(text), c.blobs.pack.PackWhole)
	return strconv.FormatInt(id, 10), err
}

// A processCache finds processes that were stored.
type processCache struct {
	rowCache[captures.Process]
}

// store stores a process, and returns its id; 0 if nothing is known of it.
func (c *processCache) store(p captures.Process) (id int64, err error) {
	if p == (captures.Process{}) {
		return 0, nil
	}
	bind := func(s *engine.Stmt) {
		s.Int(int64(p.PID))
		s.Text(p.Name)
		s.Text(p.Client)
		s.Text(p.Version)
	}
	return c.put(p, bind, bind)
}
