package rows

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"unwire/captures"
	"unwire/captures/store/internal/engine"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/segment"
)

const (
	// intoSegments is the table segments with its columns, for INSERT statements.
	intoSegments = `segments (n, last, exchange, seq, chunks, t_ns, size_up, size_down, entries, codec, blob, data)`

	// findInline reads the data of a segment unless it is in the table blobs. referToBlob replaces that data by
	// a reference to the blob.
	findInline  = `SELECT codec, data FROM segments WHERE n = ? AND codec <> 2`
	referToBlob = `UPDATE segments SET codec = 2, blob = ?2, data = NULL WHERE n = ?1`

	extendSegment = `UPDATE segments SET last = ?2, chunks = ?3, size_up = ?4, size_down = ?5, entries = ?6, codec = ?7, data = ?8 WHERE n = ?1`

	// maxSegmentBytes is the largest size of a segment's data, in bytes.
	maxSegmentBytes = 64 << 10

	// maxRewritten is the largest size of the data of a segment, in bytes, up to which its row is written again
	// when a chunk is added. A commit writes whole pages anyway, which are twice as large.
	maxRewritten = 4 << 10

	// maxFirstSegments limits the large payloads that are recognized when they repeat.
	maxFirstSegments = 1 << 16

	// maxSharedBytes limits the memory for payloads that have repeated.
	maxSharedBytes = 8 << 20

	// maxOpenExchanges limits the exchanges with segments that may be extended.
	maxOpenExchanges = 4096

	// maxSpare limits the unused openSegments that are kept for reuse, and maxSpareBytes the memory for data that
	// each of them keeps.
	maxSpare      = 1024
	maxSpareBytes = 4 << 10

	// minCompressed is the size from which the data of a segment is compressed, in bytes.
	minCompressed = 1 << 10
)

// segments writes chunks to the table segments. A row of that table, a segment, contains several small chunks
// of an exchange, or one large chunk. A large one refers to the table blobs if the same data occurs again.
type segments struct {
	// extend is the statement that updates the row of a segment after chunks were added to it.
	extend *engine.Stmt
	// findInline is the statement that reads the data of a segment that the row itself contains.
	findInline *engine.Stmt
	// referToBlob is the statement that changes the row of a segment to refer to a row of the table blobs.
	referToBlob *engine.Stmt

	// insert inserts the rows of segments.
	insert inserter[segmentRow]
	// blobs stores large payloads, each distinct one once.
	blobs blobs

	// firstSegments maps the hash of each large payload that has occurred once to the number of the segment
	// that contains it.
	firstSegments map[uint64]int64
	// seed is the random seed of the hashes of payloads.
	seed maphash.Seed

	// hashAll means that payloads are hashed completely, instead of by samples, because two payloads with
	// equal samples were found to differ.
	hashAll bool

	// shared maps the hash of a payload to its row in the table blobs.
	shared map[uint64]sharedPayload
	// sharedSize is the total size in bytes of the payloads kept in shared.
	sharedSize int

	// open are the segments to which chunks may still be added, by exchange.
	open map[int64][]*openSegment
	// dirty are the segments whose rows must be inserted or updated, in order.
	dirty []*openSegment
	// ended are the segments of exchanges that get no more chunks. Pending rows may still refer to their data.
	ended []*openSegment
	// spare are unused segments, for reuse.
	spare []*openSegment
}

// newSegments returns a writer of segments whose statements are not prepared yet.
func newSegments() segments {
	return segments{firstSegments: make(map[uint64]int64), shared: make(map[uint64]sharedPayload), seed: maphash.MakeSeed()}
}

// A sharedPayload is a payload in the table blobs with its row id.
type sharedPayload struct {
	// id is the id of the payload's row in the table blobs.
	id int64
	// data is a copy of the payload, to compare further ones with it.
	data []byte
}

// maxOpenPerExchange limits the number of segments of one exchange to which chunks may be added. There can be
// several, because a chunk that was held back comes after later ones, which are in another segment already.
const maxOpenPerExchange = 3

// An openSegment is a segment to which chunks may still be added.
type openSegment struct {
	// The embedded Builder combines the chunks that were added so far.
	segment.Builder
	// stored means that the segment's row was inserted.
	stored bool
	// dirty means that the segment's row is missing or out of date.
	dirty bool
}

// limit returns the largest size of the segment's data, in bytes. It is smaller once the row exists, because
// each addition rewrites the row.
func (t *openSegment) limit() int {
	if t.stored {
		return maxRewritten
	}
	return maxSegmentBytes
}

// add adds a chunk, with n as its number in the capture, to a segment of its exchange.
func (s *segments) add(n int64, c *captures.Chunk, hasOpcode bool) error {
	if len(c.Data) >= blobThreshold {
		return s.addLarge(n, c, hasOpcode)
	}
	t := s.openSegmentFor(n, c)
	t.Add(n, c, hasOpcode)
	if !t.dirty {
		t.dirty = true
		s.dirty = append(s.dirty, t)
	}
	return nil
}

// addLarge writes a large chunk as a separate segment. Its data is stored in that row, and moves to the
// table blobs only when the same data occurs again. Looking up each payload by its SHA-256 hash would
// take longer than everything else.
func (s *segments) addLarge(n int64, c *captures.Chunk, hasOpcode bool) error {
	var b segment.Builder
	b.AddEntry(n, c, hasOpcode)
	sum := s.payloadHash(c.Data)
	blob, found, err := s.findShared(sum, c.Data)

	// Two payloads agree in the hashed parts but differ elsewhere: hash all bytes from now on.
	if err == nil && !found && !s.hashAll && s.hasHash(sum) {
		s.hashAll = true
		sum = s.payloadHash(c.Data)
		blob, found, err = s.findShared(sum, c.Data)
	}
	if err != nil {
		return err
	}
	if found {
		return s.insertRow(&b.Row, payload.InBlob, blob, nil)
	}

	// When the table is full, start over.
	if len(s.firstSegments) >= maxFirstSegments {
		clear(s.firstSegments)
	}
	s.firstSegments[sum] = n
	codec, data := s.blobs.pack.Pack(c.Data)
	return s.insertRow(&b.Row, codec, 0, data)
}

// Parameters of payloadHash: a payload of more than maxFullyHashed bytes is represented by hashedParts parts of
// hashedPartSize bytes each.
const (
	maxFullyHashed = 1 << 10
	hashedParts    = 8
	hashedPartSize = 64
)

// payloadHash returns a fast hash of a payload. It uses only parts of a large one, until two payloads with
// equal parts were found to differ elsewhere (hashAll).
func (s *segments) payloadHash(p []byte) uint64 {
	if s.hashAll || len(p) <= maxFullyHashed {
		return maphash.Bytes(s.seed, p)
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(p)))
	_, _ = h.Write(size[:])
	for i := range hashedParts {
		at := i * (len(p) - hashedPartSize) / (hashedParts - 1)
		_, _ = h.Write(p[at : at+hashedPartSize])
	}
	return h.Sum64()
}

// hasHash reports whether a payload with this hash was stored.
func (s *segments) hasHash(sum uint64) bool {
	_, first := s.firstSegments[sum]
	_, shared := s.shared[sum]
	return first || shared
}

// findShared returns the id of the row in the table blobs that contains payload p, whose hash is sum. found is
// false if the payload occurs for the first time.
func (s *segments) findShared(sum uint64, p []byte) (blob int64, found bool, err error) {
	if again, ok := s.shared[sum]; ok {
		return again.id, bytes.Equal(again.data, p), nil
	}
	first, ok := s.firstSegments[sum]
	if !ok {
		return 0, false, nil
	}
	if blob, found, err = s.moveToBlobs(first, p); !found || err != nil {
		return 0, false, err
	}

	// When the memory is full, start over.
	if s.sharedSize += len(p); s.sharedSize > maxSharedBytes {
		clear(s.shared)
		s.sharedSize = len(p)
	}
	s.shared[sum] = sharedPayload{blob, bytes.Clone(p)}
	return blob, true, nil
}

// insertRow inserts the row of a segment; codec determines whether its data is in blob or in data. A large or
// compressed payload is written at once: it may have to be found again, and the compression buffer is reused.
func (s *segments) insertRow(r *segment.Row, codec int, blob int64, data []byte) error {
	err := s.insert.add(segmentRow{*r, codec, blob, data})
	if err == nil && codec != payload.InBlob && (codec != payload.Raw || len(data) >= minCompressed) {
		err = s.insert.flush()
	}
	return err
}

// A segmentRow is a row of the table segments: a segment with its data as stored.
type segmentRow struct {
	// The embedded Row supplies the column values other than the data.
	segment.Row
	// codec is how the data is stored, as in package payload: 0 uncompressed, 1 compressed, 2 in the table
	// blobs.
	codec int
	// blob is the id of the row in the table blobs that contains the data; 0 if the data is in this row.
	blob int64
	// data is the data of the chunks as stored; nil if it is in the table blobs.
	data []byte
}

// bindSegment binds the columns of intoSegments.
func bindSegment(s *engine.Stmt, r *segmentRow) {
	s.Int(r.First)
	s.Int(r.Last)
	s.Int(r.Exchange)
	s.Int(r.Seq)
	s.Int(r.Chunks)
	s.Int(int64(r.T))
	s.Int(r.SizeUp)
	s.Int(r.SizeDown)
	s.Blob(r.Entries)
	s.Int(int64(r.codec))
	if r.codec == payload.InBlob {
		s.Int(r.blob)
		s.Null()
	} else {
		s.Null()
		s.Blob(r.data)
	}
}

// moveToBlobs stores a payload that has occurred before in the table blobs, and changes the segment first,
// which contains it, to refer to the blob. same is false if that segment contains another payload with the same
// hash.
func (s *segments) moveToBlobs(first int64, p []byte) (id int64, same bool, err error) {
	var codec int64
	var data []byte
	s.findInline.Int(first)
	inline, err := s.findInline.Row(func(c engine.Columns) { codec, data = c.Int(0), c.Blob(1) })
	if err != nil {
		return 0, false, err
	}

	// Compare the stored forms: compression is deterministic.
	if inline {
		if packed, again := s.blobs.pack.Pack(p); int64(packed) != codec || !bytes.Equal(again, data) {
			return 0, false, nil
		}
	}
	if id, err = s.blobs.put(p, s.blobs.pack.Pack); err == nil && inline {
		s.referToBlob.Int(first)
		s.referToBlob.Int(id)
		err = s.referToBlob.Run()
	}
	return id, err == nil, err
}

// openSegmentFor returns the segment to which a chunk, with n as its number, can be added, or a new one.
func (s *segments) openSegmentFor(n int64, c *captures.Chunk) *openSegment {
	of := s.open[c.Exchange]
	for _, t := range of {
		if t.Fits(n, c, t.limit()) {
			return t
		}
	}
	t := s.newSegment()
	if s.open == nil || len(s.open) >= maxOpenExchanges {
		s.open = make(map[int64][]*openSegment)
	}

	// Drop the oldest one, which is least likely to fit.
	if len(of) == maxOpenPerExchange {
		of = slices.Delete(of, 0, 1)
	}
	s.open[c.Exchange] = append(of, t)
	return t
}

// newSegment returns an empty segment, in memory that was used before if possible.
func (s *segments) newSegment() *openSegment {
	n := len(s.spare)
	if n == 0 {
		return new(openSegment)
	}
	t := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return t
}

// recycle makes the memory of ended segments available again, after no pending row refers to it.
func (s *segments) recycle() {
	for _, t := range s.ended {
		if len(s.spare) < maxSpare && cap(t.Data) <= maxSpareBytes {
			*t = openSegment{Builder: segment.Builder{Row: segment.Row{Entries: t.Entries[:0]}, Data: t.Data[:0]}}
			s.spare = append(s.spare, t)
		}
	}
	clear(s.ended)
	s.ended = s.ended[:0]
}

// end writes the segments of an exchange that gets no more chunks.
func (s *segments) end(exchange int64) error {
	for _, t := range s.open[exchange] {
		if err := s.writeSegment(t); err != nil {
			return err
		}
		s.ended = append(s.ended, t)
	}
	delete(s.open, exchange)
	return nil
}

// flush writes the rows of all changed segments.
func (s *segments) flush() error {
	for _, t := range s.dirty {
		if err := s.writeSegment(t); err != nil {
			return err
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	err := s.insert.flush()
	s.recycle()
	return err
}

// writeSegment inserts or updates the row of a segment, if it has changed.
func (s *segments) writeSegment(t *openSegment) error {
	if !t.dirty {
		return nil
	}
	codec, data := payload.Raw, t.Data
	if len(data) >= minCompressed {
		codec, data = s.blobs.pack.Pack(data)
	}
	stored := t.stored
	t.stored, t.dirty = true, false
	if !stored {
		return s.insertRow(&t.Row, codec, 0, data)
	}

	// The row to be updated may still be pending.
	if err := s.insert.flush(); err != nil {
		return err
	}
	x := s.extend
	x.Int(t.First)
	x.Int(t.Last)
	x.Int(t.Chunks)
	x.Int(t.SizeUp)
	x.Int(t.SizeDown)
	x.Blob(t.Entries)
	x.Int(int64(codec))
	x.Blob(data)
	return x.Run()
}
