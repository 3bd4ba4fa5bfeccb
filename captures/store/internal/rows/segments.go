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
	intoSegments = `segments (n, last, exchange, seq, chunks, t_ns, size_up, size_down, entries, codec, blob, data)`

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
	extend, findInline, refer *engine.Stmt

	insert inserter[segmentRow]
	blobs  blobs

	// firsts are the numbers of segments with large payloads of their own, by a hash of
	// these.
	firsts map[uint64]int64
	seed   maphash.Seed

	// hashAll says that the hash is of all of a payload, not of parts.
	hashAll bool

	// shared are payloads that came again, by the same hash.
	shared     map[uint64]sharedPayload
	sharedSize int

	tails map[int64][]*tail // by exchange: what may be extended
	dirty []*tail           // what has to be written, in order
}

func newSegments() segments {
	return segments{firsts: make(map[uint64]int64), shared: make(map[uint64]sharedPayload), seed: maphash.MakeSeed()}
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
func (s *segments) add(n int64, c *captures.Chunk, hasOpcode bool) error {
	if len(c.Data) >= blobThreshold {
		return s.addLarge(n, c, hasOpcode)
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
func (s *segments) addLarge(n int64, c *captures.Chunk, hasOpcode bool) error {
	var b segment.Builder
	b.AddEntry(n, c, hasOpcode)
	sum := s.sum(c.Data)
	blob, found, err := s.find(sum, c.Data)
	if err == nil && !found && !s.hashAll && s.hasSum(sum) {
		s.hashAll = true
		sum = s.sum(c.Data)
		blob, found, err = s.find(sum, c.Data)
	}
	if err != nil {
		return err
	}
	if found {
		return s.insertRow(&b.Row, payload.InBlob, blob, nil)
	}
	if len(s.firsts) >= maxFirsts {
		clear(s.firsts)
	}
	s.firsts[sum] = n
	codec, data := s.blobs.pack.Pack(c.Data)
	return s.insertRow(&b.Row, codec, 0, data)
}

// Of a payload of more than summedWhole bytes, summedParts parts are hashed, of
// summedPart bytes.
const (
	summedWhole = 1 << 10
	summedParts = 8
	summedPart  = 64
)

// sum returns a hash of a payload: of parts of it, until two payloads differ in nothing
// else.
func (s *segments) sum(p []byte) uint64 {
	if s.hashAll || len(p) <= summedWhole {
		return maphash.Bytes(s.seed, p)
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(p)))
	_, _ = h.Write(size[:])
	for i := range summedParts {
		at := i * (len(p) - summedPart) / (summedParts - 1)
		_, _ = h.Write(p[at : at+summedPart])
	}
	return h.Sum64()
}

// hasSum reports whether a payload with a hash was stored.
func (s *segments) hasSum(sum uint64) bool {
	_, first := s.firsts[sum]
	_, shared := s.shared[sum]
	return first || shared
}

// find returns the number of a payload of the table blobs, if it was stored before.
func (s *segments) find(sum uint64, p []byte) (blob int64, found bool, err error) {
	if again, ok := s.shared[sum]; ok {
		return again.id, bytes.Equal(again.data, p), nil
	}
	first, ok := s.firsts[sum]
	if !ok {
		return 0, false, nil
	}
	if blob, found, err = s.share(first, p); !found || err != nil {
		return 0, false, err
	}
	if s.sharedSize += len(p); s.sharedSize > maxShared {
		clear(s.shared)
		s.sharedSize = len(p)
	}
	s.shared[sum] = sharedPayload{blob, bytes.Clone(p)}
	return blob, true, nil
}

// insertRow adds the row of a segment, whose data is a payload of the table blobs if codec
// says so. A large payload, which is looked for when it comes again, and what is compressed,
// whose memory is used again, do not wait.
func (s *segments) insertRow(r *segment.Row, codec int, blob int64, data []byte) error {
	err := s.insert.add(segmentRow{*r, codec, blob, data})
	if err == nil && codec != payload.InBlob && (codec != payload.Raw || len(data) >= minPacked) {
		err = s.insert.flush()
	}
	return err
}

// A segmentRow is a segment as it is stored.
type segmentRow struct {
	segment.Row
	codec int
	blob  int64
	data  []byte
}

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

// share stores a payload by its hash, since it comes again, and has the segment that had
// it first refer to it. It reports whether that is the same payload, or refers to one
// already.
func (s *segments) share(first int64, p []byte) (id int64, same bool, err error) {
	var codec int64
	var data []byte
	s.findInline.Int(first)
	inline, err := s.findInline.Row(func(c engine.Columns) { codec, data = c.Int(0), c.Blob(1) })
	if err != nil {
		return 0, false, err
	}
	if inline {
		if packed, again := s.blobs.pack.Pack(p); int64(packed) != codec || !bytes.Equal(again, data) {
			return 0, false, nil
		}
	}
	if id, err = s.blobs.put(p, s.blobs.pack.Pack); err == nil && inline {
		s.refer.Int(first)
		s.refer.Int(id)
		err = s.refer.Run()
	}
	return id, err == nil, err
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
func (s *segments) end(exchange int64) error {
	for _, t := range s.tails[exchange] {
		if err := s.write(t); err != nil {
			return err
		}
	}
	delete(s.tails, exchange)
	return nil
}

// flush writes what was added.
func (s *segments) flush() error {
	for _, t := range s.dirty {
		if err := s.write(t); err != nil {
			return err
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	return s.insert.flush()
}

// write writes the row of a segment that has more than that.
func (s *segments) write(t *tail) error {
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
		return s.insertRow(&t.Row, codec, 0, data)
	}
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
