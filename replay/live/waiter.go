package live

import (
	"errors"
	"fmt"
	"slices"
)

// A waiter decides when one frame up may go.
type waiter struct {
	frame    *Upload
	cause    *search   // nil where it waits for nothing
	bindings []*search // one for each of frame.Live
}

func newWaiter(l *Links, f *Upload) *waiter {
	w := &waiter{frame: f}
	if f.cause != nil {
		w.cause = &search{t: f.cause, l: l, question: l.asked[f.cause.down]}
	}
	for i := range f.Live {
		t := &f.Live[i].source
		w.bindings = append(w.bindings, &search{t: t, l: l, question: l.asked[t.down]})
	}
	return w
}

// ready reports whether the frame may go. A server that says other things than
// it did in the capture is given its turn: when it has said as many and is
// quiet, the frame goes; an id it has to carry must have come all the same.
func (w *waiter) ready(down []*parsedMessage, quiet bool) bool {
	ok := true
	for _, s := range w.bindings {
		if s.advance(down); s.found == nil && !(quiet && s.result() != nil) {
			ok = false
		}
	}
	if w.cause != nil {
		if w.cause.advance(down); w.cause.found == nil && !(quiet && (messages(down) >= w.frame.After || w.answers())) {
			return false
		}
	}
	return ok
}

// answers reports whether the frame answers a question.
func (w *waiter) answers() bool {
	return slices.ContainsFunc(w.bindings, func(s *search) bool { return s.question != nil })
}

// wants names the server's frame that is missing, for an error.
func (w *waiter) wants() string {
	for i, s := range w.bindings {
		if s.result() == nil {
			b := w.frame.Live[i]
			return fmt.Sprintf("server did not send a frame like %s, whose %s frame up/%d carries on", b.From, b.FromPath, w.frame.Seq)
		}
	}
	return fmt.Sprintf("server did not send a frame like %s, which frame up/%d answers", w.frame.Answers, w.frame.Seq)
}

// fill returns the frame's message with the live server's ids in it.
func (w *waiter) fill(dialogue *Dialogue) (data []byte, changed bool, err error) {
	data = w.frame.Data
	var asked *parsedMessage
	for _, s := range w.bindings {
		if s.question != nil {
			asked = s.result()
		}
	}
	for i, s := range w.bindings {
		b, from := w.frame.Live[i], s.result()
		if b.digest != "" && asked != nil {
			if h, v := dialogue.byDigest(asked, b.digest); h != nil {
				from, b.FromPath = h, v.path
			}
		}
		if from == nil {
			return data, changed, fmt.Errorf("frame up/%d: %w", w.frame.Seq, errors.New(w.wants()))
		}
		next, err := b.put(data, from)
		if err != nil {
			return data, changed, fmt.Errorf("frame up/%d: %s: %w", w.frame.Seq, b.Path, err)
		}
		if string(next) != string(data) {
			data, changed = next, true
		}
	}
	return data, changed, nil
}
