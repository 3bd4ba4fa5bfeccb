package live

import (
	"errors"
	"fmt"
	"slices"
)

// A waiter determines when one client frame may be sent, and inserts the live identifiers into it.
type waiter struct {
	// frame is the frame to be sent.
	frame *Upload
	// cause searches the live frame for which the client frame waits; nil if it waits for none.
	cause *search
	// bindings search the live frames that have the identifiers of frame.Live, in the same order.
	bindings []*search
	// roles are the names of the two sides for error messages.
	roles roles
	// lenient means that the frame is sent at its captured position even if the peer's frames differ;
	// see Schedule.Lenient.
	lenient bool
}

// newWaiter returns a waiter for the client frame f.
func newWaiter(l *Links, f *Upload) *waiter {
	w := &waiter{frame: f, roles: l.roles}
	if f.cause != nil {
		w.cause = &search{t: f.cause, l: l, question: l.asked[f.cause.down]}
	}
	// Of captured frames that the caller maps, what they ask does not count.
	byHand := map[int]bool{}
	for i := range f.Live {
		if b := &f.Live[i]; b.ByHand {
			byHand[b.source.down] = true
		}
	}
	for i := range f.Live {
		t := &f.Live[i].source
		s := &search{t: t, l: l, byHand: byHand[t.down]}
		if !s.byHand {
			s.question = l.asked[t.down]
		}
		w.bindings = append(w.bindings, s)
	}
	return w
}

// ready reports whether the frame may be sent, given the live messages down so far. If the server sends
// other frames than in the capture, the frame waits until as many have arrived and the server is silent
// (quiet); the identifiers in the frame must have arrived in any case.
func (w *waiter) ready(down []*parsedMessage, quiet bool) bool {
	ok := true
	for _, s := range w.bindings {
		if s.advance(down); s.found == nil && !(quiet && s.result() != nil) {
			ok = false
		}
	}
	if w.cause != nil {
		inPlace := messages(down) >= w.frame.After || w.answers() && !w.lenient
		if w.cause.advance(down); w.cause.found == nil && !(quiet && inPlace) {
			return false
		}
	}
	return ok || w.lenient && quiet && messages(down) >= w.frame.After
}

// answers reports whether the client frame responds to a question of the server.
func (w *waiter) answers() bool {
	return slices.ContainsFunc(w.bindings, (*search).answers)
}

// wants describes, for an error message, the server frame for which the frame waits.
func (w *waiter) wants() string {
	for i, s := range w.bindings {
		if s.result() == nil {
			b := w.frame.Live[i]
			return fmt.Sprintf("%s did not send a frame that corresponds to %s of the recording; %s needs the value of its field %s", w.roles.peer, frameWords(b.From), w.roles.sent(w.frame.Seq), b.FromPath)
		}
	}
	return fmt.Sprintf("%s did not send a frame that corresponds to %s of the recording, which %s answers", w.roles.peer, frameWords(w.frame.Answers), w.roles.sent(w.frame.Seq))
}

// fill returns the frame's message with its identifiers replaced by those of the live server. changed
// means that at least one was replaced.
func (w *waiter) fill(dialogue *Dialogue) (data []byte, changed bool, err error) {
	data = w.frame.Data
	var asked *parsedMessage
	for _, s := range w.bindings {
		if s.answers() {
			asked = s.result()
		}
	}

	// The messages that have the values; the digest of a value leads to the value itself.
	bindings, from := slices.Clone(w.frame.Live), make([]*parsedMessage, len(w.bindings))
	for i, s := range w.bindings {
		b := &bindings[i]
		from[i] = s.result()
		if b.digest != "" && asked != nil {
			if h, v := dialogue.byDigest(asked, b.digest); h != nil {
				from[i], b.FromPath = h, v.Path
			}
		}
		if from[i] == nil && w.lenient {
			from[i] = s.place
		}
	}
	if b, reason := reorder(bindings, from); b != nil && !w.lenient {
		return data, false, &uncertainError{StaleValue{w.frame.Seq, b.Path, b.From, b.FromPath, reason}}
	}

	// Replace one id after the other.
	for i := range bindings {
		b := &bindings[i]
		if from[i] == nil {
			if w.lenient {
				continue // the captured value stays
			}
			return data, changed, fmt.Errorf("%s: %w", w.roles.sent(w.frame.Seq), errors.New(w.wants()))
		}
		next, err := b.put(data, from[i])
		if err != nil {
			if w.lenient {
				continue
			}
			return data, changed, fmt.Errorf("%s, field %s: %w", w.roles.sent(w.frame.Seq), b.Path, err)
		}
		if string(next) != string(data) {
			data, changed = next, true
		}
	}
	return data, changed, nil
}
