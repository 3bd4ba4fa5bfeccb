package rows

import (
	"crypto/sha256"

	"unwire/captures/store/internal/engine"
	"unwire/captures/store/internal/payload"
)

// blobThreshold is the size in bytes from which a chunk's data gets a segment of its own, and is stored only
// once if it repeats. For less data, the extra row would cost more than the repetition.
const blobThreshold = 4 << 10

// blobs stores payloads in the table blobs, each distinct one once. It identifies them by their SHA-256 hashes.
type blobs struct {
	// The embedded rowCache finds and adds rows of the table by the SHA-256 hashes of the payloads.
	rowCache[[sha256.Size]byte]

	// pack compresses the payloads.
	pack *payload.Packer
}

// put returns the id of the row with payload p. If the table does not contain p yet, put compresses it with
// pack and stores it.
func (b *blobs) put(p []byte, pack func([]byte) (codec int, data []byte)) (id int64, err error) {
	sum := sha256.Sum256(p)
	return b.rowCache.findOrInsert(sum, func(s *engine.Stmt) { s.Blob(sum[:]) }, func(s *engine.Stmt) {
		codec, data := pack(p)
		s.Blob(sum[:])
		s.Int(int64(codec))
		s.Int(int64(len(p)))
		s.Blob(data)
	})
}
