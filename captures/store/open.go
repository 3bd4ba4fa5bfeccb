package store

import (
	"bytes"
	"context"
	"encoding/binary"

	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
)

// Limits for reading one value of an untrusted file, in bytes. A few forged bytes can make SQLite read the same
// page a million times.
const (
	// maxValue is the limit for the data of a chunk, with SQLite's overhead.
	maxValue = payload.MaxSize + 1<<20
	// maxHeadValue is the limit for all other values, such as a header section.
	maxHeadValue = 16 << 20
)

// HasMagic reports whether a file that begins with b is an unwire capture.
func HasMagic(b []byte) bool {
	// at is the offset of the application id in the header of an SQLite file.
	const at = 68
	return len(b) >= at+4 && bytes.HasPrefix(b, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(b[at:]) == schema.ApplicationID
}

// ID returns the random id of the capture, 16 bytes. It is nil if only old versions of unwire have recorded to
// the capture.
func (s *Store) ID(ctx context.Context) (id []byte, err error) {
	err = s.query(ctx, func(c *rowValues) bool {
		id = c.bytes()
		return true
	}, `SELECT value FROM meta WHERE name = 'capture id'`)
	return id, err
}
