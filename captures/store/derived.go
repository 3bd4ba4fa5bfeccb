package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
)

const (
	// maxDerived limits the number of values that PutDerived stores in a capture.
	maxDerived = 64
	// maxDerivedLen limits the size of such a value, in bytes.
	maxDerivedLen = 1 << 20
	derivedPrefix = "derived\x1f"
	// derivedEnd is above all names that begin with derivedPrefix, for range queries. Derived values are rows
	// of the table meta with such names.
	derivedEnd = "derived\x20"
	// maxDerivedName limits the length of such a value's name, in bytes.
	maxDerivedName = 256
)

// LastNumber returns the largest row number in the capture. Data derived from the capture is valid as long as
// this number does not change.
//
// Errors: ErrDamaged.
func (s *Store) LastNumber(ctx context.Context) (last int64, err error) {
	err = s.query(ctx, func(c *rowValues) bool {
		last = c.int()
		return true
	}, columnsFor(s.format).lastNumber)
	return last, err
}

// Derived returns the value that PutDerived stored under a name, or nil. The caller must validate it, because
// the file may be forged.
//
// Errors: ErrDamaged.
func (s *Store) Derived(ctx context.Context, name string) (value []byte, err error) {
	err = s.query(ctx, func(c *rowValues) bool {
		value = c.bytes()
		return true
	}, `SELECT value FROM meta WHERE name = ?`, derivedPrefix+name)
	return value, err
}

// PutDerived stores a value that was derived from the capture, as a cache.
//
// If the capture is open for reading, it opens the file for writing for a moment, as PutSummaries does.
//
// Limits: names of 256 bytes, values of 1 MiB, 64 values. When the 65th is stored, the others are deleted.
// Errors: ErrInUse, and errors of the system.
func (s *Store) PutDerived(ctx context.Context, name string, value []byte) error {
	if len(name) > maxDerivedName || len(value) > maxDerivedLen {
		return fmt.Errorf("the derived value %.40q has %d bytes: a value may have %d bytes and its name %d", name, len(value), maxDerivedLen, maxDerivedName)
	}
	put := func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM meta WHERE name >= ? AND name < ?`, derivedPrefix, derivedEnd).Scan(&n); err != nil {
			return err
		}

		// A cache need not be clever: start over when it is full.
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
		return pathError(s.Path, s.writer.runInTransaction(ctx, put))
	}
	return pathError(s.Path, s.writeAsReader(ctx, put))
}

// Authority returns the DER-encoded certificate of the CA with this SHA-256 hash (in hex), or nil if the
// capture does not contain it. A capture contains the certificates of CAs that the recording machine does not
// trust by default.
//
// Errors: ErrDamaged.
func (s *Store) Authority(ctx context.Context, sum string) (der []byte, err error) {
	err = s.query(ctx, func(c *rowValues) bool {
		der = c.bytes()
		return true
	}, `SELECT value FROM meta WHERE name = ?`, authorityPrefix+sum)
	if hash := sha256.Sum256(der); err != nil || hex.EncodeToString(hash[:]) != sum {
		return nil, err
	}
	return der, nil
}
