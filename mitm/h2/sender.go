package h2

import (
	"encoding/binary"
	"slices"
	"sync"
)

const (
	// defaultWindow is the size of a flow control window until SETTINGS change it, in bytes.
	defaultWindow = 65535

	// maxOverdraft limits, in bytes, how much more is sent to a receiver for changed bodies than window updates were
	// withheld for (see sender.overdraft).
	maxOverdraft = 32 << 20

	// maxQueued is how many bytes of a changed body may wait for the receiver's window before its Write blocks.
	maxQueued = 256 << 10

	// maxBatch is how many bytes the sender writes at once.
	maxBatch = 64 << 10

	// settingInitialWindow is the identifier of SETTINGS_INITIAL_WINDOW_SIZE.
	settingInitialWindow = 0x4
)

// A sender writes to one side the frames that are not simply forwarded from the other side: changed
// bodies, and window updates that the relay itself grants. It exists if Config.Rewrites is set.
//
// The two sides see different lengths of a changed body, so their windows must be accounted separately.
// Every byte that arrives for such a body is granted back to its sender at once. Every byte that is
// sent for it consumes the receiver's connection window, of which the other side is unaware: the number
// of these bytes is the overdraft. It is repaid by withholding the receiver's window updates.
// Meanwhile, the other side may send more on unchanged streams than the receiver accepts; what exceeds
// the window waits in the queue of its stream.
//
// Shape: the window that the other side sees, plus what waits in queues, is window + overdraft.
type sender struct {
	// side is the connection to which the sender writes.
	side *side

	// mu guards the fields below.
	mu sync.Mutex
	// wake is signalled when there is something to send, when a queue has space, or when the sender is closed.
	wake sync.Cond

	// window is how many bytes of DATA the receiver accepts on the connection at present.
	window int64
	// initial is the receiver's initial window of a new stream, in bytes.
	initial int64

	// overdraft is the number of bytes sent for changed bodies for which the receiver's window updates were not
	// withheld from the other side yet.
	overdraft int64

	// queued is the number of body bytes of unchanged streams in queues.
	queued int64

	// queues are the frames that wait to be sent, by stream: those of streams that rules may change, and of streams
	// that wait for the window.
	queues map[uint32]*sendQueue
	// order are the streams of queues in the order in which they are served.
	order []uint32

	// control are encoded frames without flow control that are sent next.
	control []byte
	// granted are the window updates to be sent, in bytes by stream; 0 is the connection.
	granted map[uint32]int64

	// running means that the goroutine that writes was started.
	running bool
	// closed means that the connection has ended and nothing more is sent.
	closed bool
}

// A sendQueue holds the frames of one stream that were not sent yet.
type sendQueue struct {
	// changed means that the relay accounts for the stream's window itself; for unchanged streams,
	// whose frames only wait, the other side does.
	changed bool
	// window is how many bytes the receiver accepts on the stream at present, if changed is set.
	window int64

	// passing means that the DATA frames of a stream that rules may change are still forwarded as they come. Then the
	// queue only counts the window, and window updates are forwarded to the other side.
	passing bool

	// items are the frames and body bytes that wait, in the order in which they are sent.
	items []sendItem
	// size is the number of body bytes in items.
	size int
	// busy means that frames of the queue are being written.
	busy bool
	// interrupted means that awaitSpace returns false, because the exchange is being ended.
	interrupted bool
	// over means that the queue is removed once it is empty.
	over bool
}

// A sendItem is data of a body, or an encoded frame without flow control.
type sendItem struct {
	// data are body bytes, sent in DATA frames; unused if frame is set.
	data []byte
	// frame is an encoded frame that is sent as it is; nil for body bytes.
	frame []byte
	// end means that the last DATA frame has the END_STREAM flag.
	end bool
	// alone means that the frame is written separately, because some clients discard a response if its
	// end and a reset arrive in one TLS record.
	alone bool
	// sent, if set, is called after the item was written.
	sent func()
}

// newSender returns the sender for a side, with the default windows. Its goroutine starts when there is something to
// send.
func newSender(s *side) *sender {
	w := &sender{
		side: s, window: defaultWindow, initial: defaultWindow,
		queues: make(map[uint32]*sendQueue), granted: make(map[uint32]int64),
	}
	w.wake.L = &w.mu
	return w
}

// start starts the sender's goroutine unless it is running. The caller must hold w.mu.
func (w *sender) start() {
	if !w.running && !w.closed {
		w.running = true
		go w.run()
	}
	w.wake.Broadcast()
}

// close ends the sender's goroutine and makes all calls that wait return.
func (w *sender) close() {
	w.mu.Lock()
	w.closed = true
	w.wake.Broadcast()
	w.mu.Unlock()
	w.side.stopWaiting()
}

// setInitial processes the receiver's SETTINGS_INITIAL_WINDOW_SIZE of n bytes. It reports whether the windows of
// streams became smaller.
func (w *sender) setInitial(n int64) (shrank bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.queues {
		q.window += n - w.initial
	}
	shrank = n < w.initial
	w.initial = n
	w.wake.Broadcast()
	return shrank
}

// windowUpdate processes a window update from the receiver, and returns the part of it that is
// forwarded to the other side.
func (w *sender) windowUpdate(stream uint32, n int64) (forwarded int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake.Broadcast()
	if stream != 0 {
		q := w.queues[stream]
		if q == nil || !q.changed {
			return n
		}
		if q.window += n; q.passing {
			return n
		}
		return 0
	}
	w.window += n
	withheld := min(n, w.overdraft)
	w.overdraft -= withheld
	return n - withheld
}

// takeWindow uses n bytes of the windows for a DATA frame that is forwarded as it came. It returns false if the frame
// has to wait.
func (w *sender) takeWindow(stream uint32, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	if q != nil && !q.passing || int64(n) > w.window && w.overdraft > 0 {
		return false
	}
	w.window -= int64(n)
	if q != nil {
		q.window -= int64(n)
	}
	return true
}

// returnWindow gives back n bytes that were taken by takeWindow and are not forwarded.
func (w *sender) returnWindow(stream uint32, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.window += int64(n)
	if q := w.queues[stream]; q != nil {
		q.window += int64(n)
	}
	w.wake.Broadcast()
}

// openQueue makes q the queue for a stream whose body may be changed.
func (w *sender) openQueue(stream uint32, q *sendQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q.changed, q.passing, q.window = true, true, w.initial
	w.queues[stream] = q
}

// stopPassing ends the time in which a stream's DATA frames are forwarded as they come: from now on they are sent
// from the queue, and the receiver's window updates for the stream are no longer forwarded. missing is how many bytes
// the other side must be granted instead, so that it has the window of a new stream.
func (w *sender) stopPassing(stream uint32) (missing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	if q == nil || !q.passing {
		return 0
	}
	q.passing = false
	w.order = append(w.order, stream)
	return int(max(0, max(w.initial, defaultWindow)-q.window))
}

// canWithhold reports whether bytes may be withheld without blocking the other side: whether its windows still allow
// a frame of the default size although held bytes of the stream, and heldByAll bytes of all streams, are not
// forwarded.
func (w *sender) canWithhold(stream uint32, held, heldByAll int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	return q != nil && q.passing && q.window-int64(held) >= defaultFrameSize && w.canSend(heldByAll)
}

// leavesWindow reports whether the connection's window still allows the other side to send a frame of the default
// size although heldByAll bytes are withheld.
func (w *sender) leavesWindow(heldByAll int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.canSend(heldByAll)
}

// canSend reports whether the connection's window still allows the other side to send a frame of the default size
// although heldByAll bytes are withheld. The caller has locked w.mu.
func (w *sender) canSend(heldByAll int) bool {
	return w.window+w.overdraft-w.queued-int64(heldByAll) >= defaultFrameSize
}

// isWaiting reports whether frames of an unchanged stream wait in a queue.
func (w *sender) isWaiting(stream uint32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	return q != nil && !q.changed
}

// enqueueUnchanged appends to the queue of an unchanged stream, which exists while something waits in it.
func (w *sender) enqueueUnchanged(stream uint32, item sendItem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	if q == nil {
		q = &sendQueue{over: true}
		w.queues[stream] = q
		w.order = append(w.order, stream)
	}
	q.items = append(q.items, item)
	q.size += len(item.data)
	w.queued += int64(len(item.data))
	w.start()
}

// enqueue appends to the queue of a changed stream. It reports whether the stream still exists.
func (w *sender) enqueue(stream uint32, item sendItem) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	if q == nil || w.closed {
		return false
	}
	q.items = append(q.items, item)
	q.size += len(item.data)
	w.start()
	return true
}

// awaitSpace waits until less than maxQueued bytes are in the queue of a changed stream. It returns false if the
// stream has ended.
func (w *sender) awaitSpace(stream uint32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		q := w.queues[stream]
		switch {
		case q == nil || w.closed || q.interrupted:
			return false
		case q.size < maxQueued:
			return true
		}
		w.wake.Wait()
	}
}

// endQueue removes the queue of a stream once all frames in it were sent.
func (w *sender) endQueue(stream uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	switch {
	case q == nil:
	case q.passing:
		delete(w.queues, stream)
	default:
		q.over = true
		w.start()
	}
}

// interrupt makes awaitSpace return false for a stream.
func (w *sender) interrupt(stream uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[stream]; q != nil {
		q.interrupted = true
	}
	w.wake.Broadcast()
}

// dropQueue removes the queue of a stream and discards its frames. It returns how many bytes of an unchanged body it
// discarded, which the receiver will never grant again.
func (w *sender) dropQueue(stream uint32) (discarded int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[stream]
	if q == nil {
		return 0
	}
	if !q.changed {
		discarded = q.size
		w.queued -= int64(discarded)
	}
	w.remove(stream)
	delete(w.granted, stream)
	w.wake.Broadcast()
	return discarded
}

// remove removes a stream's queue. The caller must hold w.mu.
func (w *sender) remove(stream uint32) {
	delete(w.queues, stream)
	if i := slices.Index(w.order, stream); i >= 0 {
		w.order = slices.Delete(w.order, i, i+1)
	}
}

// grant sends window updates to this side: connection bytes for the connection and, unless stream is 0, forStream
// bytes for the stream.
func (w *sender) grant(stream uint32, connection, forStream int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if connection > 0 {
		w.granted[0] += int64(connection)
	}
	if stream != 0 && forStream > 0 {
		w.granted[stream] += int64(forStream)
	}
	w.start()
}

// sendControl writes frames that are not subject to flow control.
func (w *sender) sendControl(frames []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.control = append(w.control, frames...)
	w.start()
}

// run writes queued frames until the connection ends.
func (w *sender) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		batch, sent, served := w.collect()
		if len(batch) == 0 && len(sent) == 0 && len(served) == 0 {
			if w.closed {
				return
			}
			w.wake.Wait()
			continue
		}
		w.mu.Unlock()
		if len(batch) > 0 {
			// The reader of this side notices the error.
			_ = w.side.writeBetween(batch)
		}
		for _, f := range sent {
			f()
		}
		w.mu.Lock()
		for _, q := range served {
			q.busy = false
		}
		w.wake.Broadcast()
	}
}

// collect returns the encoded frames that can be sent now, the functions to call after they were written, and the
// queues they come from. The caller has locked w.mu.
func (w *sender) collect() (batch []byte, sent []func(), served []*sendQueue) {
	if w.closed {
		return nil, nil, nil
	}
	batch, w.control = w.control, nil
	for stream, n := range w.granted {
		for ; n > 0; n -= maxStreamID {
			batch = appendFrame(batch, frameWindowUpdate, 0, stream, binary.BigEndian.AppendUint32(nil, uint32(min(n, maxStreamID))))
		}
		delete(w.granted, stream)
	}
	for _, stream := range slices.Clone(w.order) {
		q := w.queues[stream]
		before, calls := len(batch), len(sent)
		batch, sent = w.collectQueue(stream, q, batch, sent)
		switch {
		case len(batch) > before || len(sent) > calls:
			// The queue stays until its frames were written, so that later frames of the stream wait for them.
			q.busy = true
			served = append(served, q)
			w.order = append(slices.DeleteFunc(w.order, func(s uint32) bool { return s == stream }), stream)
		case len(q.items) == 0 && q.over && !q.busy:
			w.remove(stream)
		}
		if len(batch) >= maxBatch {
			break
		}
	}
	return batch, sent, served
}

// collectQueue appends to batch the frames of a stream that the windows allow to send now, and to sent the functions
// to call after they were written.
func (w *sender) collectQueue(stream uint32, q *sendQueue, batch []byte, sent []func()) ([]byte, []func()) {
	// Take as many frames as fit into one write and into the windows of stream and connection.
	for len(q.items) > 0 && len(batch) < maxBatch {
		item := &q.items[0]
		if item.alone && len(batch) > 0 {
			return batch, sent
		}
		if item.frame != nil {
			batch = append(batch, item.frame...)
		} else {
			// For a changed body, the connection's window also limits how much may be sent on credit
			// (the overdraft), since the other side does not know of these bytes.
			n := min(len(item.data), defaultFrameSize)
			if n > 0 {
				n = int(min(int64(n), w.window))
				if q.changed {
					n = int(min(int64(n), q.window, maxOverdraft-w.overdraft))
				}
				if n <= 0 {
					return batch, sent
				}
			}

			// END_STREAM belongs to the last frame of an item, even if that is empty.
			var flags uint8
			if item.end && n == len(item.data) {
				flags = flagEndStream
			}
			if n > 0 || item.end {
				batch = appendFrame(batch, frameData, flags, stream, item.data[:n])
			}
			w.window -= int64(n)
			if q.changed {
				q.window -= int64(n)
				w.overdraft += int64(n)
			} else {
				w.queued -= int64(n)
			}
			q.size -= n
			if item.data = item.data[n:]; len(item.data) > 0 {
				continue
			}
		}
		if item.sent != nil {
			sent = append(sent, item.sent)
		}
		q.items = q.items[1:]
	}
	return batch, sent
}
