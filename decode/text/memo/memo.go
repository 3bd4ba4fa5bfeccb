// Package memo remembers the text that was printed for payloads whose text follows from their bytes, because the
// messages of a stream repeat words, roles and identifiers.
//
//	e, repeated := m.Find(payload)
//	if e != nil && !e.Has(payload, depth) && repeated {
//		e.Set(payload, depth, text, spent)
//	}
package memo

import (
	"bytes"

	"unwire/decode/kind/stablehash"
)

const (
	// places is the number of payloads that a Memo remembers.
	places = 1024

	// maxPayload is the maximum size in bytes of a payload that is remembered, and maxText that of its text.
	maxPayload, maxText = 64, 512
)

// A Memo is a direct-mapped cache of payloads: each has one place, by its hash. The zero value is empty.
//
// Limits: a payload is remembered when it occurs for the second time, so that payloads that never repeat cost little.
type Memo struct {
	// entries has the payload at each place; it is nil before the first payload.
	entries []Entry

	// seen has, by place, a part of the hash of the payload that occurred last there.
	seen []uint32
}

// An Entry is a payload with the text that was printed for it.
type Entry struct {
	// Text is what was printed.
	Text []byte

	// Spent is the number of bytes that were decoded to find the content of the payload.
	Spent int64

	// payload is a copy of the payload, and depth the depth of indentation.
	payload []byte
	depth   int
}

// Find returns the place of a payload, which may have another one; nil if such payloads are not remembered. repeated
// means that the payload occurred before.
func (m *Memo) Find(payload []byte) (e *Entry, repeated bool) {
	if len(payload) == 0 || len(payload) > maxPayload {
		return nil, false
	}
	if m.entries == nil {
		m.entries, m.seen = make([]Entry, places), make([]uint32, places)
	}
	hash := stablehash.Bytes(payload)
	seen := &m.seen[hash%places]
	repeated = *seen == uint32(hash>>32)
	*seen = uint32(hash >> 32)
	return &m.entries[hash%places], repeated
}

// Has reports whether e has the text of a payload at a depth of indentation.
func (e *Entry) Has(payload []byte, depth int) bool {
	return e.depth == depth && bytes.Equal(e.payload, payload)
}

// Set stores copies of a payload and of its text, unless the text is long.
func (e *Entry) Set(payload []byte, depth int, text []byte, spent int64) {
	if len(text) <= maxText {
		e.payload, e.Text = append(e.payload[:0], payload...), append(e.Text[:0], text...)
		e.depth, e.Spent = depth, spent
	}
}
