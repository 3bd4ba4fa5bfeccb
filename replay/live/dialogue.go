package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"unwire/captures"
	"unwire/decode"
)

// A Dialogue is what the live server has said so far, for the frames up
// that answer it.
type Dialogue struct {
	mu    sync.Mutex
	down  []*heard  // messages, heartbeats left out
	at    time.Time // of the last one
	alive time.Time // when anything came, a heartbeat too
	ended bool      // the response is over
	wake  chan struct{}
}

// NewDialogue begins a dialogue now.
func NewDialogue() *Dialogue {
	now := time.Now()
	return &Dialogue{at: now, alive: now, wake: make(chan struct{})}
}

// Hear takes the next frames from the server.
func (c *Dialogue) Hear(l *Links, frames []decode.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if !IsMessage(f) {
			continue
		}
		c.alive = time.Now()
		h := &heard{frame: f, leaves: leavesOf(f, l.types[f.Dir])}
		h.shape = shapeOf(h.leaves)
		if h.heartbeat = l.isHeartbeat(f, h.leaves, l.times[string(f.Data)]); h.heartbeat {
			continue
		}
		c.down = append(c.down, h)
		c.at = time.Now()
	}
	c.signal()
}

// Head takes the headers of the answer.
func (c *Dialogue) Head(headers captures.Headers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := hearHeaders(headers); h != nil {
		c.down = append(c.down, h)
		c.signal()
	}
}

// messages counts the frames among what was heard.
func messages(down []*heard) int {
	n := len(down)
	for _, h := range down {
		if h.shape.isAside() {
			n--
		}
	}
	return n
}

// End says that nothing more will come.
func (c *Dialogue) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.signal()
}

// signal wakes who waits. The lock is held.
func (c *Dialogue) signal() {
	close(c.wake)
	c.wake = make(chan struct{})
}

// ErrSilent is the cause where the server did not send what a frame answers.
var ErrSilent = errors.New("after")

// Wait blocks until as many messages came as count, and the server is quiet. It
// gives up when the server has said nothing for as long as limit, or over, when
// the answer has ended.
func (c *Dialogue) Wait(ctx context.Context, limit, quiet time.Duration, count int) (ready, over bool) {
	start := time.Now()
	for {
		c.mu.Lock()
		silent := time.Since(c.at)
		ok, ended, wake := silent >= quiet && messages(c.down) >= count, c.ended, c.wake
		last := c.at
		c.mu.Unlock()
		if ok {
			return true, false
		}
		if ended {
			return false, true
		}
		if last.Before(start) {
			last = start
		}
		left := time.Until(last.Add(limit))
		if left <= 0 {
			return false, false
		}
		if silent < quiet {
			left = min(left, quiet-silent)
		}
		timer := time.NewTimer(left)
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, false
		}
		timer.Stop()
	}
}

// IsOver reports whether the response is.
func (c *Dialogue) IsOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}
