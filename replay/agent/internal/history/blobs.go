package history

import (
	"crypto/sha256"
	"fmt"

	"unwire/replay/agent/turn"
)

// Limits of what a server may store in one stream.
const (
	maxBlobs     = 20_000
	maxBlobBytes = 64 << 20
)

// Blobs are what the server keeps with the client in one stream, by names. The zero
// value is empty. One goroutine at a time may use it.
type Blobs struct {
	byID  map[string][]byte
	bytes int
}

// Put stores a blob under its SHA-256, and returns that.
//
// Errors: a *turn.Error if there is no room.
func (b *Blobs) Put(data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	if !b.Set(sum[:], data) {
		return nil, &turn.Error{
			Kind: turn.ContextTooLong, Code: "conversation_too_long",
			Message: fmt.Sprintf("the conversation is larger than %d MB, or has too many messages", maxBlobBytes>>20),
		}
	}
	return sum[:], nil
}

// Set stores a blob. It reports false if there is no room.
func (b *Blobs) Set(id, data []byte) bool {
	if b.byID == nil {
		b.byID = map[string][]byte{}
	}
	old, known := b.byID[string(id)]
	size := b.bytes - len(old) + len(data)
	if !known {
		size += len(id)
		if len(b.byID) >= maxBlobs {
			return false
		}
	}
	if size > maxBlobBytes {
		return false
	}
	b.byID[string(id)], b.bytes = data, size
	return true
}

// Get returns a blob.
func (b *Blobs) Get(id []byte) (data []byte, ok bool) {
	data, ok = b.byID[string(id)]
	return data, ok
}
