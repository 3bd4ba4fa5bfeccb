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

// PutNote stores a note. It replaces the note of the same kind at the same place; an empty Value removes that
// note.
//
// It also works if the capture is open for reading. If another process is recording to the file, that process
// writes the note and redacts the secrets that it knows; otherwise this process writes to the file.
//
// Limits: texts of 64 KiB, marks of 64 bytes, 100,000 notes. Errors: ErrNoExchange, ErrTooLarge, ErrFull,
// ErrInUse if the recording process accepts no additions, ErrOlderFormat, and errors of the system.
func (s *Store) PutNote(ctx context.Context, n captures.Note) error {
	return s.putAddition(ctx, captures.Addition{Note: &n})
}

// PutReading stores a Reading, i.e. the type that a user chose for a protobuf field. It replaces the earlier
// choice for the same field; an empty Type removes that. Like PutNote, it works if the capture is open for
// reading.
//
// Limits: 10,000 readings of 4 KiB. Errors: those of PutNote.
func (s *Store) PutReading(ctx context.Context, r captures.Reading) error {
	return s.putAddition(ctx, captures.Addition{Reading: &r})
}

// PutDefinition stores protobuf message definitions. They replace the active ones of the same kind and name. A
// definition that is not active removes the one of that name; it needs no kind. Like PutNote, it works if the
// capture is open for reading.
//
// Limits: 64 MiB each; 10,000 definitions; 256 MiB for all active ones. Errors: those of PutNote.
func (s *Store) PutDefinition(ctx context.Context, d captures.Definition) error {
	return s.putAddition(ctx, captures.Addition{Definition: &d})
}

// putAddition stores a note, reading or definition.
func (s *Store) putAddition(ctx context.Context, a captures.Addition) error {
	_, err := s.storeAddition(ctx, a)
	return pathError(s.Path, err)
}

// storeAddition stores a note, reading or definition, and returns the number of its row. How depends on whether
// the capture is open for recording or for reading.
func (s *Store) storeAddition(ctx context.Context, a captures.Addition) (n int64, err error) {
	if a.Note != nil && s.Redactor != nil {
		note := *a.Note
		note.Value = s.Redactor.String(note.Value)
		a.Note = &note
	}

	// Prepare checks and compresses the addition outside of the writer's goroutine.
	c, err := additions.Prepare(a)
	if err != nil {
		return 0, err
	}
	if s.writer == nil {
		return s.addAsReader(ctx, c)
	}
	// The function runs in the writer's goroutine, which assigns the numbers of rows.
	err = s.writer.runInTransaction(ctx, func(tx *sql.Tx) (err error) {
		n, err = c.Write(ctx, tx, func() int64 { s.writer.lastNumber++; return s.writer.lastNumber })
		return err
	})
	return n, err
}

// noWriterTimeout is how long addAsReader retries if another process has locked the capture but offers no
// socket, because it is starting, ending, or writing an addition itself. busyWriterTimeout is how long it
// retries if that process has too many connections or is about to close.
const (
	noWriterTimeout   = 5 * time.Second
	busyWriterTimeout = 10 * time.Second
)

// addAsReader stores an addition in a capture that is open for reading: through the process that records to it,
// or directly if there is none.
func (s *Store) addAsReader(ctx context.Context, c *additions.Change) (n int64, err error) {
	if s.format < schema.WithSegments {
		return 0, captures.ErrOlderFormat
	}

	// Either this process gets the lock and writes to the file, or the process that has the lock writes for it.
	// The lock can change hands between the two attempts, so both are repeated.
	for began := time.Now(); ; {
		if n, err = s.addToFile(ctx, c); !errors.Is(err, captures.ErrInUse) {
			return n, err
		}
		n, err = control.Add(ctx, s.Path, c.Addition)
		patience := busyWriterTimeout
		switch {
		case errors.Is(err, control.ErrNoWriter):
			patience, err = noWriterTimeout, errors.Join(captures.ErrInUse, err)
		case !errors.Is(err, control.ErrBusy) && !errors.Is(err, captures.ErrClosed):
			return n, err
		}
		if time.Since(began) > patience {
			return 0, err
		}

		// Wait for a random time, so that several processes do not retry in step.
		select {
		case <-time.After(rand.N(20 * time.Millisecond)):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// addToFile locks the capture file and stores the addition in it.
func (s *Store) addToFile(ctx context.Context, c *additions.Change) (n int64, err error) {
	lock, err := filelock.Acquire(s.Path + "-lock")
	if err != nil {
		return 0, lockError(s.Path, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	err = s.writeLocked(ctx, func(tx *sql.Tx) error {
		var last int64
		if err := tx.QueryRowContext(ctx, currentColumns.lastNumber).Scan(&last); err != nil {
			return err
		}

		// Numbers must stay below the largest int64, even in a forged file.
		if last > math.MaxInt64/2 {
			return captures.Damaged("the highest number in the file is %d, so no numbers are left for additions", last)
		}
		n, err = c.Write(ctx, tx, func() int64 { last++; return last })
		return err
	})
	return n, err
}

// Recording reports whether a process is recording to the capture, also one that has only been opened for reading.
// It is false if that cannot be determined.
func (s *Store) Recording() bool {
	return s.writer != nil || errors.Is(filelock.CheckFree(s.Path+"-lock"), captures.ErrInUse)
}

// writeAsReader runs fn in a transaction on a new connection to a capture that is open for reading, provided
// that nobody is recording to the file. A recorder that starts meanwhile waits for SQLite's lock.
func (s *Store) writeAsReader(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if err := filelock.CheckFree(s.Path + "-lock"); err != nil {
		return err
	}
	return s.writeLocked(ctx, fn)
}

// writeLocked is like writeAsReader, for a caller that has locked the capture.
func (s *Store) writeLocked(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if err := database.CheckNotTruncated(s.Path); err != nil {
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
			// SQLite has rolled back already if the disk is full. Closing the connection does it otherwise.
			_ = tx.Rollback()
		}
	}
	return errors.Join(database.Explain(err), db.Close())
}

// Notes returns the notes of an exchange, or of all exchanges if the ID is 0, ordered by place.
//
// Errors: ErrDamaged.
func (s *Store) Notes(ctx context.Context, exchange int64) (list []captures.Note, err error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	err = s.runQuery(ctx, maxHeadValue, additions.Notes(exchange, func(n captures.Note) { list = append(list, n) }))
	return list, err
}

// Readings returns the stored type choices of a method, or of all methods if method is "". They are ordered by
// method, direction and path.
//
// Errors: ErrDamaged.
func (s *Store) Readings(ctx context.Context, method string) (list []captures.Reading, err error) {
	queryOf := additions.Readings
	if s.format < schema.WithSegments {
		queryOf = additions.ReadingsInMeta
	}
	err = s.runQuery(ctx, maxHeadValue, queryOf(method, func(r captures.Reading) { list = append(list, r) }))
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Definitions returns all definitions, ordered by kind and name. Those that are not active come without Data.
//
// Errors: ErrDamaged.
func (s *Store) Definitions(ctx context.Context) (list []captures.Definition, err error) {
	if s.format < schema.WithSegments {
		return nil, nil
	}
	err = s.runQuery(ctx, maxValue, additions.Definitions(s.unpacker, func(d captures.Definition) { list = append(list, d) }))
	if err != nil {
		return nil, err
	}
	return list, nil
}

// runQuery runs a query of package additions and calls its Row function for each row. limit is the largest size
// of a value in bytes.
func (s *Store) runQuery(ctx context.Context, limit int, q additions.Query) error {
	return s.queryLimited(ctx, limit, rowFunc(q), q.Text, q.Args...)
}

// rowFunc converts the Row function of a query of package additions to a function for scan.
func rowFunc(q additions.Query) func(c *rowValues) bool {
	return func(c *rowValues) bool {
		c.err = q.Row(c.values)
		return c.err == nil
	}
}

// additionsAfter reads, for each kind of addition, the next events with numbers above last, up to a limit.
func additionsAfter(ctx context.Context, db querier, last int64) (pages []*eventPage, err error) {
	var p *eventPage
	for _, q := range additions.After(last, pageRows, func(n int64, a captures.Addition) {
		p.events = append(p.events, captures.Event{Kind: captures.Added, N: n, Addition: a})
		p.full, p.completeTo = len(p.events) == pageRows, n
	}) {
		p = &eventPage{}
		pages = append(pages, p)
		if err := scan(ctx, db, rowFunc(q), q.Text, q.Args...); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// An additionTarget is a Store as the control.Target to which package control passes the additions of other
// processes.
type additionTarget struct {
	// The embedded Store is the capture that receives the additions of other processes.
	*Store
}

// Add stores an addition; it implements control.Target.
func (c additionTarget) Add(ctx context.Context, a captures.Addition) (int64, error) {
	return c.storeAddition(ctx, a)
}
