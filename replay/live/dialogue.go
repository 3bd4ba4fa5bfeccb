package live

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"unwire/captures"
	"unwire/decode"
)

// A Dialogue collects the frames that the live server has sent so far. A client frame that responds to
// one of them is only sent once that one has arrived.
type Dialogue struct {
	// mu guards the fields below.
	mu sync.Mutex
	// down are the server's messages so far, without heartbeats. Headers and joined texts count as messages.
	down []*parsedMessage
	// run are the last messages, whose texts may be pieces of one text.
	run run
	// at is the time at which the last message arrived.
	at time.Time
	// alive is the time at which anything arrived, including heartbeats.
	alive time.Time
	// ended means that the live server's response has ended.
	ended bool
	// finished means that the peer sends nothing more, but still reads.
	finished bool

	// wake is closed and replaced whenever the state changes.
	wake chan struct{}
}

// NewDialogue returns a Dialogue without frames.
func NewDialogue() *Dialogue {
	now := time.Now()
	return &Dialogue{at: now, alive: now, wake: make(chan struct{})}
}

// AddFrames adds the next frames of the live server. l parses them.
func (c *Dialogue) AddFrames(l *Links, frames []decode.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if !IsMessage(f) {
			continue
		}
		c.alive = time.Now()
		h := l.parse(f)
		if h.heartbeat {
			continue
		}
		c.addJoined(c.run.add(&h))
		c.down = append(c.down, &h)
		c.at = time.Now()
	}
	c.signal()
}

// AddHeaders adds the headers of the live response.
func (c *Dialogue) AddHeaders(headers captures.Headers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := parseHeaders(headers); h != nil {
		c.down = append(c.down, h)
		c.signal()
	}
}

// addJoined adds a message with joined texts, if there is one. The caller must hold the lock.
func (c *Dialogue) addJoined(h *parsedMessage) {
	if h != nil {
		c.down = append(c.down, h)
	}
}

// join ends the run of messages whose texts may be pieces of one text, because the client sends something.
func (c *Dialogue) join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addJoined(c.run.end(true))
}

// messages returns the messages that have arrived so far, possibly including headers and joined texts.
func (c *Dialogue) messages() []*parsedMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.down)
}

// messages returns the number of messages in down, not counting headers and joined texts.
func messages(down []*parsedMessage) int {
	n := len(down)
	for _, h := range down {
		if !h.shape.IsFrame() {
			n--
		}
	}
	return n
}

// haveEnded reports whether the live server has sent what the captured server sent: as many messages, or a last message
// that corresponds to the last captured one. The numbers differ if a text comes in other pieces than in the capture.
func (l *Links) haveEnded(down []*parsedMessage) bool {
	if messages(down) >= l.Messages() {
		return true
	}
	last, is := l.lastMessage(), lastMessage(down)
	if last == nil || is == nil || !is.shape.Matches(last.shape) {
		return false
	}
	// The same bytes, which the server has sent only once, at the end; or the same shape often enough.
	same, missing := 0, 0
	for i := range l.down {
		d := &l.down[i]
		if d.heartbeat || !d.shape.IsFrame() {
			continue
		}
		if bytes.Equal(d.frame.Data, is.frame.Data) {
			same++
		}
		if d.shape.Matches(last.shape) {
			missing++
		}
	}
	for _, h := range down {
		if h.shape.IsFrame() && h.shape.Matches(last.shape) {
			missing--
		}
	}
	return missing <= 0 || same == 1 && bytes.Equal(last.frame.Data, is.frame.Data)
}

// lastMessage returns the last message of the captured server, without heartbeats; nil if there is none.
func (l *Links) lastMessage() *parsedMessage {
	for i := len(l.down) - 1; i >= 0; i-- {
		if !l.down[i].heartbeat && l.down[i].shape.IsFrame() {
			return &l.down[i]
		}
	}
	return nil
}

// lastMessage returns the last of the live messages that is a frame; nil if there is none.
func lastMessage(down []*parsedMessage) *parsedMessage {
	for i := len(down) - 1; i >= 0; i-- {
		if down[i].shape.IsFrame() {
			return down[i]
		}
	}
	return nil
}

// End records that the live response has ended.
func (c *Dialogue) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.signal()
}

// Finish records that the peer sends nothing more but still reads. The remaining frames are then sent
// at once.
func (c *Dialogue) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = true
	c.signal()
}

// signal wakes the waiting goroutines. The caller must hold the lock.
func (c *Dialogue) signal() {
	close(c.wake)
	c.wake = make(chan struct{})
}

// ErrSilent reports that the server did not send, in time, the frame for which a frame of the client
// waits.
var ErrSilent = errors.New("after")

// Wait blocks until at least count messages have arrived and the server has been silent for quiet;
// ready is true then. Otherwise it returns when nothing has arrived for limit, when ctx ends, or, with
// over set, when the response has ended.
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

		// The limit starts when the wait starts, or with the last message.
		if last.Before(start) {
			last = start
		}
		left := time.Until(last.Add(limit))
		if left <= 0 {
			return false, false
		}

		// Wake up when the silence is long enough, or the limit is reached.
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

// IsOver reports whether the live response has ended.
func (c *Dialogue) IsOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}
