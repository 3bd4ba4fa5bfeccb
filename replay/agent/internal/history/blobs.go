package history

import (
	"crypto/sha256"
	"fmt"

	"unwire/replay/agent/turn"
)

// Limits for the blobs that a server may store during one stream.
const (
	maxBlobs     = 20_000
	maxBlobBytes = 64 << 20
)

// Blobs are byte strings that the client stores on behalf of the server during one stream, under names
// chosen by either side. The zero value is empty. It must not be used concurrently.
type Blobs struct {
	// byID are the blobs by name.
	byID map[string][]byte

	// bytes is the total size of names and blobs.
	bytes int
}

// Put stores a blob under its SHA-256, and returns the hash.
//
// Errors: a *turn.Error if a limit is reached.
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

// Set stores a blob under the name id. It returns false if a limit is reached.
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

// Get returns the blob with the name id; ok is false if there is none.
func (b *Blobs) Get(id []byte) (data []byte, ok bool) {
	data, ok = b.byID[string(id)]
	return data, ok
}
