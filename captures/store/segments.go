package store

import (
	"database/sql"
	"slices"

	"unwire/captures"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/segment"
)

const (
	segmentWidth  = 12
	insertSegment = `INSERT INTO segments (n, last, exchange, seq, chunks, t_ns, size_up, size_down, entries, codec, blob, data) VALUES `

	extendSegment = `UPDATE segments SET last = ?2, chunks = ?3, size_up = ?4, size_down = ?5, entries = ?6, codec = ?7, data = ?8 WHERE n = ?1`

	// maxSegment is how many bytes of data a segment has.
	maxSegment = 64 << 10

	// maxExtended is how many bytes a segment has that is written again with a further
	// chunk. A commit writes whole pages anyway, which have twice as many.
	maxExtended = 4 << 10

	// maxTails bounds the segments that may be extended.
	maxTails = 4096

	// minPacked is from how many bytes on the data of a segment is compressed.
	minPacked = 1 << 10
)

// segments writes chunks: small ones in segments, large ones by their hash.
type segments struct {
	insert *bulkInsert
	extend *sql.Stmt
	blobs  blobs

	tails map[int64][]*tail // by exchange: what may be extended
	dirty []*tail           // what has to be written, in order
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
		id, err := s.blobs.put(tx, c.Data)
		if err != nil {
			return err
		}
		var b segment.Builder
		b.AddEntry(n, c, hasOpcode)
		return s.insert.addRow(tx, b.First, b.Last, b.Exchange, b.Seq, b.Chunks, int64(b.T), b.SizeUp, b.SizeDown, b.Entries, int64(inBlob), id, nil)
	}
	t := s.tailFor(n, c)
	t.Add(n, c, hasOpcode)
	if !t.dirty {
		t.dirty = true
		s.dirty = append(s.dirty, t)
	}
	return nil
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
