package rows

import (
	"crypto/sha256"
	"database/sql"

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

// put stores p once and returns its id.
func (b *blobs) put(tx *sql.Tx, p []byte) (id int64, err error) {
	sum := sha256.Sum256(p)
	return b.rowCache.put(tx, sum, []any{sum[:]}, func() []any {
		codec, data := b.pack.Pack(p)
		return []any{sum[:], codec, len(p), data}
	})
}
