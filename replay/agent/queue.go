package agent

import (
	"context"
	"sync"

	"unwire/replay/agent/turn"
)

// Limits of events that nobody has taken.
const (
	maxQueued      = 1024
	maxQueuedBytes = 4 << 20
)

// A queue holds events until they are taken. One goroutine puts, any may take.
type queue struct {
	mu     sync.Mutex
	events []turn.Event
	bytes  int
	end    error         // what follows the events; nil while there may be more
	grown  chan struct{} // has a value if there may be something to take
	shrunk chan struct{} // has a value if there may be room
}

func newQueue() *queue {
	return &queue{grown: make(chan struct{}, 1), shrunk: make(chan struct{}, 1)}
}

// put adds an event, and waits while the queue is full. It reports false if stop was
// closed first.
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

// close ends the queue. The first error counts; io.EOF is a good end.
func (q *queue) close(err error) {
	q.mu.Lock()
	if q.end == nil {
		q.end = err
	}
	q.mu.Unlock()
	signal(q.grown)
}

// take removes the oldest event, and waits for one.
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
			if more { // for another one that waits
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

// sizeOf is about what an event takes, in bytes.
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
