package captures

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"
)

// A FrameRow is one frame of an exchange as somebody derived it from the
// chunks: where it lies in the bytes of its direction.
type FrameRow struct {
	Exchange int64
	Dir      Direction
	Seq      int   // per direction, from 0
	Off, Len int64 // in the direction's bytes; a frame's header included
	Flags    uint8
	T        time.Duration // when its last byte passed
}

// An Annotation is a remark about an exchange or a part of it.
type Annotation struct {
	Exchange         int64
	Path, Key, Value string // an empty path is the exchange itself
}

// PutFrames replaces the frames of an exchange. What is derived can be rebuilt
// at any time; DropDerived forgets it.
//
// Errors: ErrReadOnly, ErrNoExchange.
func (s *Store) PutFrames(ctx context.Context, id int64, frames []FrameRow) error {
	return s.change(ctx, id, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM frames WHERE exchange = ?`, id); err != nil {
			return err
		}
		add, err := tx.PrepareContext(ctx, `INSERT INTO frames (exchange, dir, seq, off, len, flags, t_ns) VALUES (?, ?, ?, ?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer func() { _ = add.Close() }()
		for _, f := range frames {
			if _, err := add.ExecContext(ctx, id, int64(f.Dir), f.Seq, f.Off, f.Len, int64(f.Flags), int64(f.T)); err != nil {
				return fmt.Errorf("frame %s/%d: %w", f.Dir, f.Seq, err)
			}
		}
		return nil
	})
}

// maxDerived is how many derived rows of an exchange are read: as many frames as
// are decoded.
const maxDerived = 1_000_000

// Frames returns the derived frames of an exchange, the client's first; none
// if they have not been derived.
//
// Limits: 1,000,000 frames.
// Errors: ErrDamaged.
func (s *Store) Frames(ctx context.Context, id int64) ([]FrameRow, error) {
	var frames []FrameRow
	err := s.page(ctx, func(c *cursor) bool {
		frames = append(frames, FrameRow{
			Exchange: c.int(), Dir: Direction(c.small(1)), Seq: int(c.small(math.MaxInt32)),
			Off: c.size(), Len: c.size(), Flags: uint8(c.small(math.MaxUint8)), T: time.Duration(c.size()),
		})
		return true
	}, `SELECT exchange, dir, seq, off, len, flags, t_ns FROM frames WHERE exchange = ? ORDER BY dir, seq LIMIT ?`, id, maxDerived)
	if err != nil {
		return nil, err
	}
	return frames, nil
}

// PutAnnotation sets the value of a key at a path of an exchange.
//
// Errors: ErrReadOnly, ErrNoExchange.
func (s *Store) PutAnnotation(ctx context.Context, a Annotation) error {
	return s.change(ctx, a.Exchange, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO annotations (exchange, path, key, value) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET value = excluded.value`, a.Exchange, a.Path, a.Key, s.clean(a.Value))
		return err
	})
}

// Annotations returns the annotations of an exchange by path and key.
//
// Limits: 1,000,000 annotations.
// Errors: ErrDamaged.
func (s *Store) Annotations(ctx context.Context, id int64) ([]Annotation, error) {
	var as []Annotation
	err := s.page(ctx, func(c *cursor) bool {
		as = append(as, Annotation{Exchange: c.int(), Path: c.text(), Key: c.text(), Value: c.text()})
		return true
	}, `SELECT exchange, path, key, value FROM annotations WHERE exchange = ? ORDER BY path, key LIMIT ?`, id, maxDerived)
	if err != nil {
		return nil, err
	}
	return as, nil
}

// DropDerived forgets all frames, annotations and summaries.
//
// Errors: ErrReadOnly.
func (s *Store) DropDerived(ctx context.Context) error {
	if s.writer == nil {
		return pathError(s.path, ErrReadOnly)
	}
	return pathError(s.path, s.writer.do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM frames; DELETE FROM annotations; DELETE FROM summaries`)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM meta WHERE name = ?`, summarisedTo)
		}
		return err
	}))
}

// change runs fn in the writer's transaction if the exchange exists.
func (s *Store) change(ctx context.Context, id int64, fn func(tx *sql.Tx) error) error {
	if s.writer == nil {
		return pathError(s.path, ErrReadOnly)
	}
	return pathError(s.path, s.writer.do(ctx, func(tx *sql.Tx) error {
		var there bool
		if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM exchanges WHERE id = ?)`, id).Scan(&there); err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("exchange %d: %w", id, ErrNoExchange)
		}
		return fn(tx)
	}))
}
