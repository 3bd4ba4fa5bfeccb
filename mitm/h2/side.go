package h2

import (
	"net"
	"sync"
)

// A side is one side of a relayed connection. One pump writes to it what the other
// side sent; frames of the relay's own come between.
type side struct {
	// conn is buffered, or the TLS on it.
	conn     net.Conn
	buffered *Conn

	mu sync.Mutex

	// midFrame says that a frame or a header block is written in part. queued are
	// the frames that wait for its end.
	midFrame bool
	queued   []byte
}

// write writes what the other side sent. midFrame says that p ends within a frame or
// a header block, where nothing may come between.
func (e *side) write(p []byte, midFrame bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(p) > defaultFrameSize {
		e.buffered.cork()
	}
	_, err := e.conn.Write(p)
	if len(p) > defaultFrameSize {
		if flushErr := e.buffered.uncork(); err == nil {
			err = flushErr
		}
	}
	if e.midFrame = midFrame; err != nil || midFrame || len(e.queued) == 0 {
		return err
	}
	_, err = e.conn.Write(e.queued)
	e.queued = nil
	return err
}

// inject writes frames of the relay's own, as soon as no other frame is written in
// part.
func (e *side) inject(frames []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.midFrame {
		e.queued = append(e.queued, frames...)
		return
	}
	_, _ = e.conn.Write(frames) // an error is seen by the reader of this side
}
