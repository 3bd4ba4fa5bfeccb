package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"unwire/captures"
)

const (
	maxReadings    = 10_000
	maxReadingLen  = 4 << 10
	readingsPrefix = "reading\x1f" // of their names in meta
	readingsEnd    = "reading\x20" // above each name with the prefix
)

// readingName is what a reading is stored under.
func readingName(r *captures.Reading) string {
	return readingsPrefix + r.Method + "\x1f" + r.Dir.String() + "\x1f" + r.Path
}

// PutReading stores a reading in the place of the one at its path; an empty Type
// forgets that.
//
// In a capture that is open for reading, it writes past that, as PutSummaries does.
//
// Limits: 10,000 readings of 4 KiB. Errors: ErrInUse, or what the system says.
func (s *Store) PutReading(ctx context.Context, r captures.Reading) error {
	put := func(tx *sql.Tx) error { return putReading(ctx, tx, &r) }
	if s.writer != nil {
		return pathError(s.Path, s.writer.do(ctx, put))
	}
	return pathError(s.Path, s.writeBeside(ctx, put))
}

func putReading(ctx context.Context, tx *sql.Tx, r *captures.Reading) error {
	if len(readingName(r))+len(r.Type) > maxReadingLen || strings.Contains(r.Method+r.Path, "\x1f") {
		return fmt.Errorf("a reading of %.40q at %.40q cannot be stored", r.Method, r.Path)
	}
	if r.Type == "" {
		_, err := tx.ExecContext(ctx, `DELETE FROM meta WHERE name = ?`, readingName(r))
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM meta WHERE name >= ? AND name < ?`, readingsPrefix, readingsEnd).Scan(&n); err != nil {
		return err
	}
	if n >= maxReadings {
		return fmt.Errorf("more than %d readings", maxReadings)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		readingName(r), []byte(r.Type))
	return err
}

// Readings returns the stored readings by method, direction and path; of one method,
// or of all for "".
//
// Errors: ErrDamaged.
func (s *Store) Readings(ctx context.Context, method string) ([]captures.Reading, error) {
	var list []captures.Reading
	from := readingsPrefix
	if method != "" {
		from += method + "\x1f"
	}
	to := from[:len(from)-1] + "\x20" // the prefix ends in 0x1f
	err := s.page(ctx, func(c *rowValues) bool {
		name, value := c.text(), c.bytes()
		parts := strings.Split(strings.TrimPrefix(name, readingsPrefix), "\x1f")
		if len(parts) != 3 || parts[1] != captures.Up.String() && parts[1] != captures.Down.String() || len(value) == 0 {
			return true // nothing that we stored
		}
		r := captures.Reading{Method: parts[0], Path: parts[2], Type: string(value)}
		if parts[1] == captures.Down.String() {
			r.Dir = captures.Down
		}
		list = append(list, r)
		return true
	}, `SELECT name, value FROM meta WHERE name >= ? AND name < ? ORDER BY name LIMIT ?`, from, to, maxReadings)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// writeBeside runs fn in a transaction on a connection of its own. SQLite's locks
// keep it and a recorder that begins meanwhile apart.
func (s *Store) writeBeside(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if err := idle(s.Path); err != nil {
		return err
	}
	if err := isWhole(s.Path); err != nil {
		return err
	}
	db, err := openDB(s.Path, "rw")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		if err = fn(tx); err == nil {
			err = tx.Commit()
		} else {
			err = errors.Join(err, tx.Rollback())
		}
	}
	return errors.Join(err, db.Close())
}

// isWhole refuses a file that is shorter than its first page says: to write to a part of
// a capture could lose more of it.
func isWhole(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var head [32]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return fmt.Errorf("%w: %w", captures.ErrDamaged, err)
	}

	pageSize := int64(binary.BigEndian.Uint16(head[16:]))
	if pageSize == 1 { // stands for 65,536, which two bytes cannot hold
		pageSize = 1 << 16
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	if pages*pageSize > info.Size() {
		return fmt.Errorf("%w: %d bytes of %d", captures.ErrDamaged, info.Size(), pages*pageSize)
	}
	return nil
}
