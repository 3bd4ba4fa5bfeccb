package rows

import (
	"crypto/sha256"

	"unwire/captures/store/internal/engine"
	"unwire/captures/store/internal/payload"
)

// blobThreshold is the size from which a payload has a segment of its own, and is stored
// by its hash when it comes again: below it the row would cost more than repetition does.
const blobThreshold = 4 << 10

// blobs finds and adds payloads by their hash.
type blobs struct {
	rowCache[[sha256.Size]byte]

	pack *payload.Packer
}

// put stores p once, as pack compresses it, and returns its id.
func (b *blobs) put(p []byte, pack func([]byte) (codec int, data []byte)) (id int64, err error) {
	sum := sha256.Sum256(p)
	return b.rowCache.put(sum, func(s *engine.Stmt) { s.Blob(sum[:]) }, func(s *engine.Stmt) {
		codec, data := pack(p)
		s.Blob(sum[:])
		s.Int(int64(codec))
		s.Int(int64(len(p)))
		s.Blob(data)
	})
}
