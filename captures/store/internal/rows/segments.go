package rows

import (
	"bytes"
	"database/sql"
	"errors"
	"hash/maphash"
	"slices"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/segment"
)

const (
	segmentWidth  = 12
	insertSegment = `INSERT INTO segments (n, last, exchange, seq, chunks, t_ns, size_up, size_down, entries, codec, blob, data) VALUES `

	findInline = `SELECT codec, data FROM segments WHERE n = ? AND codec <> 2`
	refer      = `UPDATE segments SET codec = 2, blob = ?2, data = NULL WHERE n = ?1`

	extendSegment = `UPDATE segments SET last = ?2, chunks = ?3, size_up = ?4, size_down = ?5, entries = ?6, codec = ?7, data = ?8 WHERE n = ?1`

	// maxSegment is how many bytes of data a segment has.
	maxSegment = 64 << 10

	// maxExtended is how many bytes a segment has that is written again with a further
	// chunk. A commit writes whole pages anyway, which have twice as many.
	maxExtended = 4 << 10

	// maxFirsts bounds the payloads that are recognized when they come again.
	maxFirsts = 1 << 16

	// maxShared bounds the bytes of those that come again and again.
	maxShared = 8 << 20

	// maxTails bounds the segments that may be extended.
	maxTails = 4096

	// minPacked is from how many bytes on the data of a segment is compressed.
	minPacked = 1 << 10
)

// segments writes chunks: small ones share a segment, a large one has its own, which
// refers to the table blobs if its data comes again.
type segments struct {
	insert                    *bulkInsert
	extend, findInline, refer *sql.Stmt
	blobs                     blobs

	// firsts are the numbers of segments with large payloads of their own, by a hash of
	// these.
	firsts map[uint64]int64
	seed   maphash.Seed

	// shared are payloads that came again, by the same hash.
	shared     map[uint64]sharedPayload
	sharedSize int

	tails map[int64][]*tail // by exchange: what may be extended
	dirty []*tail           // what has to be written, in order
}

// A sharedPayload is one in the table blobs.
type sharedPayload struct {
	id   int64
	data []byte
}

// tailsOfExchange is how many segments of an exchange may be extended: a chunk that was
// held back comes after later ones, which go on in another segment.
const tailsOfExchange = 3

// A tail is a segment to which chunks may still be added.
type tail struct {
	segment.Builder
	stored bool // it has a row
	dirty  bool // it has more than its row
}

// limit is how many bytes of data it may have.
func (t *tail) limit() int {
	if t.stored {
		return maxExtended
	}
	return maxSegment
}

// add adds a chunk with its number.
func (s *segments) add(tx *sql.Tx, n int64, c *captures.Chunk, hasOpcode bool) error {
	if len(c.Data) >= blobThreshold {
		return s.addLarge(tx, n, c, hasOpcode)
	}
	t := s.tailFor(n, c)
	t.Add(n, c, hasOpcode)
	if !t.dirty {
		t.dirty = true
		s.dirty = append(s.dirty, t)
	}
	return nil
}

// addLarge writes a chunk as a segment of its own. Its data stands in the row until the
// same comes again: to look every payload up by its hash would take longer than all else
// that is done with it.
func (s *segments) addLarge(tx *sql.Tx, n int64, c *captures.Chunk, hasOpcode bool) error {
	var b segment.Builder
	b.AddEntry(n, c, hasOpcode)
	sum := maphash.Bytes(s.seed, c.Data)
	codec, id, data := int64(payload.InBlob), any(nil), any(nil)
	if again, ok := s.shared[sum]; ok && bytes.Equal(again.data, c.Data) {
		id = again.id
	} else if first, ok := s.firsts[sum]; ok {
		blob, err := s.share(tx, first, c.Data)
		if err != nil {
			return err
		}
		id = blob
		if s.sharedSize += len(c.Data); s.sharedSize > maxShared {
			clear(s.shared)
			s.sharedSize = len(c.Data)
		}
		s.shared[sum] = sharedPayload{blob, c.Data}
	} else {
		if len(s.firsts) >= maxFirsts {
			clear(s.firsts)
		}
		s.firsts[sum] = n
		packed, p := s.blobs.pack.Pack(c.Data)
		codec, data = int64(packed), p
	}
	return s.insert.addRow(tx, b.First, b.Last, b.Exchange, b.Seq, b.Chunks, int64(b.T), b.SizeUp, b.SizeDown, b.Entries, codec, id, data)
}

// share stores a payload by its hash, since it comes again, and has the segment that had
// it first refer to it. If that has something else, it is left as it is.
func (s *segments) share(tx *sql.Tx, first int64, p []byte) (id int64, err error) {
	if id, err = s.blobs.put(tx, p); err != nil {
		return 0, err
	}
	if err := s.insert.flush(tx); err != nil {
		return 0, err
	}
	var codec int64
	var data []byte
	err = tx.Stmt(s.findInline).QueryRow(first).Scan(&codec, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return id, nil // it refers to it already
	}
	if err != nil {
		return 0, err
	}
	if packed, same := s.blobs.pack.Pack(p); int64(packed) == codec && bytes.Equal(same, data) {
		_, err = tx.Stmt(s.refer).Exec(first, id)
	}
	return id, err
}

// tailFor returns the segment that a chunk can be added to.
func (s *segments) tailFor(n int64, c *captures.Chunk) *tail {
	of := s.tails[c.Exchange]
	for _, t := range of {
		if t.Fits(n, c, t.limit()) {
			return t
		}
	}
	t := new(tail)
	if s.tails == nil || len(s.tails) >= maxTails {
		s.tails = make(map[int64][]*tail)
	}
	if len(of) == tailsOfExchange {
		of = slices.Delete(of, 0, 1)
	}
	s.tails[c.Exchange] = append(of, t)
	return t
}

// end writes what an exchange has: no further chunks come.
func (s *segments) end(tx *sql.Tx, exchange int64) error {
	for _, t := range s.tails[exchange] {
		if err := s.write(tx, t); err != nil {
			return err
		}
	}
	delete(s.tails, exchange)
	return nil
}

// flush writes what was added.
func (s *segments) flush(tx *sql.Tx) error {
	for _, t := range s.dirty {
		if err := s.write(tx, t); err != nil {
			return err
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	return s.insert.flush(tx)
}

// write writes the row of a segment that has more than that.
func (s *segments) write(tx *sql.Tx, t *tail) error {
	if !t.dirty {
		return nil
	}
	codec, data := payload.Raw, t.Data
	if len(data) >= minPacked {
		codec, data = s.blobs.pack.Pack(data)
	}
	stored := t.stored
	t.stored, t.dirty = true, false
	if !stored {
		return s.insert.addRow(tx, t.First, t.Last, t.Exchange, t.Seq, t.Chunks, int64(t.T), t.SizeUp, t.SizeDown, t.Entries, codec, nil, data)
	}
	_, err := tx.Stmt(s.extend).Exec(t.First, t.Last, t.Chunks, t.SizeUp, t.SizeDown, t.Entries, codec, data)
	return err
}
