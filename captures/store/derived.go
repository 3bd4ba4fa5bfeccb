package store

import (
	"context"
	"database/sql"
	"fmt"
)

const (
	maxDerived     = 64      // values
	maxDerivedLen  = 1 << 20 // bytes of a value
	derivedPrefix  = "derived\x1f"
	derivedEnd     = "derived\x20" // above each name with the prefix
	maxDerivedName = 256
)

// LastNumber returns the largest number in the capture: what was derived from the
// capture holds as long as this number stays.
//
// Errors: ErrDamaged.
func (s *Store) LastNumber(ctx context.Context) (last int64, err error) {
	err = s.page(ctx, func(c *rowValues) bool {
		last = c.int()
		return true
	}, columnsFor(s.format).lastNumber)
	return last, err
}

// Derived returns what was stored under a name, or nil. It is as little to be trusted as
// the rest of the file.
//
// Errors: ErrDamaged.
func (s *Store) Derived(ctx context.Context, name string) (value []byte, err error) {
	err = s.page(ctx, func(c *rowValues) bool {
		value = c.bytes()
		return true
	}, `SELECT value FROM meta WHERE name = ?`, derivedPrefix+name)
	return value, err
}

// PutDerived stores a value that was derived from the capture, so that it need not be
// derived again. It is no part of what was recorded.
//
// In a capture that is open for reading, it writes past that, as PutSummaries does.
//
// Limits: names of 256 bytes, values of 1 MiB; of 64 values all others are forgotten.
// Errors: ErrInUse, or what the system says.
func (s *Store) PutDerived(ctx context.Context, name string, value []byte) error {
	if len(name) > maxDerivedName || len(value) > maxDerivedLen {
		return fmt.Errorf("a derived value of %d bytes under %.40q: at most %d bytes under a name of %d are kept", len(value), name, maxDerivedLen, maxDerivedName)
	}
	put := func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM meta WHERE name >= ? AND name < ?`, derivedPrefix, derivedEnd).Scan(&n); err != nil {
			return err
		}
		if n >= maxDerived {
			if _, err := tx.ExecContext(ctx, `DELETE FROM meta WHERE name >= ? AND name < ?`, derivedPrefix, derivedEnd); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
			derivedPrefix+name, value)
		return err
	}
	if s.writer != nil {
		return pathError(s.Path, s.writer.do(ctx, put))
	}
	return pathError(s.Path, s.writeBeside(ctx, put))
}
