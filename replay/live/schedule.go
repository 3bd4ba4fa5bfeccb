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

// minBeat is the shortest interval at which heartbeats are sent.
const minBeat = 250 * time.Millisecond

// ErrUnasked reports that the live server asks something to which the capture has no response.
var ErrUnasked = errors.New("the capture contains no answer to a request that the server sent in the stream")

// maxExtra limits how many responses are sent more than once.
const maxExtra = 1000

// A Schedule sends the client's captured frames to the live server, each at the right time: a response
// once the server has asked the question, heartbeats periodically, and all others in order.
type Schedule struct {
	// Beats is the number of heartbeats sent.
	Beats int

	// Notes are remarks for the user about the course of the replay.
	Notes []string

	// Stale are the values that kept frames from being sent, if Run gave up.
	Stale []StaleValue

	// Lenient sends a frame at its captured position even if the peer's frames differ from the captured
	// ones, or if the peer asks something to which the capture has no response. Set it before Run. By
	// default, Run gives up then.
	Lenient bool

	// dialogue has the live server's messages.
	dialogue *Dialogue

	// links are the relations between the captured frames.
	links *Links

	// wait is how long a frame waits for the live frame that it responds to.
	wait time.Duration

	// quiet is how long the server must send nothing to count as silent.
	quiet time.Duration
	// waiters are the client frames that were not sent yet, in captured order.
	waiters []*waiter

	// all are the client frames by their number in the capture.
	all map[int]*Upload
	// claimed are the live questions to which a response was sent.
	claimed map[*parsedMessage]bool

	// beat is the heartbeat that is sent periodically; nil for none.
	beat *Upload

	// every is the interval of heartbeats.
	every time.Duration

	// next is the time of the next heartbeat.
	next time.Time

	// extra is the number of responses that were sent more than once.
	extra int

	// tried is the frame that was sent last.
	tried *waiter

	// gaveUp means that Run ended with an error other than the end of the server's response.
	gaveUp bool

	// checked is the number of server messages for which it was verified that the capture contains a
	// response.
	checked int

	// write sends a frame to the server. data is its message, and changed means that identifiers of the live server
	// were inserted into it.
	write func(u *Upload, data []byte, changed bool) error
}

// An Upload is a client frame that a Schedule sends.
type Upload struct {
	// Turn says when the frame may be sent, and which identifiers in it the server issued.
	Turn
	// Index is a number by which the caller recognises the frame.
	Index int

	// Seq is the number of the frame in the capture.
	Seq int
	// Data is the message, before identifiers are replaced by those of the live server.
	Data []byte
	// Changed means that Data differs from the captured message.
	Changed bool
}

// NewSchedule returns a schedule of the uploads, each of which is sent once the server messages that it
// depends on have arrived in dialogue. write sends a message; changed means that identifiers of the
// live server were inserted into data. wait limits how long a frame waits; quiet is how long the server
// must send nothing to count as silent.
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

// Run sends all frames. It returns when they are sent or the server's response has ended. With hold, it
// also waits until the server is silent after the last frame.
//
// Errors: ErrSilent; ErrUnasked; those of writing; the cause of ctx.
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

// await waits until a frame can be sent, and sends it. over means that nothing more has to be sent.
func (c *Schedule) await(ctx context.Context) (over bool, err error) {
	t := c.dialogue
	start := time.Now()
	for {
		t.mu.Lock()
		silent := time.Since(t.at)
		if silent >= c.quiet || t.finished {
			t.addJoined(t.run.offer())
		}
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

// actInSilence does what is possible when the peer is silent: it responds to an unexpected question, or
// ends the schedule. If acted is true, await returns over and err. finished means that the peer sends
// nothing more.
func (c *Schedule) actInSilence(down []*parsedMessage, finished bool) (acted, over bool, err error) {
	if sent, err := c.answerUnasked(down); sent || err != nil {
		return true, false, err
	}
	switch {
	case len(c.waiters) == 0 && (finished || c.links.haveEnded(down)):
		return true, true, nil
	case finished:
		// Nothing more comes that the next frame could wait for.
		return true, false, c.sendNext(c.first(), nil)
	}
	return false, false, nil
}

// pause waits until wake is closed, at most for d.
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

// nextDue removes and returns the client frame that can be sent next; nil if there is none. quiet means
// that the server is silent.
//
// Errors: ErrUnasked.
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

// sendNext sends the frame that nextDue returned, or returns its error.
func (c *Schedule) sendNext(w *waiter, err error) error {
	if err != nil {
		return err
	}
	return c.send(w)
}

// due removes and returns the client frame that can be sent now: the next one in captured order or, if
// the server is silent, the first one that responds to a question that the server has asked already. It
// returns nil if there is none.
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
				c.note("frame %s/%d was sent before %s/%d: the %s asks its questions in a different order than in the capture", r.out, w.frame.Seq, r.out, c.waiters[0].frame.Seq, r.peer)
			}
			c.waiters = slices.Delete(c.waiters, i, i+1)
			return w
		}
	}
	return nil
}

// send sends a frame with its captured identifiers replaced by live ones.
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
	if stale := c.repeated(w, data); stale != nil && !c.Lenient {
		if !w.frame.Changed {
			return &uncertainError{*stale}
		}
		c.note("frame %s/%d was edited, and sent with the captured value of %s: %s", c.links.roles.out, w.frame.Seq, stale.Path, stale.Reason)
	}
	c.dialogue.join()
	return c.write(w.frame, data, changed)
}

// answerUnasked responds to a live question that does not occur at this point of the capture, by
// sending the captured response to the same question again. It is called if the server is silent and no
// other frame can be sent.
//
// Errors: ErrUnasked if the capture has no such question.
func (c *Schedule) answerUnasked(down []*parsedMessage) (sent bool, err error) {
	l := c.links
	for i, h := range down {
		if c.claimed[h] || c.awaited(h) {
			continue
		}
		kind, q := l.liveQuestion(h)
		if kind == nil || l.isLastWords(h, down[:i]) {
			continue
		}

		// The limit stops a server that asks the same question forever.
		if q == nil || c.extra >= maxExtra {
			if c.Lenient {
				continue
			}
			return false, fmt.Errorf("%w: %s", ErrUnasked, l.describeLive(h, kind))
		}
		c.claimed[h] = true
		c.extra++
		c.note("the %s repeated the question %s, so replay sent the answer to %s again", l.roles.peer, l.describeLive(h, q.kind), l.roles.received(l.down[q.down].frame.Seq))
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

// checkAsked returns an error if the server is silent and has asked a question to which no captured
// frame responds, because further frames would not fit the conversation.
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
			return fmt.Errorf("%w: %s", ErrUnasked, c.links.describeLive(h, kind))
		}
	}
	return nil
}

// liveQuestion returns the type of question to which the live message h belongs, and the last captured
// question that asks the same; both are nil if there is none.
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

// noteEdit compares an upload with the captured frame, so that values from edits are recognised when
// the server repeats them.
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

// Unsent returns the number of frames that were not sent because the server never asked for them. gone
// means that the last frame was not delivered because the server had already closed the stream. A frame
// that the server had asked for, or that was due when the stream ended, is not counted but noted.
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
			c.note("client frame %d was not sent, because the replay ended earlier", w.frame.Seq)
		case w.ready(down, false):
			c.note("client frame %d was not sent, because the server ended the call without waiting for this frame", w.frame.Seq)
		default:
			n++
		}
	}
	return n
}

// awaited reports whether a client frame that was not sent yet responds to the live message h.
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

// byDigest returns the live value, and its message, whose SHA-256 the message question has at path.
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

// note adds a remark for the user, formatted as by fmt.Sprintf.
func (c *Schedule) note(format string, args ...any) {
	const most = 100
	if len(c.Notes) < most {
		c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
	}
}

// beatsOf returns the interval of the client's heartbeats: the median of the captured intervals or, for
// a single heartbeat, the time before it.
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
