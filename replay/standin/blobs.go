package standin

import (
	"crypto/sha256"
	"sync"
)

// Limits of the blobs that a server remembers.
const (
	// Limits of the blobs that a server stores: their number and their total size in bytes.
	maxBlobs     = 20_000
	maxBlobBytes = 64 << 20
)

// blobs are byte strings that were exchanged with clients, by id, which is their SHA-256.
type blobs struct {
	// mu guards the fields below.
	mu sync.Mutex

	// all are the blobs by id.
	all map[string][]byte

	// bytes is the total size of the blobs.
	bytes int
}

// add stores a blob, unless a limit is reached.
func (b *blobs) add(data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string][]byte{}
	}
	id := sha256.Sum256(data)
	if b.all[string(id[:])] != nil || len(b.all) == maxBlobs || b.bytes+len(data) > maxBlobBytes {
		return
	}
	b.all[string(id[:])] = data
	b.bytes += len(data)
}

// get returns the blob with an id; nil if there is none.
func (b *blobs) get(id []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[string(id)]
}
