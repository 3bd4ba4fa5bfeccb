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

// maxCachedRows limits the number of ids that each cache remembers, and maxCachedText the size in bytes of a
// header section that is remembered.
const (
	maxCachedRows = 1024
	maxCachedText = 16 << 10

	// maxInlineSection is the largest header section, in bytes, that is stored as text in its row. Larger ones
	// are compressed: with HPACK, a few bytes on the wire can expand to many.
	maxInlineSection = 4 << 10
)

// A rowCache adds rows to a table that contains each distinct row once, and remembers the ids of recent ones.
type rowCache[K comparable] struct {
	// conn is the database connection on which the statements are prepared.
	conn *engine.Conn

	// find is the statement that returns the id of the row with a key.
	find *engine.Stmt
	// add is the statement that inserts a row.
	add *engine.Stmt

	// known maps the keys of recently used rows to their ids.
	known map[K]int64
}

// findOrInsert returns the id of the row with a key, which it inserts if necessary. bindKey binds the
// parameters of find, and bindRow those of add.
func (r *rowCache[K]) findOrInsert(key K, bindKey, bindRow func(*engine.Stmt)) (id int64, err error) {
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

	// When it is full, the cache starts over.
	if len(r.known) >= maxCachedRows || r.known == nil {
		r.known = make(map[K]int64)
	}
	r.known[key] = id
	return id, nil
}

// A sectionCache stores header sections, each distinct one once. Its keys are SHA-256 hashes.
type sectionCache struct {
	// The embedded rowCache finds and adds rows of the table by the SHA-256 hashes of the encoded header
	// sections.
	rowCache[[sha256.Size]byte]

	// blobs is the table for large header sections.
	blobs *blobs
	// recent maps a fast hash of a header section to the section and its row id, so that a repeated section
	// need not be encoded.
	recent map[uint64]storedSection
	// seed is the random seed of the hashes in recent.
	seed maphash.Seed
}

// A storedSection is a header section with the id of its row.
type storedSection struct {
	// fields are the header fields of the section, in wire order.
	fields captures.Headers
	// id is the id of the row that contains the section.
	id int64
}

// store returns the id of the row with a header section, which it inserts if necessary; 0 for an empty
// section.
func (c *sectionCache) store(h captures.Headers) (id int64, err error) {
	if len(h) == 0 {
		return 0, nil
	}
	if c.recent == nil || len(c.recent) >= maxCachedRows {
		c.recent, c.seed = make(map[uint64]storedSection), maphash.MakeSeed()
	}

	// Most sections repeat recent ones: look them up by a fast hash first, and compare.
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

	// Then look for the row by the SHA-256 hash of its text.
	// A fast hash may collide, so the fields were compared.
	text := fields.Text(h)
	hash := sha256.Sum256([]byte(text))
	if len(text) > maxInlineSection {
		if text, err = c.storeAsBlob(hash, text); err != nil {
			return 0, err
		}
	}
	id, err = c.findOrInsert(hash, func(s *engine.Stmt) { s.Blob(hash[:]) }, func(s *engine.Stmt) {
		s.Blob(hash[:])
		s.Text(text)
	})
	if err != nil {
		return 0, err
	}

	// Remembering large sections would take too much memory.
	if size <= maxCachedText {
		c.recent[key] = storedSection{h, id}
	}
	return id, nil
}

// storeAsBlob stores a large header section in the table blobs, unless the section is known to have a row. It
// returns the text for the section's row, which refers to the blob.
func (c *sectionCache) storeAsBlob(hash [sha256.Size]byte, text string) (string, error) {
	if _, ok := c.known[hash]; ok {
		return "", nil
	}
	id, err := c.blobs.put([]byte(text), c.blobs.pack.PackUnsampled)
	return strconv.FormatInt(id, 10), err
}

// A processCache stores client programs, each distinct one once.
type processCache struct {
	// The embedded rowCache finds and adds rows of the table by the description of the program.
	rowCache[captures.Process]
}

// store returns the id of the row with a client program, which it inserts if necessary; 0 if the
// program is unknown.
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
	return c.findOrInsert(p, bind, bind)
}
