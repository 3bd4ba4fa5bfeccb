package store

import (
	"bytes"
	"math/bits"
	"sync"

	"unwire/captures"
)

const (
	// minBufferBits and maxBufferBits are the binary logarithms of the smallest and the largest buffer size:
	// buffers have from 256 bytes to 64 KiB, in powers of two.
	minBufferBits, maxBufferBits = 8, 16

	// maxFreeBytes limits the unused buffers of each size, in bytes, and maxFreeChunks the unused Chunk values.
	// While a large body is recorded, two transactions of buffers are in use.
	maxFreeBytes  = 8 << 20
	maxFreeChunks = 8192
)

// buffers is a free list of chunks and of memory for their data, because allocating memory for a large body
// would take longer than all other work on it before it is queued. The zero value is empty. sync.Pool would
// lose its contents at every garbage collection.
type buffers struct {
	// mu guards all other fields.
	mu sync.Mutex

	// free contains unused buffers, grouped by size class.
	free [maxBufferBits + 1 - minBufferBits][][]byte

	// chunks are unused Chunk values.
	chunks []*captures.Chunk
}

// bufferClass returns the size class for n bytes: class k has buffers of 1 << (minBufferBits+k) bytes. It
// returns -1 if n is 0 or too large.
func bufferClass(n int) int {
	if n == 0 || n > 1<<maxBufferBits {
		return -1
	}
	return max(bits.Len(uint(n-1)), minBufferBits) - minBufferBits
}

// chunk returns a chunk with a copy of p. Its other fields are zero.
func (b *buffers) chunk(p []byte) *captures.Chunk {
	// Take a Chunk and a buffer under the lock; copy after it.
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
		c.Data = append(make([]byte, 0, 1<<(class+minBufferBits)), p...)
	default:
		c.Data = append(data, p...)
	}
	return c
}

// recycle returns a chunk and its data to the free list. Nobody may use them afterwards.
func (b *buffers) recycle(c *captures.Chunk) {
	b.mu.Lock()
	defer b.mu.Unlock()

	// Buffers that another package has resized do not belong to any class.
	size := cap(c.Data)
	if class := bufferClass(size); class >= 0 && size == 1<<(class+minBufferBits) && (len(b.free[class])+1)*size <= maxFreeBytes {
		b.free[class] = append(b.free[class], c.Data[:0])
	}
	*c = captures.Chunk{}
	if len(b.chunks) < maxFreeChunks {
		b.chunks = append(b.chunks, c)
	}
}
