package store

import (
	"context"
	"database/sql"
	"math"

	"unwire/captures"
)

// endOrphans ends the exchanges whose recorder died. A file that is larger than what can
// be read of it in that time is not appended to.
func (s *Store) endOrphans(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var last int64
	if err := tx.QueryRowContext(ctx, columnsFor(s.format).lastNumber).Scan(&last); err != nil {
		return err
	}
	for id := int64(math.MinInt64); ; {
		var orphan int64
		found := false
		if err := scan(ctx, tx, func(c *rowValues) bool {
			orphan, found = c.int(), true
			return false
		}, `SELECT id FROM exchanges WHERE outcome = '' AND id > ? ORDER BY id LIMIT 1`, id); err != nil {
			return err
		}
		if !found {
			return tx.Commit()
		}
		id = orphan
		_, duration, err := s.chunkEnds(ctx, id)
		if err != nil {
			return err
		}
		last++
		if _, err := tx.ExecContext(ctx, `INSERT INTO events (n, exchange, kind) VALUES (?, ?, ?)`, last, id, int64(captures.Ended)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE exchanges AS e SET outcome = ?2, duration_ns = ?3,
			bytes_up = `+segmentsUp+` + `+chunksUp+`, bytes_down = `+segmentsDown+` + `+chunksDown+` WHERE id = ?1`,
			id, string(captures.Incomplete), int64(duration)); err != nil {
			return err
		}
	}
}
