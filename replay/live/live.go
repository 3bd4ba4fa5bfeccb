// Package live has a captured request fit the live server: identifiers that the
// server issued in the capture become those that it issues now, and each frame
// waits for the one that it answers.
//
// In go a captured exchange, as Links, and what the server sends, as a Dialogue.
// Out come the Turn of each of the client's frames, a Schedule that sends them
// in that order with the server's identifiers in them, and the identifiers of calls
// that others depend on. The package sends nothing itself.
package live

import (
	"errors"
	"fmt"
	"slices"

	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
	"unwire/replay/edit"
)

// A search looks for the live frame that corresponds to a captured one, in
// frames that come one by one.
type search struct {
	t        *target
	l        *Links
	question *question // what the captured frame asks; nil where it is no question
	next     int       // frames before it have been looked at
	// of them, how many are of the target's shape and ask the same
	count int
	exact int // of those that ask the same to the letter
	at    int // of those that have the target's path
	found *heard
	like  *heard // the one that asks the same but for its identifiers
	loose *heard // the one that has the path as many times as the target had
}

func (s *search) advance(down []*heard) {
	for ; s.next < len(down) && s.found == nil; s.next++ {
		h := down[s.next]
		switch q := s.question; {
		case q == nil:
			if h.shape.matches(s.t.shape) {
				if s.count++; s.count == s.t.nth {
					s.found = h
				}
			}
		case s.l.fits(q, h):
			if s.count++; s.count == q.nth {
				s.like = h
			}
			if q.counted || s.l.argumentsOf(h, q.kind).exact == q.args.exact {
				if s.exact++; s.exact == q.exact {
					s.found = h
				}
			}
		}
		if s.loose == nil && s.question == nil && s.t.path != "" && has(h.leaves, s.t.path) {
			if s.at++; s.at == s.t.nthAt {
				s.loose = h
			}
		}
	}
	if s.found == nil && s.like != nil && s.question.alone {
		s.found = s.like
	}
}

// result is the frame that corresponds, as far as it is known.
func (s *search) result() *heard {
	switch {
	case s.found != nil:
		return s.found
	case s.like != nil:
		return s.like
	}
	return s.loose
}

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
func (w *waiter) ready(down []*heard, quiet bool) bool {
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
func (w *waiter) fill(talk *Dialogue) (data []byte, changed bool, err error) {
	data = w.frame.Data
	var asked *heard
	for _, s := range w.bindings {
		if s.question != nil {
			asked = s.result()
		}
	}
	for i, s := range w.bindings {
		b, from := w.frame.Live[i], s.result()
		if b.digest != "" && asked != nil {
			if h, v := talk.byDigest(asked, b.digest); h != nil {
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

// put puts the live value into a message.
func (b *Binding) put(data []byte, from *heard) ([]byte, error) {
	if b.token == "" {
		return bind(data, b, from.frame)
	}
	fresh, ok := b.live(from)
	if !ok {
		return data, fmt.Errorf("the frame that corresponds to %s has no %s %s", b.From, b.FromPath, b.Part)
	}
	return bindInside(data, b, fresh)
}

// bind puts one live value into a message. Where an edit has put another value
// than the captured one, that stays.
func bind(data []byte, b *Binding, from *decode.Frame) ([]byte, error) {
	if from.Tree == nil {
		return bindJSON(data, b, from.Data)
	}
	path, err := fieldpath.ParseNumbers(b.Path)
	if err != nil {
		return data, err
	}
	fromPath, err := fieldpath.ParseNumbers(b.FromPath)
	if err != nil {
		return data, err
	}
	t := wire.Parse(data, wire.Options{})
	at := t.Find(path)
	if b.value == zero {
		return bindZero(t, path, from.Tree, fromPath)
	}
	if len(at) != 1 || valueOf(t, at[0]) != b.value {
		return data, nil
	}
	source := from.Tree.Find(fromPath)
	if len(source) == 0 {
		if isNumber(t.Node(at[0]).Type) { // a number that is zero is not sent
			return wire.Splice(t, []wire.Edit{{Op: wire.Delete, Node: at[0]}})
		}
		return data, fmt.Errorf("the frame that corresponds to %s has no %s", b.From, b.FromPath)
	}
	if from.Tree.Node(source[0]).Type != t.Node(at[0]).Type {
		return data, fmt.Errorf("the live %s of %s is of another wire type", b.FromPath, b.From)
	}
	return wire.Splice(t, []wire.Edit{{Op: wire.Set, Node: at[0], Data: from.Tree.Payload(source[0])}})
}

// bindZero puts in a number that was zero in the capture and is not in what the
// live server says.
func bindZero(t *wire.Tree, path fieldpath.Path, from *wire.Tree, fromPath fieldpath.Path) ([]byte, error) {
	source := from.Find(fromPath)
	parent := t.Find(path[:len(path)-1])
	if len(source) == 0 || len(parent) != 1 || len(t.Find(path)) != 0 {
		return t.Data, nil
	}
	n := from.Node(source[0])
	number, _ := path[len(path)-1].Number()
	field := edit.AppendField(nil, number, n.Type, from.Payload(source[0]))
	if first := t.Node(parent[0]).First; first != wire.None {
		return wire.Splice(t, []wire.Edit{{Op: wire.Before, Node: first, Data: field}})
	}
	return wire.Splice(t, []wire.Edit{{Op: wire.Into, Node: parent[0], Data: field}})
}

func isNumber(t wire.Type) bool { return t == wire.Varint || t == wire.I32 || t == wire.I64 }

// valueOf is a node's value as a leaf has it.
func valueOf(t *wire.Tree, i int32) string {
	var l leaf
	if n := t.Node(i); isNumber(n.Type) {
		l.count(fmt.Sprint(t.Uint(i)), t.Uint(i))
	} else {
		l.text(t.Payload(i))
	}
	return l.value
}

func bindJSON(data []byte, b *Binding, from []byte) ([]byte, error) {
	v, ok := edit.FindJSON(data, b.Path)
	if !ok || valueOfJSON(v) != b.value {
		return data, nil // an edit has changed what the path led to
	}
	source, ok := edit.FindJSON(from, b.FromPath)
	if !ok {
		return data, fmt.Errorf("the frame that corresponds to %s has no %s", b.From, b.FromPath)
	}
	return v.Replace(source.Raw()), nil
}

// valueOfJSON is a JSON value as a leaf has it.
func valueOfJSON(v jsontree.Value) string {
	if k := v.Kind(); k == jsontree.Object || k == jsontree.Array {
		var l leaf
		l.text(v.Raw())
		return l.value
	}
	return jsonScalar(leaf{}, v).value
}
