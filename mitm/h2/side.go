package h2

import (
	"net"
	"sync"
)

// An h2End is one side of a relayed connection. What the other side says is
// written to it by one pump; frames of the proxy's own come between.
type h2End struct {
	wire *Conn
	conn net.Conn // wire, or the TLS on it

	mu     sync.Mutex
	inside bool   // a frame or a header block is written in part
	own    []byte // frames that wait for its end
}

// write writes what the other side said. Inside says that it ends within a
// frame or a header block, where nothing may come between.
func (e *h2End) write(p []byte, inside bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(p) > defaultFrameSize {
		e.wire.cork()
	}
	_, err := e.conn.Write(p)
	if len(p) > defaultFrameSize {
		if flushErr := e.wire.uncork(); err == nil {
			err = flushErr
		}
	}
	if e.inside = inside; err != nil || inside || len(e.own) == 0 {
		return err
	}
	_, err = e.conn.Write(e.own)
	e.own = nil
	return err
}

// inject writes frames of the proxy's own, as soon as they may be.
func (e *h2End) inject(frames []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inside {
		e.own = append(e.own, frames...)
		return
	}
	_, _ = e.conn.Write(frames) // who reads from it notices
}
