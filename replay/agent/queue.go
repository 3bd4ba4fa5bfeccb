package agent

import (
	"context"
	"sync"

	"unwire/replay/agent/turn"
)

// The limits of the queue of events: their number, and the bytes of their texts.
const (
	maxQueued      = 1024
	maxQueuedBytes = 4 << 20
)

// A queue buffers the events of a stream until the caller of Next removes them. Only one goroutine may
// add events; any may remove them.
type queue struct {
	// mu guards events, bytes and end.
	mu sync.Mutex

	// events are the buffered events, oldest first.
	events []turn.Event

	// bytes is the estimated size of the events.
	bytes int
	// end is returned after the last event: io.EOF or an error; nil while the turn goes on.
	end error
	// grown receives a value when an event may be available.
	grown chan struct{}
	// shrunk receives a value when put may continue.
	shrunk chan struct{}
}

// newQueue returns an empty queue.
func newQueue() *queue {
	return &queue{grown: make(chan struct{}, 1), shrunk: make(chan struct{}, 1)}
}

// put adds an event; it blocks while the queue is full. It returns false if stop was closed first.
func (q *queue) put(e turn.Event, stop <-chan struct{}) bool {
	size := sizeOf(e)
	for {
		q.mu.Lock()
		if len(q.events) == 0 || len(q.events) < maxQueued && q.bytes+size <= maxQueuedBytes {
			q.events = append(q.events, e)
			q.bytes += size
			q.mu.Unlock()
			signal(q.grown)
			return true
		}
		q.mu.Unlock()
		select {
		case <-q.shrunk:
		case <-stop:
			return false
		}
	}
}

// close ends the queue: after the remaining events, take returns err. io.EOF is a normal end. Only the
// first call has an effect.
func (q *queue) close(err error) {
	q.mu.Lock()
	if q.end == nil {
		q.end = err
	}
	q.mu.Unlock()
	signal(q.grown)
}

// take removes and returns the oldest event; it waits if there is none. After the last event it returns
// the error passed to close.
func (q *queue) take(ctx context.Context) (turn.Event, error) {
	for {
		q.mu.Lock()
		if len(q.events) > 0 {
			e := q.events[0]
			q.events[0] = nil
			q.events = q.events[1:]
			q.bytes -= sizeOf(e)
			more := len(q.events) > 0 || q.end != nil
			q.mu.Unlock()
			signal(q.shrunk)
			// another taker may be waiting
			if more {
				signal(q.grown)
			}
			return e, nil
		}
		end := q.end
		q.mu.Unlock()
		if end != nil {
			signal(q.grown)
			return nil, end
		}
		select {
		case <-q.grown:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// signal sends to a channel with a buffer of one, unless a signal is already pending.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sizeOf estimates the memory of an event in bytes.
func sizeOf(e turn.Event) int {
	switch e := e.(type) {
	case turn.Text:
		return len(e.Text)
	case turn.Thinking:
		return len(e.Text)
	case turn.Calling:
		return len(e.Call.Arguments)
	}
	return 0
}
