package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"unwire/captures"
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

// An op is one thing to be written, in the order of the queue.
type op struct {
	chunk *captures.Chunk        // a chunk, which has an Opcode
	isMsg bool                   // if it is of a WebSocket, or
	ex    *captures.Exchange     // the state of an exchange with
	kind  captures.EventKind     // what happened to it, or
	rel   *captures.Relation     // a relation, or
	run   func(tx *sql.Tx) error // anything else, whose
	done  chan<- error           // result somebody waits for
	cost  int64
	at    time.Time
}

// The writer commits what is queued, in order, on a goroutine of its own.
// Whatever has gathered while it wrote makes the next transaction.
type writer struct {
	path         string
	file         os.FileInfo // of path when it was opened
	failed       func(error)
	db           *sql.DB
	limit        int64 // bytes
	beforeCommit func()
	rows         *rows.Writer
	n            int64         // last number drawn, see formatOne
	lastID       int64         // last exchange when the file was opened
	wake         chan struct{} // capacity 1: something changed for the goroutine
	stopped      chan struct{}

	mu      sync.Mutex
	space   *sync.Cond // signalled when queued shrinks or all ends
	ops     []op
	queued  int64     // bytes queued or being written
	oldest  time.Time // of these; zero if there are none
	waiting bool      // somebody waits for the queue: do not linger
	closing bool
	err     error
}

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
	if w.rows, err = rows.NewWriter(db); err != nil {
		return nil, err
	}
	go w.loop()
	return w, nil
}

// put queues o; it blocks while the queue is full, by bytes or by age, but not
// while it is empty, so that an operation of any size gets through.
func (w *writer) put(o op) error {
	o.cost += opOverhead
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && !w.closing && w.full(o.cost) {
		w.poke()
		w.space.Wait()
	}
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return captures.ErrClosed
	}
	o.at = time.Now()
	if w.oldest.IsZero() {
		w.oldest = o.at
	}
	w.ops = append(w.ops, o)
	w.queued += o.cost
	if len(w.ops) == 1 || w.urgent() {
		w.poke()
	}
	return nil
}

// full reports whether an operation must wait. It is called with mu held.
func (w *writer) full(cost int64) bool {
	return w.queued > 0 && (w.queued+cost > w.limit || time.Since(w.oldest) > maxLag)
}

// urgent reports whether the queue should be written without lingering.
// It is called with mu held.
func (w *writer) urgent() bool {
	return w.waiting || w.closing || w.queued >= min(w.limit/2, 1<<20)
}

func (w *writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// do runs fn in the writer's transaction and returns its error, which undoes
// what fn did and nothing else.
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
	return w.do(ctx, func(*sql.Tx) error { return nil })
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
	if w.err == nil {
		// Another process that is reading keeps the log alive; the file
		// is complete with it, so that is no failure.
		_, _ = w.db.Exec("PRAGMA busy_timeout=200; PRAGMA wal_checkpoint(TRUNCATE)")
		_, _ = w.db.Exec("PRAGMA journal_mode=DELETE")
	}
	return errors.Join(w.err, w.db.Close())
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
			err := w.commit(batch)
			first := w.finishBatch(cost, batch, err)
			if first && w.failed != nil {
				w.failed(pathError(w.path, err))
			}
		}
		if w.over() {
			return
		}
	}
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

// nextBatch removes the next transaction's operations from the queue. Their bytes
// stay counted until they are written.
func (w *writer) nextBatch() (batch []op, cost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < len(w.ops) && (n == 0 || cost < maxBatchBytes) {
		cost += w.ops[n].cost
		n++
	}
	batch, w.ops = w.ops[:n:n], w.ops[n:]
	if len(w.ops) == 0 {
		w.ops, w.waiting = nil, false
	}
	return batch, cost
}

// finishBatch accounts for a batch that was written, or gives up recording: a
// capture with a hole in its middle would be worse than one that ends. It
// reports whether it gave up just now.
func (w *writer) finishBatch(cost int64, batch []op, err error) (gaveUp bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queued -= cost
	w.oldest = time.Time{}
	if len(w.ops) > 0 {
		w.oldest = w.ops[0].at
	}
	if err != nil {
		gaveUp = w.err == nil
		w.err = err
		for _, o := range append(batch, w.ops...) {
			if o.done != nil {
				o.done <- err
			}
		}
		w.ops, w.queued = nil, 0
	}
	w.space.Broadcast()
	return gaveUp
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

// commit writes one batch in one transaction.
func (w *writer) commit(batch []op) error {
	if w.beforeCommit != nil {
		w.beforeCommit()
	}
	if err := w.present(); err != nil {
		return err
	}
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	failed := make(map[chan<- error]error)
	last := lastStates(batch)
	for _, o := range batch {
		switch {
		case o.run != nil:
			if err = w.rows.Flush(tx); err == nil {
				err = w.attempt(tx, o, failed)
			}
		case o.ex != nil:
			err = w.writeExchange(tx, o, last[o.ex.ID])
		case o.rel != nil:
			w.n++
			err = w.rows.Relation(tx, w.n, o.rel)
		default:
			w.n++
			err = w.rows.Chunk(tx, w.n, o.chunk, o.isMsg)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := w.rows.Flush(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, o := range batch {
		if o.done != nil {
			o.done <- failed[o.done]
		}
	}
	return nil
}

// attempt runs an operation whose failure concerns only who asked for it.
func (w *writer) attempt(tx *sql.Tx, o op, failed map[chan<- error]error) error {
	if _, err := tx.Exec("SAVEPOINT attempt"); err != nil {
		return err
	}
	if err := o.run(tx); err != nil {
		failed[o.done] = err
		if _, err := tx.Exec("ROLLBACK TO attempt"); err != nil {
			return err
		}
	}
	_, err := tx.Exec("RELEASE attempt")
	return err
}

// A lastState is the last state of an exchange in a batch. Nobody sees a transaction by
// halves, so the states before it need not be written.
type lastState struct {
	ex      *captures.Exchange
	written bool
}

func lastStates(batch []op) map[int64]*lastState {
	last := make(map[int64]*lastState)
	for _, o := range batch {
		switch {
		case o.ex == nil:
		case last[o.ex.ID] == nil:
			last[o.ex.ID] = &lastState{ex: o.ex}
		default:
			last[o.ex.ID].ex = o.ex
		}
	}
	return last
}

// writeExchange notes what happened to an exchange under the next number, and
// writes its state, the first time in a batch that it comes up. What is followed by
// something else in the batch need not be told.
func (w *writer) writeExchange(tx *sql.Tx, o op, last *lastState) error {
	if o.kind == captures.Changed && last.ex != o.ex {
		return nil
	}
	w.n++
	if !last.written {
		last.written = true
		if err := w.rows.Exchange(tx, last.ex, o.kind == captures.Began); err != nil {
			return err
		}
	}
	return w.rows.Event(tx, w.n, o.ex.ID, o.kind)
}
