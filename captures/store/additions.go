package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/additions"
	"unwire/captures/store/internal/control"
	"unwire/captures/store/internal/database"
	"unwire/captures/store/internal/filelock"
	"unwire/captures/store/internal/schema"
)

// PutNote stores a note in the place of the one of its kind at its place; an empty Value
// removes that.
//
// A capture that is open for reading is changed, too: its writer does that if it is being
// recorded, with the secrets that it knows replaced, and otherwise this process.
//
// Limits: texts of 64 KiB, marks of 64 bytes, 100,000 notes. Errors: ErrNoExchange,
// ErrTooLarge, ErrFull, ErrInUse if the writer takes no additions, ErrOlderFormat, or what
// the system says.
func (s *Store) PutNote(ctx context.Context, n captures.Note) error {
	return s.put(ctx, captures.Addition{Note: &n})
}

// PutReading stores a reading in the place of the one at its path; an empty Type
// withdraws that. A capture that is open for reading is changed, as by PutNote.
//
// Limits: 10,000 readings of 4 KiB. Errors: those of PutNote.
func (s *Store) PutReading(ctx context.Context, r captures.Reading) error {
	return s.put(ctx, captures.Addition{Reading: &r})
}

// PutDefinition stores a definition in the place of the one of its kind and name. One that
// is not active, which needs no kind, takes that back. A capture that is open for reading is
// changed, as by PutNote.
//
// Limits: 64 MiB, 10,000 definitions, active ones of 256 MiB together. Errors: those of
// PutNote.
func (s *Store) PutDefinition(ctx context.Context, d captures.Definition) error {
	return s.put(ctx, captures.Addition{Definition: &d})
}

func (s *Store) put(ctx context.Context, a captures.Addition) error {
	_, err := s.add(ctx, a)
	return pathError(s.Path, err)
}

// add stores an addition, and returns the number of its row.
func (s *Store) add(ctx context.Context, a captures.Addition) (n int64, err error) {
	if a.Note != nil && s.Redactor != nil {
		note := *a.Note
		note.Value = s.Redactor.String(note.Value)
		a.Note = &note
	}
	c, err := additions.Prepare(a)
	if err != nil {
		return 0, err
	}
	if s.writer == nil {
		return s.addBeside(ctx, c)
	}
	// The writer's goroutine runs this, so it draws the next number.
	err = s.writer.do(ctx, func(tx *sql.Tx) (err error) {
		n, err = c.Write(ctx, tx, func() int64 { s.writer.n++; return s.writer.n })
		return err
	})
	return n, err
}

// How long a writer that does not answer is waited for: one that begins or ends, or writes
// an addition itself, and one that has all connections that it allows, or is about to end.
const (
	absentTime = 5 * time.Second
	busyTime   = 10 * time.Second
)

// addBeside adds to a capture that is open for reading.
func (s *Store) addBeside(ctx context.Context, c *additions.Change) (n int64, err error) {
	if s.format < schema.WithSegments {
		return 0, captures.ErrOlderFormat
	}
	for began := time.Now(); ; {
		if n, err = s.addToFile(ctx, c); !errors.Is(err, captures.ErrInUse) {
			return n, err
		}
		n, err = control.Add(ctx, s.Path, c.Addition)
		patience := busyTime
		switch {
		case errors.Is(err, control.ErrNobody):
			patience, err = absentTime, errors.Join(captures.ErrInUse, err)
		case !errors.Is(err, control.ErrBusy) && !errors.Is(err, captures.ErrClosed):
			return n, err
		}
		if time.Since(began) > patience {
			return 0, err
		}
		select {
		case <-time.After(rand.N(20 * time.Millisecond)):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// addToFile takes the lock and adds to the file.
func (s *Store) addToFile(ctx context.Context, c *additions.Change) (n int64, err error) {
	lock, err := filelock.Take(s.Path + "-lock")
	if err != nil {
		return 0, lockError(s.Path, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	err = s.writeLocked(ctx, func(tx *sql.Tx) error {
		var last int64
		if err := tx.QueryRowContext(ctx, columnsNow.lastNumber).Scan(&last); err != nil {
			return err
		}
		if last > math.MaxInt64/2 {
			return captures.Damaged("the number %d leaves none for what is added", last)
		}
		n, err = c.Write(ctx, tx, func() int64 { last++; return last })
		return err
	})
	return n, err
}

// writeBeside runs fn in a transaction on a connection of its own. SQLite's locks
// keep it and a recorder that begins meanwhile apart.
func (s *Store) writeBeside(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if err := filelock.Free(s.Path + "-lock"); err != nil {
		return err
	}
	return s.writeLocked(ctx, fn)
}

// writeLocked is writeBeside for a caller that knows that nothing is recorded.
func (s *Store) writeLocked(ctx context.Context, fn func(tx *sql.Tx) error) error {
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

// Notes returns the notes of an exchange, or of all for 0, by their places.
//
// Errors: ErrDamaged.
func (s *Store) Notes(ctx context.Context, exchange int64) (list []captures.Note, err error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	err = s.ask(ctx, maxHeadValue, additions.Notes(exchange, func(n captures.Note) { list = append(list, n) }))
	return list, err
}

// Readings returns the stored readings by method, direction and path; of one method,
// or of all for "".
//
// Errors: ErrDamaged.
func (s *Store) Readings(ctx context.Context, method string) (list []captures.Reading, err error) {
	queryOf := additions.Readings
	if s.format < schema.WithSegments {
		queryOf = additions.ReadingsBefore
	}
	err = s.ask(ctx, maxHeadValue, queryOf(method, func(r captures.Reading) { list = append(list, r) }))
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Definitions returns the definitions by kind and name; those that are not active without
// their data.
//
// Errors: ErrDamaged.
func (s *Store) Definitions(ctx context.Context) (list []captures.Definition, err error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	err = s.ask(ctx, maxValue, additions.Definitions(s.unpack, func(d captures.Definition) { list = append(list, d) }))
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ask runs a query of additions.
func (s *Store) ask(ctx context.Context, limit int, q additions.Query) error {
	return s.pageOf(ctx, limit, rowOf(q), q.Text, q.Args...)
}

// rowOf has scan give the rows of a query of additions to it.
func rowOf(q additions.Query) func(c *rowValues) bool {
	return func(c *rowValues) bool {
		c.err = q.Row(c.values)
		return c.err == nil
	}
}

// additionsSince reads a page of each kind of addition.
func additionsSince(ctx context.Context, db readable, last int64) (pages []*eventPage, err error) {
	var p *eventPage
	for _, q := range additions.Since(last, pageRows, func(n int64, a captures.Addition) {
		p.events = append(p.events, captures.Event{Kind: captures.Added, N: n, Addition: a})
		p.full, p.completeTo = len(p.events) == pageRows, n
	}) {
		p = &eventPage{}
		pages = append(pages, p)
		if err := scan(ctx, db, rowOf(q), q.Text, q.Args...); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// A controlled store is what a server of additions asks.
type controlled struct{ *Store }

// Add is Store.add.
func (c controlled) Add(ctx context.Context, a captures.Addition) (int64, error) {
	return c.add(ctx, a)
}
