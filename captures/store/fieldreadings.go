package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/database"
	"unwire/captures/store/internal/schema"
)

const (
	maxReadings   = 10_000
	maxReadingLen = 4 << 10
)

// PutReading stores a reading in the place of the one at its path; an empty Type
// withdraws that.
//
// In a capture that is open for reading, it writes past that, as PutSummaries does.
//
// Limits: 10,000 readings of 4 KiB. Errors: ErrInUse, ErrOlderFormat, or what the system
// says.
func (s *Store) PutReading(ctx context.Context, r captures.Reading) error {
	return s.putNumbered(ctx, func(tx *sql.Tx, n int64) error { return putReading(ctx, tx, n, &r) })
}

// putNumbered runs fn in a transaction, with the number of the row that it adds.
func (s *Store) putNumbered(ctx context.Context, fn func(tx *sql.Tx, n int64) error) error {
	if s.writer != nil {
		return pathError(s.Path, s.writer.do(ctx, func(tx *sql.Tx) error {
			s.writer.n++ // we are on its goroutine
			return fn(tx, s.writer.n)
		}))
	}
	if s.format < schema.WithSegments {
		return pathError(s.Path, captures.ErrOlderFormat)
	}
	return pathError(s.Path, s.writeBeside(ctx, func(tx *sql.Tx) error {
		var last int64
		if err := tx.QueryRowContext(ctx, columnsNow.lastNumber).Scan(&last); err != nil {
			return err
		}
		if last > math.MaxInt64/2 {
			return captures.Damaged("the number %d leaves none for what is added", last)
		}
		return fn(tx, last+1)
	}))
}

func putReading(ctx context.Context, tx *sql.Tx, n int64, r *captures.Reading) error {
	if len(r.Method)+len(r.Path)+len(r.Type) > maxReadingLen {
		return fmt.Errorf("a reading of %.40q at %.40q is longer than %d bytes", r.Method, r.Path, maxReadingLen)
	}
	var have int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM readings`).Scan(&have); err != nil {
		return err
	}
	if have >= maxReadings {
		return fmt.Errorf("more than %d readings", maxReadings)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO readings (n, method, dir, path, type, changed_ns) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (method, dir, path) DO UPDATE SET n = excluded.n, type = excluded.type, changed_ns = excluded.changed_ns`,
		n, r.Method, int64(r.Dir), r.Path, r.Type, time.Now().UnixNano())
	return err
}

// Readings returns the stored readings by method, direction and path; of one method,
// or of all for "".
//
// Errors: ErrDamaged.
func (s *Store) Readings(ctx context.Context, method string) ([]captures.Reading, error) {
	if s.format < schema.WithSegments {
		return s.readingsBefore(ctx, method)
	}
	var list []captures.Reading
	err := s.page(ctx, func(c *rowValues) bool {
		list = append(list, captures.Reading{Method: c.text(), Dir: captures.Direction(c.small(1)), Path: c.text(), Type: c.text()})
		return c.err == nil
	}, `SELECT method, dir, path, type FROM readings WHERE (method = ?1 OR ?1 = '') AND type <> '' ORDER BY method, dir, path LIMIT ?2`, method, maxReadings)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readingsBefore is Readings for formats 1 and 2, which have them in meta under names of
// four parts.
func (s *Store) readingsBefore(ctx context.Context, method string) ([]captures.Reading, error) {
	var list []captures.Reading
	err := s.page(ctx, func(c *rowValues) bool {
		name, value := c.text(), c.bytes()
		parts := strings.Split(name, "\x1f")
		if len(parts) != 4 || parts[2] != captures.Up.String() && parts[2] != captures.Down.String() || len(value) == 0 {
			return true // nothing that was stored as a reading
		}
		r := captures.Reading{Method: parts[1], Path: parts[3], Type: string(value)}
		if parts[2] == captures.Down.String() {
			r.Dir = captures.Down
		}
		if method == "" || r.Method == method {
			list = append(list, r)
		}
		return true
	}, `SELECT name, value FROM meta WHERE name >= 'reading' || char(31) AND name < 'reading ' ORDER BY name LIMIT ?`, maxReadings)
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
	if err := database.CheckWhole(s.Path); err != nil {
		return err
	}
	db, err := database.Open(s.Path, "rw")
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
