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
	// commitDelay is how long the writer waits for more operations before it commits. In a stream whose sides
	// alternate, a commit for each frame would cost more than the frame.
	commitDelay = 10 * time.Millisecond

	// maxQueueAge is the age of the oldest queued operation above which recordings block. It bounds what is lost
	// if the recorder is killed to less than a second.
	maxQueueAge = 500 * time.Millisecond

	// maxBatchBytes is the approximate size of a transaction, in bytes.
	maxBatchBytes = 4 << 20
	// opOverhead is the memory that a queued operation takes in addition to its data, in bytes.
	opOverhead = 200
)

// A writer commits queued operations in order, on a separate goroutine. All operations that arrive during a
// commit form the next transaction (group commit).
type writer struct {
	// path is the path of the capture file.
	path string
	// file identifies the file that was opened, to detect that it was replaced.
	file os.FileInfo
	// onFailure, if set, is called once when recording must stop, because the disk is full or the file was
	// deleted.
	onFailure func(error)
	// onEnded, if set, is called with the IDs of exchanges whose end was just committed.
	onEnded func(ids []int64)
	// db runs operations that consist of a function, such as storing a user's note.
	db *sql.DB
	// limit is the maximum memory of the queue in bytes, above which recordings block.
	limit int64

	// beforeCommit, if set, is called before each commit, to simulate a slow disk in tests.
	beforeCommit func()
	// lastNumber is the number of the last row that was written.
	lastNumber int64
	// lastID is the ID of the last exchange when the file was opened.
	lastID int64
	// wake, of capacity 1, signals a change to the writer's goroutine.
	wake chan struct{}
	// stopped is closed when the writer's goroutine has ended.
	stopped chan struct{}

	// buffers recycles the memory of chunks.
	buffers buffers

	// conn is the connection on which recorded traffic is written, without database/sql.
	conn *engine.Conn

	// begin is the statement that begins a transaction on conn.
	begin *engine.Stmt
	// commit is the statement that commits a transaction on conn.
	commit *engine.Stmt
	// rows inserts the recorded data into the tables.
	rows *rows.Writer

	// mu guards the fields below, except memory that only the writer's goroutine uses.
	mu sync.Mutex
	// spaceFreed is signalled when queued decreases or the writer ends.
	spaceFreed *sync.Cond

	// ops are the queued operations, in order.
	ops []op
	// queued is the cost of the operations that are queued or being written, in bytes.
	queued int64
	// oldest is when the oldest queued operation was added; zero if the queue is empty.
	oldest time.Time

	// cuts are the ends of full batches in ops; each batch of operations becomes one transaction.
	cuts []cut
	// batch is the number of the last batch of queued operations.
	batch int64
	// batchCost is the memory of the operations in the last batch, in bytes.
	batchCost int64
	// batchBegan is when the first operation of the last batch was queued.
	batchBegan time.Time

	// spare is the memory of an earlier queue, for reuse.
	spare []op
	// states are unused state values, for reuse.
	states []*state

	// flushRequested means that somebody waits for the queue to be written, so the writer must not delay.
	flushRequested bool

	// closing means that close was called.
	closing bool
	// err is the first error, after which nothing more is recorded.
	err error
}

// newWriter opens the database for writing. The caller starts the writer's loop on a goroutine.
func newWriter(path string, db *sql.DB, o Options, t testOptions) (*writer, error) {
	file, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, file: file, onFailure: o.Failed,
		db: db, limit: o.QueueBytes, beforeCommit: t.beforeCommit,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	w.spaceFreed = sync.NewCond(&w.mu)

	// Numbers continue after those in the file.
	const lastID = `SELECT coalesce((SELECT max(id) FROM exchanges), 0)`
	if err := db.QueryRow(lastID).Scan(&w.lastID); err != nil {
		return nil, err
	}
	if err := db.QueryRow(currentColumns.lastNumber).Scan(&w.lastNumber); err != nil {
		return nil, err
	}

	// A forged file could leave no numbers.
	if last := max(w.lastNumber, w.lastID); last > math.MaxInt64/2 {
		return nil, captures.Damaged("the highest number in the file is %d, so no numbers are left for additions", last)
	}
	if err := w.open(t); err != nil {
		return nil, err
	}
	return w, nil
}

// open opens the connection on which recorded traffic is written.
func (w *writer) open(t testOptions) (err error) {
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

// wakeUp signals the writer's goroutine. It never blocks.
func (w *writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// runInTransaction runs fn, which may be nil, in a transaction of its own after everything that was
// queued before is committed. If fn fails, its transaction is rolled back and its error returned.
func (w *writer) runInTransaction(ctx context.Context, fn func(tx *sql.Tx) error) error {
	done := make(chan error, 1)
	w.mu.Lock()
	w.flushRequested = true
	w.mu.Unlock()
	if err := w.enqueue(op{run: fn, done: done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush waits until all queued operations are committed.
func (w *writer) flush(ctx context.Context) error {
	return w.runInTransaction(ctx, nil)
}

// lastError returns the error that ended the recording, or nil.
func (w *writer) lastError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close commits the queue, merges the write-ahead log into the file, and closes the database.
func (w *writer) close() error {
	w.mu.Lock()
	w.closing = true
	w.spaceFreed.Broadcast()
	w.mu.Unlock()
	w.wakeUp()
	<-w.stopped
	err := w.conn.Close()
	if w.err == nil {
		// If another process is reading, the log stays. The file is complete together with it, so this is no
		// failure.
		_, _ = w.db.Exec("PRAGMA busy_timeout=200; PRAGMA wal_checkpoint(TRUNCATE)")
		_, _ = w.db.Exec("PRAGMA journal_mode=DELETE")
	}
	return errors.Join(w.err, err, w.db.Close())
}

// loop runs on the writer's goroutine and commits queued operations.
func (w *writer) loop() {
	defer close(w.stopped)
	timer := time.NewTimer(commitDelay)
	defer timer.Stop()
	for {

		// Wait for work, and then for commitDelay unless it is urgent.
		<-w.wake
		timer.Reset(commitDelay)
		for !w.shouldWrite() {
			select {
			case <-w.wake:
				continue
			case <-timer.C:
			}
			break
		}

		// Write all batches that are queued.
		for {
			batch, cost := w.nextBatch()
			if len(batch) == 0 {
				break
			}
			err := w.write(batch)
			// Who waits in flush for the batch, such as Close, may rely on these calls.
			if ended := w.endedIn(batch); err == nil && len(ended) > 0 {
				w.onEnded(ended)
			}
			first := w.finishBatch(cost, batch, err)
			if first && w.onFailure != nil {
				w.onFailure(pathError(w.path, err))
			}
		}
		if w.isDone() {
			return
		}
	}
}

// endedIn returns the IDs of exchanges that end in a batch, if Options.Ended is set.
func (w *writer) endedIn(batch []op) (ids []int64) {
	if w.onEnded == nil {
		return nil
	}
	for i := range batch {
		if o := &batch[i]; o.state != nil && o.kind == captures.Ended {
			ids = append(ids, o.state.ex.ID)
		}
	}
	return ids
}

// shouldWrite reports whether the queue should be written without delay.
func (w *writer) shouldWrite() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.urgent()
}

// isDone reports whether the writer is closing and has written everything.
func (w *writer) isDone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing && len(w.ops) == 0
}

// checkFile returns an error if path is not the file that was opened, because data written to a deleted file is
// lost.
func (w *writer) checkFile() error {
	now, err := os.Stat(w.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return captures.ErrGone
	case err == nil && !os.SameFile(now, w.file):
		return fmt.Errorf("%w: another file now has this name", captures.ErrGone)
	}
	return nil
}

// write commits one batch in one transaction, or in several if it contains operations with a function (op.run).
func (w *writer) write(batch []op) error {
	if w.beforeCommit != nil {
		w.beforeCommit()
	}
	if err := w.checkFile(); err != nil {
		return err
	}

	// Errors of functions concern only those who wait for them.
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
		if err := w.runOp(rest[0], failed); err != nil {
			return err
		}
		rest = rest[1:]
	}

	// Report to the waiting callers only after everything is committed.
	for _, o := range batch {
		if o.done != nil {
			o.done <- failed[o.done]
		}
	}
	return nil
}

// writeRows writes operations without functions (op.run) in one transaction.
func (w *writer) writeRows(ops []op) error {
	if len(ops) == 0 {
		return nil
	}
	if err := w.begin.Run(); err != nil {
		return err
	}
	for i := range ops {
		if err := w.writeRow(&ops[i]); err != nil {
			// Nothing more will be written: closing the connection rolls back.
			return err
		}
	}
	if err := w.rows.Flush(); err != nil {
		return err
	}
	return w.commit.Run()
}

// writeRow writes one queued operation to its table.
func (w *writer) writeRow(o *op) error {
	switch {
	case o.state != nil:
		return w.writeExchange(o)
	case o.rel != nil:
		w.lastNumber++
		return w.rows.Relation(w.lastNumber, o.rel)
	case o.edit != nil:
		w.lastNumber++
		return w.rows.Edit(w.lastNumber, o.edit)
	case o.head != nil:
		w.lastNumber++
		return w.rows.ForwardedHead(w.lastNumber, o.head)
	case o.chunk != nil:
		w.lastNumber++
		return w.rows.Chunk(w.lastNumber, o.chunk, o.isMsg)
	}
	// Only done is set: it is answered after the commit.
	return nil
}

// runOp runs one operation with a function. An error of the function is sent to the waiting caller, and does
// not end the recording. failed collects these errors.
func (w *writer) runOp(o op, failed map[chan<- error]error) error {
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

// writeExchange writes an event of an exchange, and the exchange's state if it is the first event in the batch.
// A Changed event is omitted if another event of the exchange follows in the same batch.
func (w *writer) writeExchange(o *op) error {
	s := o.state
	if o.kind == captures.Changed && o.nth < s.events {
		return nil
	}
	w.lastNumber++
	if !s.written {
		s.written = true
		if err := w.rows.Exchange(&s.ex, o.kind == captures.Began); err != nil {
			return err
		}
	}
	return w.rows.Event(w.lastNumber, s.ex.ID, o.kind)
}
