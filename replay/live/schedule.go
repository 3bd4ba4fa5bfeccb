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
	"unwire/decode/wire"
	"unwire/replay/live/values"
)

// minBeat is the shortest interval of heartbeats that are sent.
const minBeat = 250 * time.Millisecond

// ErrUnasked is wrapped if the server asks something that the capture does not answer.
var ErrUnasked = errors.New("the capture has no answer")

// maxExtra is the largest number of responses that are sent a second time.
const maxExtra = 1000

// A Schedule sends each client frame at the right time: responses after the server's question,
// heartbeats periodically, and all others in order.
type Schedule struct {
	// Beats is the number of heartbeats sent.
	Beats int

	// Notes are remarks for the user about the execution.
	Notes []string

	// Stale are the values that kept frames from being sent, if Run gave up.
	Stale []StaleValue

	// Lenient sends a frame in its captured place even if the peer's frames there differ from the captured ones, or
	// ask what the capture has no answer to. Set it before Run. By default, Run gives up.
	Lenient bool

	dialogue *Dialogue
	links    *Links
	wait     time.Duration
	quiet    time.Duration
	// waiters are the client frames not sent yet, in captured order.
	waiters []*waiter
	all     map[int]*Upload
	// claimed are the live questions that were answered.
	claimed map[*parsedMessage]bool
	beat    *Upload // what is sent by the clock; nil: nothing
	every   time.Duration
	next    time.Time
	extra   int
	tried   *waiter // what was sent last

	// gaveUp means that Run ended with an error other than the end of the server's response.
	gaveUp bool

	// checked is the number of server messages for which it was checked that the capture contains a
	// response.
	checked int

	write func(u *Upload, data []byte, changed bool) error
}

// An Upload is a client frame to be sent at its time.
type Upload struct {
	Turn
	// Index is the number of the frame in the capture.
	Index int
	Seq   int // its number in the capture
	// Data is the message before live identifiers are inserted.
	Data []byte
	// Changed means that the frame differs from the captured one.
	Changed bool
}

// NewSchedule returns a schedule of the uploads, which are sent as soon as the server messages they
// depend on have arrived. write sends a message; changed reports whether data differs from the captured
// message. wait and quiet are as in Dialogue.Wait.
func NewSchedule(l *Links, dialogue *Dialogue, uploads []Upload, wait, quiet time.Duration, write func(u *Upload, data []byte, changed bool) error) *Schedule {
	c := &Schedule{dialogue: dialogue, links: l, wait: wait, quiet: quiet, all: map[int]*Upload{}, claimed: map[*parsedMessage]bool{}, write: write}
	for i := range uploads {
		u := &uploads[i]
		c.all[u.Seq] = u
		if u.Changed {
			l.noteEdit(u)
		}
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

// Run sends all frames. It returns when nothing is left to send, or the response has ended.
func (c *Schedule) Run(ctx context.Context, hold bool) error {
	for _, w := range c.waiters {
		w.lenient = c.Lenient
	}
	for len(c.waiters) > 0 || hold {
		if over, err := c.await(ctx); over || err != nil {
			c.gaveUp = err != nil
			c.noteStale(err)
			return err
		}
	}
	return nil
}

// await waits for the next due action and performs it. over reports that nothing more has to be
// sent.
func (c *Schedule) await(ctx context.Context) (over bool, err error) {
	t := c.dialogue
	start := time.Now()
	for {
		t.mu.Lock()
		silent := time.Since(t.at)
		down, ended, wake, last := slices.Clip(t.down), t.ended, t.wake, t.alive
		finished := t.finished
		t.mu.Unlock()
		if ended {
			return true, nil
		}
		if finished {
			// A peer that sends nothing more is silent at once.
			silent = c.quiet
		}
		if w, err := c.nextDue(down, silent >= c.quiet); w != nil || err != nil {
			return false, c.sendNext(w, err)
		}

		// A silent server expects an answer, or has finished.
		if silent >= c.quiet {
			if acted, over, err := c.actInSilence(down, finished); acted {
				return over, err
			}
		}
		if c.beat != nil && !time.Now().Before(c.next) {
			c.next = time.Now().Add(c.every)
			c.Beats++
			if err := c.write(c.beat, c.beat.Data, false); err != nil {
				return false, err
			}
		}

		// The deadline starts when the wait starts, or with the server's last frame.
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

		// Wake up for the end of the silence, the next heartbeat, or the deadline.
		if silent < c.quiet {
			left = min(left, c.quiet-silent)
		}
		if c.beat != nil {
			left = min(left, time.Until(c.next))
		}
		if err := pause(ctx, wake, max(left, time.Millisecond)); err != nil {
			return false, err
		}
	}
}

// actInSilence does what is due when the peer is silent. acted means that await returns over and err.
func (c *Schedule) actInSilence(down []*parsedMessage, finished bool) (acted, over bool, err error) {
	if sent, err := c.answerUnasked(down); sent || err != nil {
		return true, false, err
	}
	switch {
	case len(c.waiters) == 0 && (finished || messages(down) >= c.links.Messages()):
		return true, true, nil
	case finished:
		// Nothing more comes that the next frame could wait for.
		return true, false, c.sendNext(c.first(), nil)
	}
	return false, false, nil
}

// pause waits until something came, or for a time.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// nextDue returns the client frame that is to be sent next. If the live server asks a question to which
// the capture has no response, nothing more is sent.
func (c *Schedule) nextDue(down []*parsedMessage, quiet bool) (*waiter, error) {
	if err := c.checkAsked(down, quiet); err != nil {
		return nil, err
	}
	return c.due(down, quiet), nil
}

// first removes and returns the next frame in captured order.
func (c *Schedule) first() *waiter {
	w := c.waiters[0]
	c.waiters = c.waiters[1:]
	return w
}

// sendNext sends what nextDue returned.
func (c *Schedule) sendNext(w *waiter, err error) error {
	if err != nil {
		return err
	}
	return c.send(w)
}

// due is the frame that may go now: the next one, or, when the server is quiet,
// the first of the others that answers what the server has asked already.
func (c *Schedule) due(down []*parsedMessage, quiet bool) *waiter {
	for i, w := range c.waiters {
		if i > 0 && !quiet {
			return nil
		}
		if i > 0 && !w.answers() {
			continue
		}
		if w.ready(down, quiet) {
			if i > 0 {
				r := c.links.roles
				c.note("frame %s/%d was sent before %s/%d: the %s asks its questions in another order", r.out, w.frame.Seq, r.out, c.waiters[0].frame.Seq, r.peer)
			}
			c.waiters = slices.Delete(c.waiters, i, i+1)
			return w
		}
	}
	return nil
}

// send sends a frame with captured identifiers replaced by live ones.
func (c *Schedule) send(w *waiter) error {
	c.tried = w
	for _, s := range w.bindings {
		if s.answers() && s.result() != nil {
			c.claimed[s.result()] = true
		}
	}
	data, changed, err := w.fill(c.dialogue)
	if err != nil {
		return err
	}
	return c.write(w.frame, data, changed)
}

// answerUnasked responds to a live question that does not occur at this point of the capture, with the
// captured response to the same question. It is called if the server is silent and no other frame is
// due.
//
// Errors: ErrUnasked if the capture has no such question.
func (c *Schedule) answerUnasked(down []*parsedMessage) (sent bool, err error) {
	l := c.links
	for _, h := range down {
		if c.claimed[h] || c.awaited(h) {
			continue
		}
		kind, q := l.liveQuestion(h)
		if kind == nil {
			continue
		}

		// The limit stops a server that asks the same question forever.
		if q == nil || c.extra >= maxExtra {
			if c.Lenient {
				continue
			}
			return false, fmt.Errorf("%w: the %s asks %s", ErrUnasked, l.roles.peer, l.describeLive(h, kind))
		}
		c.claimed[h] = true
		c.extra++
		c.note("the %s repeated the question %s: it got the same answer as %s/%d", l.roles.peer, l.describeLive(h, q.kind), l.roles.in, l.down[q.down].frame.Seq)
		for _, i := range q.answers {
			f := c.all[l.up[i].frame.Seq]
			if f == nil {
				// an edit deleted it
				continue
			}

			// The answer is sent again with the values of the new question.
			w := newWaiter(l, f)
			w.lenient = c.Lenient
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

// checkAsked reports a live question that no captured frame answers: what would be sent
// after it belongs to another conversation. The server is quiet.
//
// Errors: ErrUnasked.
func (c *Schedule) checkAsked(down []*parsedMessage, quiet bool) error {
	if !quiet || c.Lenient {
		return nil
	}
	for _, w := range c.waiters {
		w.ready(down, quiet) // so that what was mapped by hand is known
	}
	for ; c.checked < len(down); c.checked++ {
		h := down[c.checked]
		if c.claimed[h] || c.awaited(h) {
			continue
		}
		if kind, q := c.links.liveQuestion(h); kind != nil && q == nil {
			return fmt.Errorf("%w: the %s asks %s", ErrUnasked, c.links.roles.peer, c.links.describeLive(h, kind))
		}
	}
	return nil
}

// liveQuestion returns the type of a live question, and the last captured question that asks the same;
// nil if there is none.
func (l *Links) liveQuestion(h *parsedMessage) (kind *questionType, q *question) {
	i := slices.IndexFunc(l.kinds, func(k *questionType) bool { return h.shape.Matches(k.shape) })
	if i < 0 {
		return nil, nil
	}
	for k := range l.questions {
		if l.fits(&l.questions[k], h) {
			q = &l.questions[k]
		}
	}
	return l.kinds[i], q
}

// noteEdit records with which values an upload replaces captured ones.
func (l *Links) noteEdit(u *Upload) {
	for i := range l.up {
		if h := &l.up[i]; h.frame.Seq == u.Seq {
			f := *h.frame
			if f.Data = u.Data; f.Tree != nil {
				f.Tree = wire.Parse(u.Data, wire.Options{})
			}
			l.echo.add(h.leaves, values.Leaves(&f, l.types[captures.Up]))
		}
	}
}

// Unsent returns how many frames were not sent because the server never asked for them. gone means that
// the last frame was not delivered because the server had already closed. A frame that the server had
// asked for, or that raced with the end of the stream, is only noted.
func (c *Schedule) Unsent(gone bool) (n int) {
	waiters := c.waiters
	if gone && c.tried != nil {
		waiters = append(slices.Clip(waiters), c.tried)
	}
	t := c.dialogue
	t.mu.Lock()
	down := slices.Clip(t.down)
	t.mu.Unlock()
	for _, w := range waiters {
		switch {
		case w.cause == nil && len(w.bindings) == 0:
		case w.ready(down, false) && c.gaveUp && !gone:
			c.note("frame up/%d was not sent: the replay ended before its turn", w.frame.Seq)
		case w.ready(down, false):
			c.note("frame up/%d was not sent: the server ended without waiting for it", w.frame.Seq)
		default:
			n++
		}
	}
	return n
}

// awaited reports whether a client frame that was not sent yet responds to h.
func (c *Schedule) awaited(h *parsedMessage) bool {
	for _, w := range c.waiters {
		for _, s := range w.bindings {
			if s.answers() && s.result() == h {
				return true
			}
		}
	}
	return false
}

// byDigest finds the live value whose SHA-256 hash a live question contains.
func (c *Dialogue) byDigest(question *parsedMessage, path string) (*parsedMessage, *values.Leaf) {
	want := ""
	for k := range question.leaves {
		if v := &question.leaves[k]; v.Path == path {
			want = string(v.Data)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.down {
		for k := range h.leaves {
			v := &h.leaves[k]
			if v.Number || len(v.Data) == 0 {
				continue
			}
			sum := sha256.Sum256(v.Data)
			if string(sum[:]) == want || hex.EncodeToString(sum[:]) == want {
				return h, v
			}
		}
	}
	return nil, nil
}

// note adds a remark for the user.
func (c *Schedule) note(format string, args ...any) {
	const most = 100
	if len(c.Notes) < most {
		c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
	}
}

// beatsOf returns the interval of the client's heartbeats: the median of the captured ones; for a
// single one, the time until it came.
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
