package standin

import (
	"crypto/sha256"
	"sync"
)

// Limits of the blobs that a server remembers.
const (
	maxBlobs     = 20_000
	maxBlobBytes = 64 << 20
)

// blobs are the blobs that were exchanged with clients, by id.
type blobs struct {
	mu    sync.Mutex
	all   map[string][]byte
	bytes int
}

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

func (b *blobs) get(id []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[string(id)]
}
