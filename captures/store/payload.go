package store

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxChunk is the size of the largest chunk that is stored in one
	// piece, and the most that a stored one may inflate to.
	maxChunk = 64 << 20

	// blobThreshold is the size from which a payload is stored by its
	// hash: below it the row of its own costs more than repetition does.
	blobThreshold = 4 << 10
)

// Codecs of a stored blob.
const (
	codecRaw  = 0
	codecZstd = 1
)

// packer compresses payloads for the writer goroutine.
type packer struct{ enc *zstd.Encoder }

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return &packer{enc}, err
}

// pack returns p as it is stored; compression must save an eighth to be worth it.
func (k *packer) pack(p []byte) (codec int, data []byte) {
	if z := k.enc.EncodeAll(p, make([]byte, 0, len(p))); len(z) <= len(p)-len(p)/8 {
		return codecZstd, z
	}
	return codecRaw, p
}

// unpacker inflates payloads; it may be used by many goroutines.
type unpacker struct {
	dec *zstd.Decoder

	// verify compares payloads with their hashes: the file is damaged, and SQLite reads
	// zeros where it ends within a page.
	verify bool

	mu sync.Mutex

	// last is the payload that was inflated last: what repeats mostly does so at once.
	last packed

	inflated int64 // how many payloads were inflated
}

// packed is a payload as it is stored, and inflated.
type packed struct{ stored, data []byte }

func newUnpacker() (*unpacker, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxChunk))
	return &unpacker{dec: dec}, err
}

// unpack reverses pack. Size is what the row declares.
//
// Limits: size is at most maxChunk and the data may not inflate to more.
// Errors: ErrDamaged.
func (u *unpacker) unpack(codec, size int64, data []byte) (_ []byte, err error) {
	if size < 0 || size > maxChunk {
		return nil, damaged("a payload declares %d bytes", size)
	}
	switch codec {
	case codecRaw:
	case codecZstd:
		// A payload that is longer than declared fails below.
		if data, err = u.inflate(data, size); err != nil {
			return nil, damaged("a payload does not inflate: %v", err)
		}
	default:
		return nil, damaged("a payload has the unknown codec %d", codec)
	}
	if int64(len(data)) != size {
		return nil, damaged("a payload has %d bytes where %d were declared", len(data), size)
	}
	return data, nil
}

// inflate inflates a payload, or returns a copy of the last one if it is that.
func (u *unpacker) inflate(stored []byte, size int64) ([]byte, error) {
	u.mu.Lock()
	last := u.last
	u.mu.Unlock()
	if len(last.stored) > 0 && bytes.Equal(stored, last.stored) {
		return bytes.Clone(last.data), nil
	}
	data, err := u.dec.DecodeAll(stored, make([]byte, 0, size))
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inflated++
	u.last = packed{stored, bytes.Clone(data)}
	return data, nil
}

// maxRecentBlobs is how many payloads are found without asking the database:
// what repeats mostly does so soon.
const maxRecentBlobs = 1024

// blobs finds and adds payloads by their hash within one transaction.
type blobs struct {
	find, add *sql.Stmt
	pack      *packer
	recent    map[[sha256.Size]byte]int64
}

// put stores p once and returns its id.
func (b *blobs) put(tx *sql.Tx, p []byte) (id int64, err error) {
	sum := sha256.Sum256(p)
	if id, ok := b.recent[sum]; ok {
		return id, nil
	}
	defer func() {
		if err != nil {
			return
		}
		if len(b.recent) >= maxRecentBlobs || b.recent == nil {
			b.recent = make(map[[sha256.Size]byte]int64)
		}
		b.recent[sum] = id
	}()
	err = tx.Stmt(b.find).QueryRow(sum[:]).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	codec, data := b.pack.pack(p)
	res, err := tx.Stmt(b.add).Exec(sum[:], codec, len(p), data)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}
