package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"unwire/captures"
	"unwire/captures/store/internal/engine"
	"unwire/captures/store/internal/rows"
)

const (
	// linger is how long the writer lets a commit fill up: a commit for
	// every frame of a lock-step stream would cost more than the frame.
	linger = 10 * time.Millisecond

	// maxLag is how old the oldest thing in the queue may become before
	// streams are slowed down, however little is queued: a recorder that is
	// killed must not take more than a second with it.
	maxLag = 500 * time.Millisecond

	maxBatchBytes = 4 << 20
	opOverhead    = 200 // bytes that an operation itself takes in the queue
)

// The writer commits what is queued, in order, on a goroutine of its own.
// Whatever has gathered while it wrote makes the next transaction.
type writer struct {
	path         string
	file         os.FileInfo // of path when it was opened
	failed       func(error)
	ended        func(ids []int64) // nil, or Options.Ended
	db           *sql.DB           // for what others add
	limit        int64             // bytes
	beforeCommit func()
	n            int64         // last number drawn, see formatOne
	lastID       int64         // last exchange when the file was opened
	wake         chan struct{} // capacity 1: something changed for the goroutine
	stopped      chan struct{}
	buffers      buffers

	// What is recorded is written on a connection of its own.
	conn          *engine.Conn
	begin, commit *engine.Stmt
	rows          *rows.Writer

	mu     sync.Mutex
	space  *sync.Cond // signalled when queued shrinks or all ends
	ops    []op
	queued int64     // bytes queued or being written
	oldest time.Time // of these; zero if there are none

	// ops are batches, all but the last of which end at cuts. Batch is the number of the last
	// one, and batchCost its bytes.
	cuts      []int
	batch     int64
	batchCost int64

	// spare and states are memory that is used again.
	spare  []op
	states []*state

	waiting bool // somebody waits for the queue: do not linger
	closing bool
	err     error
}

// newWriter opens a writer, whose loop the caller starts.
func newWriter(path string, db *sql.DB, o Options, t tuning) (*writer, error) {
	file, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, file: file, failed: o.Failed,
		db: db, limit: o.QueueBytes, beforeCommit: t.beforeCommit,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	w.space = sync.NewCond(&w.mu)
	const lastID = `SELECT coalesce((SELECT max(id) FROM exchanges), 0)`
	if err := db.QueryRow(lastID).Scan(&w.lastID); err != nil {
		return nil, err
	}
	if err := db.QueryRow(columnsNow.lastNumber).Scan(&w.n); err != nil {
		return nil, err
	}
	if last := max(w.n, w.lastID); last > math.MaxInt64/2 {
		return nil, captures.Damaged("the number %d leaves none for what is added", last)
	}
	if err := w.open(t); err != nil {
		return nil, err
	}
	return w, nil
}

// open opens the connection for what is recorded.
func (w *writer) open(t tuning) (err error) {
	if w.conn, err = engine.Open(w.path); err != nil {
		return err
	}
	setup := "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=67108864"
	if t.maxPages > 0 {
		setup += fmt.Sprintf("; PRAGMA max_page_count=%d", t.maxPages)
	}
	if err := w.conn.Exec(setup); err != nil {
		return errors.Join(err, w.conn.Close())
	}
	if w.begin, err = w.conn.Prepare("BEGIN IMMEDIATE"); err == nil {
		w.commit, err = w.conn.Prepare("COMMIT")
	}
	if err == nil {
		w.rows, err = rows.NewWriter(w.conn)
	}
	if err != nil {
		return errors.Join(err, w.conn.Close())
	}
	return nil
}

func (w *writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// do runs fn, if it is not nil, in a transaction of its own once everything that was queued
// before is committed, and returns its error, which undoes what fn did.
func (w *writer) do(ctx context.Context, fn func(tx *sql.Tx) error) error {
	done := make(chan error, 1)
	w.mu.Lock()
	w.waiting = true
	w.mu.Unlock()
	if err := w.put(op{run: fn, done: done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) flush(ctx context.Context) error {
	return w.do(ctx, nil)
}

func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close writes what is queued, folds the log into the file and closes it.
func (w *writer) close() error {
	w.mu.Lock()
	w.closing = true
	w.space.Broadcast()
	w.mu.Unlock()
	w.poke()
	<-w.stopped
	err := w.conn.Close()
	if w.err == nil {
		// Another process that is reading keeps the log alive; the file
		// is complete with it, so that is no failure.
		_, _ = w.db.Exec("PRAGMA busy_timeout=200; PRAGMA wal_checkpoint(TRUNCATE)")
		_, _ = w.db.Exec("PRAGMA journal_mode=DELETE")
	}
	return errors.Join(w.err, err, w.db.Close())
}

// loop is the writer's goroutine.
func (w *writer) loop() {
	defer close(w.stopped)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for {
		<-w.wake
		timer.Reset(linger)
		for !w.ready() {
			select {
			case <-w.wake:
				continue
			case <-timer.C:
			}
			break
		}
		for {
			batch, cost := w.nextBatch()
			if len(batch) == 0 {
				break
			}
			err := w.write(batch)
			ended := w.endedIn(batch)
			first := w.finishBatch(cost, batch, err)
			if first && w.failed != nil {
				w.failed(pathError(w.path, err))
			}
			if err == nil && len(ended) > 0 {
				w.ended(ended)
			}
		}
		if w.over() {
			return
		}
	}
}

// endedIn returns the exchanges that end in a batch, if somebody is to be told.
func (w *writer) endedIn(batch []op) (ids []int64) {
	if w.ended == nil {
		return nil
	}
	for i := range batch {
		if o := &batch[i]; o.state != nil && o.kind == captures.Ended {
			ids = append(ids, o.state.ex.ID)
		}
	}
	return ids
}

func (w *writer) ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.urgent()
}

func (w *writer) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing && len(w.ops) == 0
}

// present says what is wrong if the file is not the one that was opened: what
// is written to a file without a name is lost.
func (w *writer) present() error {
	now, err := os.Stat(w.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return captures.ErrGone
	case err == nil && !os.SameFile(now, w.file):
		return fmt.Errorf("%w: another file has its name", captures.ErrGone)
	}
	return nil
}

// write commits one batch, in one transaction unless there is something to run.
func (w *writer) write(batch []op) error {
	if w.beforeCommit != nil {
		w.beforeCommit()
	}
	if err := w.present(); err != nil {
		return err
	}
	failed := make(map[chan<- error]error)
	for rest := batch; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(o op) bool { return o.run != nil })
		if n < 0 {
			n = len(rest)
		}
		if err := w.writeRows(rest[:n]); err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		if err := w.attempt(rest[0], failed); err != nil {
			return err
		}
		rest = rest[1:]
	}
	for _, o := range batch {
		if o.done != nil {
			o.done <- failed[o.done]
		}
	}
	return nil
}

// writeRows writes operations that are rows, in one transaction.
func (w *writer) writeRows(ops []op) error {
	if len(ops) == 0 {
		return nil
	}
	if err := w.begin.Run(); err != nil {
		return err
	}
	for i := range ops {
		if err := w.writeRow(&ops[i]); err != nil {
			return err // nothing more is written: Close rolls back
		}
	}
	if err := w.rows.Flush(); err != nil {
		return err
	}
	return w.commit.Run()
}

func (w *writer) writeRow(o *op) error {
	switch {
	case o.state != nil:
		return w.writeExchange(o)
	case o.rel != nil:
		w.n++
		return w.rows.Relation(w.n, o.rel)
	case o.chunk != nil:
		w.n++
		return w.rows.Chunk(w.n, o.chunk, o.isMsg)
	}
	return nil // somebody waits for what was queued before
}

// attempt runs an operation whose failure concerns only who asked for it.
func (w *writer) attempt(o op, failed map[chan<- error]error) error {
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	if err := o.run(tx); err != nil {
		failed[o.done] = err
		return tx.Rollback()
	}
	return tx.Commit()
}

// writeExchange notes what happened to an exchange under the next number, and
// writes its state, the first time in a batch that it comes up. What is followed by
// something else in the batch need not be told.
func (w *writer) writeExchange(o *op) error {
	s := o.state
	if o.kind == captures.Changed && o.nth < s.events {
		return nil
	}
	w.n++
	if !s.written {
		s.written = true
		if err := w.rows.Exchange(&s.ex, o.kind == captures.Began); err != nil {
			return err
		}
	}
	return w.rows.Event(w.n, s.ex.ID, o.kind)
}
