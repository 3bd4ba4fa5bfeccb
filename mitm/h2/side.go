package h2

import (
	"net"
	"sync"
)

// A side is one end of a relayed connection. One pump writes the frames of the other side to it; frames of the
// relay itself are inserted between them.
type side struct {
	// conn is a buffered connection, or TLS on one.
	conn net.Conn
	// buffered is conn itself, or the connection below its TLS; it can combine writes.
	buffered *Conn

	// sender writes changed bodies to this side; nil if rules change nothing.
	sender *sender

	// mu guards the fields below, and is locked during each write.
	mu sync.Mutex

	// between is signalled when no frame is incomplete any more, or when the connection ends.
	between sync.Cond
	// ended means that the connection has ended and writeBetween returns at once.
	ended bool

	// midFrame means that the last write ended within a frame or a header block, where no other frame may be
	// inserted.
	midFrame bool
	// queued are encoded frames of the relay itself that are written when no frame is incomplete.
	queued []byte
}

// newSide returns the side for a connection that is a *Conn, or TLS on one.
func newSide(conn net.Conn) *side {
	e := &side{buffered: connBelow(conn), conn: conn}
	e.between.L = &e.mu
	return e
}

// write writes frames of the other side. midFrame means that p ends within a frame or a header block, where
// nothing may be inserted.
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
	if e.midFrame = midFrame; !midFrame {
		e.between.Broadcast()
	}
	if err != nil || midFrame || len(e.queued) == 0 {
		return err
	}
	_, err = e.conn.Write(e.queued)
	e.queued = nil
	return err
}

// writeBetween writes frames of the relay itself, after waiting until no other frame is incomplete.
func (e *side) writeBetween(frames []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.midFrame && !e.ended {
		e.between.Wait()
	}
	if e.ended {
		return net.ErrClosed
	}
	if len(frames) > defaultFrameSize {
		e.buffered.cork()
	}
	_, err := e.conn.Write(frames)
	if len(frames) > defaultFrameSize {
		if flushErr := e.buffered.uncork(); err == nil {
			err = flushErr
		}
	}
	return err
}

// stopWaiting makes writeBetween fail, because the connection has ended.
func (e *side) stopWaiting() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.between.Broadcast()
}

// inject writes frames of the relay itself as soon as no other frame is incomplete.
func (e *side) inject(frames []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.midFrame {
		e.queued = append(e.queued, frames...)
		return
	}
	// The reader of this side notices the error.
	_, _ = e.conn.Write(frames)
}
