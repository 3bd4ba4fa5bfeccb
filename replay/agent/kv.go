package agent

import (
	"crypto/sha256"

	"unwire/replay/agent/internal/message"
)

// Limits of what a server may store in one stream.
const (
	maxBlobs     = 20_000
	maxBlobBytes = 64 << 20
)

// blobs is what the server keeps with the client, by names. The reader alone uses it
// once the stream runs.
type blobs struct {
	byID  map[string][]byte
	bytes int
}

// put stores a blob under its SHA-256, and returns that.
func (b *blobs) put(data []byte) []byte {
	sum := sha256.Sum256(data)
	b.set(sum[:], data)
	return sum[:]
}

// set stores a blob. It reports false if there is no room.
func (b *blobs) set(id, data []byte) bool {
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

// kv answers a request to store or to return a blob.
func (s *Stream) kv(m message.Message) error {
	root := s.client.definitions.Client()
	answer := root.At("kv_client_message")
	if id := m.Uint32("id"); id != 0 { // zero is not on the wire
		answer.Set("id", id)
	}
	switch kind, args := m.Case("message"); kind {
	case "get_blob_args":
		result := answer.At("get_blob_result")
		if data, ok := s.blobs.byID[string(args.Value("blob_id").Bytes())]; ok {
			result.Set("blob_data", data)
		}
	case "set_blob_args":
		result := answer.At("set_blob_result")
		if !s.blobs.set(args.Value("blob_id").Bytes(), args.Value("blob_data").Bytes()) {
			result.At("error").Set("message", "the client's store is full")
		}
	default:
		return nil // a request of a newer server, whose answer we do not know
	}
	return s.answered(s.send(root))
}
