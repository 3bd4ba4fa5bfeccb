package store

import (
	"crypto/sha256"
	"database/sql"
	"errors"

	"unwire/captures/store/internal/payload"
)

// blobThreshold is the size from which a payload is stored by its hash: below it the row
// of its own costs more than repetition does.
const blobThreshold = 4 << 10

// maxRecentBlobs is how many payloads are found without asking the database:
// what repeats mostly does so soon.
const maxRecentBlobs = 1024

// blobs finds and adds payloads by their hash within one transaction.
type blobs struct {
	find, add *sql.Stmt
	pack      *payload.Packer
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
	codec, data := b.pack.Pack(p)
	res, err := tx.Stmt(b.add).Exec(sum[:], codec, len(p), data)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}
