package store

import (
	"database/sql"
	"time"

	"unwire/captures"
)

// An op is one thing to be written, in the order of the queue.
type op struct {
	chunk *captures.Chunk        // a chunk, which has an Opcode
	isMsg bool                   // if it is of a WebSocket, and is
	owned bool                   // the writer's to recycle; or
	state *state                 // an exchange, to which
	kind  captures.EventKind     // this happened, as the
	nth   int                    // event of the state; or
	rel   *captures.Relation     // a relation, or
	run   func(tx *sql.Tx) error // anything else, whose
	done  chan<- error           // result somebody waits for
	cost  int64
	at    time.Time
}

// A state is that of an exchange, after all that happened to it in one transaction: nobody
// sees a transaction by halves, so the states before it need not be written.
type state struct {
	ex      captures.Exchange
	events  int // that are queued
	written bool
}

// A stateRef is where an exchange finds its state that is queued last, in a batch.
type stateRef struct {
	state *state
	batch int64
}

// put queues o; it blocks while the queue is full, by bytes or by age, but not
// while it is empty, so that an operation of any size gets through.
func (w *writer) put(o op) error {
	o.cost += opOverhead
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.await(o.cost); err != nil {
		return err
	}
	w.add(o)
	return nil
}

// putState queues what happened to an exchange, with its state, by reference from ref. Cost
// is what the state has of memory that it did not have before.
func (w *writer) putState(ref *stateRef, ex *captures.Exchange, kind captures.EventKind, cost int64) error {
	cost += opOverhead
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.await(cost); err != nil {
		return err
	}
	if ref.state == nil || ref.batch != w.batch {
		ref.batch = w.batch
		if n := len(w.states); n > 0 {
			ref.state, w.states = w.states[n-1], w.states[:n-1]
		} else {
			ref.state = new(state)
		}
	}
	ref.state.ex = *ex // its header slices are replaced, never changed in place
	ref.state.events++
	w.add(op{state: ref.state, kind: kind, nth: ref.state.events, cost: cost})
	return nil
}

// await waits until there is room in the queue; mu is held.
func (w *writer) await(cost int64) error {
	for w.err == nil && !w.closing && w.full(cost) {
		w.poke()
		w.space.Wait()
	}
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return captures.ErrClosed
	}
	return nil
}

// add queues o; mu is held.
func (w *writer) add(o op) {
	o.at = time.Now()
	if w.oldest.IsZero() {
		w.oldest = o.at
	}
	w.ops = append(w.ops, o)
	w.queued += o.cost
	if w.batchCost += o.cost; w.batchCost >= maxBatchBytes {
		w.cuts = append(w.cuts, len(w.ops))
		w.batch++
		w.batchCost = 0
	}
	if len(w.ops) == 1 || w.urgent() {
		w.poke()
	}
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

// nextBatch removes the next transaction's operations from the queue. Their bytes
// stay counted until they are written.
func (w *writer) nextBatch() (batch []op, cost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.cuts) > 0 {
		n := w.cuts[0]
		batch, w.ops = w.ops[:n:n], w.ops[n:]
		w.cuts = w.cuts[1:]
		for i := range w.cuts {
			w.cuts[i] -= n
		}
	} else {
		batch, w.ops, w.spare = w.ops, w.spare, nil
		w.batch++
		w.batchCost = 0
	}
	if len(w.ops) == 0 {
		w.waiting = false
	}
	for i := range batch {
		cost += batch[i].cost
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
		w.cuts = nil
	} else {
		w.recycle(batch)
	}
	w.space.Broadcast()
	return gaveUp
}

// maxSpare is how many operations and states are kept to be used again.
const maxSpare = 8192

// recycle keeps the memory of a batch that was written; mu is held.
func (w *writer) recycle(batch []op) {
	for i := range batch {
		if batch[i].owned {
			w.buffers.recycle(batch[i].chunk)
		}
		s := batch[i].state
		if s == nil || s.events == 0 {
			continue
		}
		*s = state{}
		if len(w.states) < maxSpare {
			w.states = append(w.states, s)
		}
	}
	clear(batch)
	if w.spare == nil && cap(batch) <= maxSpare {
		w.spare = batch[:0]
	}
}
