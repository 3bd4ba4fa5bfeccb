package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"

	"unwire/captures/store/internal/database"
	"unwire/captures/store/internal/payload"
	"unwire/captures/store/internal/schema"
)

// Bounds of one value of a foreign file: a few forged bytes can make SQLite read
// the same page a million times.
const (
	// maxValue is for a chunk, with what SQLite needs around it.
	maxValue      = payload.MaxSize + 1<<20
	maxHeadValue  = 16 << 20 // any other value: headers, for one
	maxSchemaText = 64 << 10 // the definition of a table
)

// reader returns a connection on which no value of more than limit bytes can be
// read.
func (s *Store) reader(ctx context.Context, limit int) (*sql.Conn, error) {
	return database.Conn(ctx, s.read, limit)
}

// HasMagic reports whether a file's bytes begin as those of a capture do.
func HasMagic(b []byte) bool {
	const at = 68 // of the application's id in the header of SQLite
	return len(b) >= at+4 && bytes.HasPrefix(b, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(b[at:]) == schema.ApplicationID
}

// ID returns the identifier that the capture was made with; nil if it has none, as older
// ones that were not recorded to since.
func (s *Store) ID(ctx context.Context) (id []byte, err error) {
	err = s.page(ctx, func(c *rowValues) bool {
		id = c.bytes()
		return true
	}, `SELECT value FROM meta WHERE name = 'capture id'`)
	return id, err
}
