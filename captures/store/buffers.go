package store

import (
	"bytes"
	"math/bits"
	"sync"

	"unwire/captures"
)

const (
	// Buffers have from 256 bytes to 64 KiB, in powers of two.
	leastBufferBits, mostBufferBits = 8, 16

	// maxFree is how many bytes of buffers of one size are kept, and maxFreeChunks how many
	// chunks.
	maxFree       = 2 << 20
	maxFreeChunks = 8192
)

// buffers are chunks and their data, which are used again once they are written: to
// allocate the data of a large body takes longer than all else that is done with it before
// that. The zero value has none.
type buffers struct {
	mu     sync.Mutex
	free   [mostBufferBits + 1 - leastBufferBits][][]byte
	chunks []*captures.Chunk
}

// bufferClass is where the buffers of n bytes are, which have 1 << bits bytes; -1 for none.
func bufferClass(n int) int {
	if n == 0 || n > 1<<mostBufferBits {
		return -1
	}
	return max(bits.Len(uint(n-1)), leastBufferBits) - leastBufferBits
}

// chunk returns a chunk with a copy of p.
func (b *buffers) chunk(p []byte) *captures.Chunk {
	b.mu.Lock()
	var c *captures.Chunk
	if n := len(b.chunks); n > 0 {
		c, b.chunks = b.chunks[n-1], b.chunks[:n-1]
	}
	class := bufferClass(len(p))
	var data []byte
	if class >= 0 {
		if n := len(b.free[class]); n > 0 {
			data, b.free[class] = b.free[class][n-1], b.free[class][:n-1]
		}
	}
	b.mu.Unlock()
	if c == nil {
		c = new(captures.Chunk)
	}
	switch {
	case class < 0:
		c.Data = bytes.Clone(p)
	case data == nil:
		c.Data = append(make([]byte, 0, 1<<(class+leastBufferBits)), p...)
	default:
		c.Data = append(data, p...)
	}
	return c
}

// recycle takes a chunk that nobody uses any more, nor its data.
func (b *buffers) recycle(c *captures.Chunk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := cap(c.Data)
	if class := bufferClass(size); class >= 0 && size == 1<<(class+leastBufferBits) && (len(b.free[class])+1)*size <= maxFree {
		b.free[class] = append(b.free[class], c.Data[:0])
	}
	*c = captures.Chunk{}
	if len(b.chunks) < maxFreeChunks {
		b.chunks = append(b.chunks, c)
	}
}
