package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"unwire/captures"
)

// minBeat is the shortest time between two heartbeats that are sent.
const minBeat = 250 * time.Millisecond

// ErrUnasked is the cause where the server asks what the capture does not answer.
var ErrUnasked = errors.New("the capture has no answer")

// maxExtra bounds the answers that are sent again.
const maxExtra = 1000

// A Schedule sends frames up when their turn has come: those that answer the
// server when it has asked, heartbeats by the clock, the others in their order.
type Schedule struct {
	// Beats is how many heartbeats were sent.
	Beats int

	// Notes are what was concluded on the way.
	Notes []string

	talk    *Dialogue
	links   *Links
	wait    time.Duration
	quiet   time.Duration
	waiters []*waiter // of what is still to be sent, in the order of the capture
	all     map[int]*Upload
	claimed map[*heard]bool // live questions that were answered
	beat    *Upload         // what is sent by the clock; nil: nothing
	every   time.Duration
	next    time.Time
	extra   int
	tried   *waiter // what was sent last
	write   func(u *Upload, data []byte, changed bool) error
}

// An Upload is a frame to be sent in its turn.
type Upload struct {
	Turn
	Index   int    // of the caller's
	Seq     int    // its number in the capture
	Data    []byte // its message, before live identifiers are put in
	Changed bool   // it is not as it was captured
}

// NewSchedule schedules uploads. The write function sends a message, which
// differs from the upload's where changed. Wait and quiet are as in Dialogue.Wait.
func NewSchedule(l *Links, talk *Dialogue, uploads []Upload, wait, quiet time.Duration, write func(u *Upload, data []byte, changed bool) error) *Schedule {
	c := &Schedule{talk: talk, links: l, wait: wait, quiet: quiet, all: map[int]*Upload{}, claimed: map[*heard]bool{}, write: write}
	for i := range uploads {
		u := &uploads[i]
		c.all[u.Seq] = u
		if u.Beat && !u.Changed {
			if c.beat == nil {
				c.beat, c.every = u, l.beatsOf()
				c.next = time.Now().Add(c.every)
			}
			continue
		}
		c.waiters = append(c.waiters, newWaiter(l, u))
	}
	return c
}

// Run sends all frames; it returns when nothing is left to be said, or the
// answer has ended.
func (c *Schedule) Run(ctx context.Context, hold bool) error {
	for len(c.waiters) > 0 || hold {
		if over, err := c.await(ctx); over || err != nil {
			return err
		}
	}
	return nil
}

// await does the next thing that is due, and waits until one is. over says that
// nothing more is to be sent.
func (c *Schedule) await(ctx context.Context) (over bool, err error) {
	t := c.talk
	start := time.Now()
	for {
		t.mu.Lock()
		silent := time.Since(t.at)
		down, ended, wake, last := slices.Clip(t.down), t.ended, t.wake, t.alive
		t.mu.Unlock()
		if ended {
			return true, nil
		}
		if w := c.due(down, silent >= c.quiet); w != nil {
			return false, c.send(w)
		}
		if silent >= c.quiet {
			if sent, err := c.unasked(down); sent || err != nil {
				return false, err
			}
			if len(c.waiters) == 0 && messages(down) >= c.links.Messages() {
				return true, nil
			}
		}
		if c.beat != nil && !time.Now().Before(c.next) {
			c.next = time.Now().Add(c.every)
			c.Beats++
			if err := c.write(c.beat, c.beat.Data, false); err != nil {
				return false, err
			}
		}
		if last.Before(start) {
			last = start
		}
		left := time.Until(last.Add(c.wait))
		if left <= 0 {
			if len(c.waiters) == 0 {
				return true, nil
			}
			return false, fmt.Errorf("%w %s: %s", ErrSilent, c.wait, c.waiters[0].wants())
		}
		if silent < c.quiet {
			left = min(left, c.quiet-silent)
		}
		if c.beat != nil {
			left = min(left, time.Until(c.next))
		}
		timer := time.NewTimer(max(left, time.Millisecond))
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// due is the frame that may go now: the next one, or, when the server is quiet,
// the first of the others that answers what the server has asked already.
func (c *Schedule) due(down []*heard, quiet bool) *waiter {
	for i, w := range c.waiters {
		if i > 0 && !quiet {
			return nil
		}
		if i > 0 && !w.answers() {
			continue
		}
		if w.ready(down, quiet) {
			if i > 0 {
				c.note("frame up/%d was sent before up/%d: the server asks in another order", w.frame.Seq, c.waiters[0].frame.Seq)
			}
			c.waiters = slices.Delete(c.waiters, i, i+1)
			return w
		}
	}
	return nil
}

// send writes a frame with the live ids in it.
func (c *Schedule) send(w *waiter) error {
	c.tried = w
	for _, s := range w.bindings {
		if s.question != nil && s.result() != nil {
			c.claimed[s.result()] = true
		}
	}
	data, changed, err := w.fill(c.talk)
	if err != nil {
		return err
	}
	return c.write(w.frame, data, changed)
}

// unasked answers a live question that the capture does not have in this place:
// with what the captured client said to the same question. The server is quiet,
// and nothing else is due.
//
// Errors: ErrUnasked where the capture has no such question.
func (c *Schedule) unasked(down []*heard) (sent bool, err error) {
	l := c.links
	for _, h := range down {
		if c.claimed[h] || c.awaited(h) {
			continue
		}
		i := slices.IndexFunc(l.kinds, func(k *asking) bool { return h.shape.matches(k.shape) })
		if i < 0 {
			continue
		}
		var q *question
		for k := range l.questions {
			if l.fits(&l.questions[k], h) {
				q = &l.questions[k]
			}
		}
		if q == nil || c.extra >= maxExtra {
			return false, fmt.Errorf("%w: the server asks %s", ErrUnasked, l.asks(h, l.kinds[i]))
		}
		c.claimed[h] = true
		c.extra++
		c.note("the server asked %s once more: answered as %s/%d was", l.asks(h, q.kind), captures.Down, l.down[q.down].frame.Seq)
		for _, i := range q.answers {
			f := c.all[l.up[i].frame.Seq]
			if f == nil {
				continue // an edit has taken it out
			}
			w := newWaiter(l, f)
			for k, s := range w.bindings {
				if s.advance(down); f.Live[k].source.down == q.down {
					s.found = h
				}
			}
			if err := c.send(w); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

// Unsent is how many frames were not sent because the server never asked for
// them; the last one that was tried was not, if the server was gone. One that it
// had asked for, or that it ended without waiting for, is noted alone: which of
// the two is first is chance.
func (c *Schedule) Unsent(gone bool) (n int) {
	waiters := c.waiters
	if gone && c.tried != nil {
		waiters = append(slices.Clip(waiters), c.tried)
	}
	t := c.talk
	t.mu.Lock()
	down := slices.Clip(t.down)
	t.mu.Unlock()
	for _, w := range waiters {
		switch {
		case w.cause == nil && len(w.bindings) == 0:
		case w.ready(down, false):
			c.note("frame up/%d was not sent: the server ended without waiting for it", w.frame.Seq)
		default:
			n++
		}
	}
	return n
}

// awaited reports whether a frame that is still to be sent answers h.
func (c *Schedule) awaited(h *heard) bool {
	for _, w := range c.waiters {
		for _, s := range w.bindings {
			if s.question != nil && s.result() == h {
				return true
			}
		}
	}
	return false
}

// byDigest finds the value of which a live question has the SHA-256.
func (c *Dialogue) byDigest(question *heard, path string) (*heard, *leaf) {
	want := ""
	for k := range question.leaves {
		if v := &question.leaves[k]; v.path == path {
			want = string(v.data)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.down {
		for k := range h.leaves {
			v := &h.leaves[k]
			if v.number || len(v.data) == 0 {
				continue
			}
			sum := sha256.Sum256(v.data)
			if string(sum[:]) == want || hex.EncodeToString(sum[:]) == want {
				return h, v
			}
		}
	}
	return nil, nil
}

// note keeps something that we concluded on the way.
func (c *Schedule) note(format string, args ...any) {
	const most = 100
	if len(c.Notes) < most {
		c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
	}
}

// beatsOf is the time between the client's heartbeats: the median of the
// captured ones, or of one alone the time until it came.
func (l *Links) beatsOf() time.Duration {
	var gaps []time.Duration
	last := time.Duration(0)
	for i := range l.up {
		if h := &l.up[i]; h.heartbeat {
			gaps = append(gaps, h.frame.T-last)
			last = h.frame.T
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return max(gaps[len(gaps)/2], minBeat)
}
