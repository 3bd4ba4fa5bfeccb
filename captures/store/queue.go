package store

import (
	"database/sql"
	"time"

	"unwire/captures"
)

// An op is one queued write operation. Exactly one of chunk, state, rel, edit, head and run is set; or only
// done, if the operation just reports that everything before it was written.
type op struct {
	// chunk is a chunk to be written; nil if the operation is another one.
	chunk *captures.Chunk
	// isMsg means that the chunk is a WebSocket message, or a part of one, and has an Opcode.
	isMsg bool
	// owned means that nobody else uses the chunk, so the writer may recycle its memory.
	owned bool
	// state is the state of an exchange to be written with an event; nil if the operation is another one.
	state *state
	// kind is the kind of the event that is written with the state.
	kind captures.EventKind
	// nth is the number of the event among those of the same state, from 1.
	nth int
	// rel is a relation to be written; nil if the operation is another one.
	rel *captures.Relation
	// edit is a range of forwarded body bytes that differs from the received ones; nil if the operation is
	// another one.
	edit *captures.Edit
	// head is the head of a forwarded message that differs from the received one; nil if the operation is
	// another one.
	head *captures.ForwardedHead
	// run is any other change, which gets a transaction of its own; nil if the operation is another one.
	run func(tx *sql.Tx) error
	// done receives the error of run, or reports that everything before was written; nil if nobody waits.
	done chan<- error
	// cost is the memory of the queued operation in bytes.
	cost int64
}

// A cut is the end of a full batch in the queue; the next batch begins there.
type cut struct {
	// end is the index in the queue behind the batch's last operation.
	end int
	// began is when the batch's first operation was queued.
	began time.Time
}

// A state is the newest state of an exchange in a batch, i.e. the operations of one transaction. Earlier states
// within the transaction need not be written, because readers never see a part of a transaction.
type state struct {
	// ex is the newest state of the exchange in the batch.
	ex captures.Exchange
	// events is the number of queued events of the exchange in this batch.
	events int
	// written means that the exchange's row was already written in this transaction.
	written bool
}

// A stateRef is an exchange's reference to its state in a batch. It is out of date if batch is not the current
// batch.
type stateRef struct {
	// state is the state to which the exchange's latest queued operation refers; nil before the first.
	state *state
	// batch is the number of the batch of operations to which the state belongs.
	batch int64
}

// enqueue adds o to the queue. It blocks while the queue is full, by bytes or by age (back-pressure). An empty
// queue accepts an operation of any size.
func (w *writer) enqueue(o op) error {
	o.cost += opOverhead
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.waitForSpace(o.cost); err != nil {
		return err
	}
	w.appendOp(o)
	return nil
}

// enqueueState queues an event of an exchange with its current state ex. ref is the exchange's reference to its
// queued state. cost is the memory that was added to the exchange, in bytes.
func (w *writer) enqueueState(ref *stateRef, ex *captures.Exchange, kind captures.EventKind, cost int64) error {
	cost += opOverhead
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.waitForSpace(cost); err != nil {
		return err
	}

	// A state of an earlier batch may be being written. Begin a new one.
	if ref.state == nil || ref.batch != w.batch {
		ref.batch = w.batch
		if n := len(w.states); n > 0 {
			ref.state, w.states = w.states[n-1], w.states[:n-1]
		} else {
			ref.state = new(state)
		}
	}
	// The exchange's header slices are replaced, never changed in place.
	ref.state.ex = *ex
	ref.state.events++
	w.appendOp(op{state: ref.state, kind: kind, nth: ref.state.events, cost: cost})
	return nil
}

// waitForSpace blocks until the queue can accept an operation with this cost in bytes, or the writer ends. The
// caller has locked mu.
func (w *writer) waitForSpace(cost int64) error {
	for w.err == nil && !w.closing && w.full(cost) {
		w.wakeUp()
		w.spaceFreed.Wait()
	}
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return captures.ErrClosed
	}
	return nil
}

// appendOp appends o to the queue and begins a new batch if the current one is large enough. The caller has
// locked mu.
func (w *writer) appendOp(o op) {
	// Read the clock once per batch: it takes as long as the rest.
	if w.batchCost == 0 {
		w.batchBegan = time.Now()
		if w.oldest.IsZero() {
			w.oldest = w.batchBegan
		}
	}
	w.ops = append(w.ops, o)
	w.queued += o.cost
	if w.batchCost += o.cost; w.batchCost >= maxBatchBytes {
		w.cuts = append(w.cuts, cut{len(w.ops), w.batchBegan})
		w.batch++
		w.batchCost = 0
	}
	if len(w.ops) == 1 || w.urgent() {
		w.wakeUp()
	}
}

// full reports whether an operation with this cost in bytes must wait. The caller has locked mu.
func (w *writer) full(cost int64) bool {
	return w.queued > 0 && (w.queued+cost > w.limit || time.Since(w.oldest) > maxQueueAge)
}

// urgent reports whether the queue should be written without the usual delay of commitDelay. The caller has
// locked mu.
func (w *writer) urgent() bool {
	return w.flushRequested || w.closing || w.queued >= min(w.limit/2, 1<<20)
}

// nextBatch removes the operations of the next transaction from the queue and returns them with their cost in
// bytes, which counts toward the queue's limit until finishBatch.
func (w *writer) nextBatch() (batch []op, cost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// Keep the memory of an empty queue.
	if len(w.ops) == 0 {
		w.flushRequested = false
		return nil, 0
	}

	// cuts mark where full batches end.
	if len(w.cuts) > 0 {
		n := w.cuts[0].end
		batch, w.ops = w.ops[:n:n], w.ops[n:]
		w.cuts = w.cuts[1:]
		for i := range w.cuts {
			w.cuts[i].end -= n
		}
	} else {
		batch, w.ops, w.spare = w.ops, w.spare, nil
		w.batch++
		w.batchCost = 0
	}
	if len(w.ops) == 0 {
		w.flushRequested = false
	}
	for i := range batch {
		cost += batch[i].cost
	}
	return batch, cost
}

// finishBatch updates the queue after a batch was written. If writing failed, it ends the recording: a capture
// with a gap in the middle would be worse than one that ends early. gaveUp reports that this was the first
// failure.
func (w *writer) finishBatch(cost int64, batch []op, err error) (gaveUp bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queued -= cost
	switch {
	case len(w.cuts) > 0:
		w.oldest = w.cuts[0].began
	case len(w.ops) > 0:
		w.oldest = w.batchBegan
	default:
		w.oldest = time.Time{}
	}

	// Whoever waits for an operation gets the error.
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
	w.spaceFreed.Broadcast()
	return gaveUp
}

// maxSpare limits the number of operations and states whose memory is kept for reuse.
const maxSpare = 8192

// recycle keeps the memory of a batch that was written, for reuse. The caller has locked mu.
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

	// Drop references before the slice is reused.
	clear(batch)
	if w.spare == nil && cap(batch) <= maxSpare {
		w.spare = batch[:0]
	}
}
