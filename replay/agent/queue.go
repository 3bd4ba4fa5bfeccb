package agent

import (
	"context"
	"sync"

	"unwire/replay/agent/turn"
)

// The limits of the queue of events.
const (
	maxQueued      = 1024
	maxQueuedBytes = 4 << 20
)

// A queue buffers events until a caller takes them. Only one goroutine may put events; any may take
// them.
type queue struct {
	mu     sync.Mutex
	events []turn.Event
	bytes  int
	// end follows the last event: io.EOF or an error; nil while the turn goes on.
	end error
	// grown receives a value when an event may be available.
	grown chan struct{}
	// shrunk receives a value when put may continue.
	shrunk chan struct{}
}

func newQueue() *queue {
	return &queue{grown: make(chan struct{}, 1), shrunk: make(chan struct{}, 1)}
}

// put adds an event, and blocks while the queue is full. It returns false if stop was closed first.
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

// close ends the queue. Only the first error is kept; io.EOF is a normal end.
func (q *queue) close(err error) {
	q.mu.Lock()
	if q.end == nil {
		q.end = err
	}
	q.mu.Unlock()
	signal(q.grown)
}

// take removes and returns the oldest event; it waits if there is none.
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
