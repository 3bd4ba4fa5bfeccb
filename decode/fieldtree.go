package decode

import (
	"bytes"

	"unwire/decode/field"
	"unwire/decode/wire"
)

// A fieldTree are the decoded fields of a message in a Line. They are decoded while they are written, because decoded
// fields take much more memory than the message. The zero value has no fields.
//
// Limits: the message must not change before the Line is written.
type fieldTree struct {
	// view determines how the fields are decoded.
	view View

	// message is the message that has the fields; nil for none.
	message *wire.Tree

	// deferred, if set, collects the trees that MarshalJSON leaves out.
	deferred *DeferredTrees
}

// MarshalJSON returns the fields as a JSON array. After Line.DeferTrees, it returns an empty array instead, which
// DeferredTrees.WriteJSON fills in.
func (t *fieldTree) MarshalJSON() ([]byte, error) {
	if t.deferred != nil {
		t.deferred.trees = append(t.deferred.trees, t)
		return []byte("[]"), nil
	}
	var b bytes.Buffer
	w := fieldWriter{write: func(piece []byte) error {
		b.Write(piece)
		return nil
	}}
	w.tree(t)
	w.flush()
	return b.Bytes(), w.err
}

// DeferredTrees are the field trees of one JSON text, which are written without being in memory as a whole:
//
//	var d decode.DeferredTrees
//	line.DeferTrees(&d)
//	text, err := json.Marshal(line) // or an object that contains the line
//	err = d.WriteJSON(text, write)
type DeferredTrees struct {
	// trees are the trees in the order in which the text has them.
	trees []*fieldTree
}

// DeferTrees leaves the fields of the line out of its JSON form. d collects them when the line is marshalled.
func (l *Line) DeferTrees(d *DeferredTrees) {
	l.Tree.deferred = d
	for i := range l.Inner {
		if t := l.Inner[i].Tree; t != nil {
			t.deferred = d
		}
	}
}

// emptyTree is the JSON form of a member whose fields were left out. No string in a JSON text contains it, because its
// quotes would be escaped.
const emptyTree = `"tree":[]`

// WriteJSON writes a JSON text with the fields that were left out of it. It calls write with consecutive pieces of the
// text, none of which ends within a character.
func (d *DeferredTrees) WriteJSON(text []byte, write func(piece []byte) error) error {
	w := fieldWriter{write: write}
	for _, t := range d.trees {
		at := bytes.Index(text, []byte(emptyTree)) + len(emptyTree) - len("[]")
		w.piece(text[:at])
		w.tree(t)
		text = text[at+len("[]"):]
	}
	w.piece(text)
	w.flush()
	return w.err
}

// A fieldWriter writes fields as JSON while it decodes them.
type fieldWriter struct {
	// write is called with consecutive pieces of the text.
	write func(piece []byte) error

	// buf is the beginning of the next piece.
	buf []byte

	// err is the first error of write. Nothing is decoded after it.
	err error
}

// pieceLen is the size in bytes from which a fieldWriter writes what it has.
const pieceLen = 4 << 10

// piece writes a part of the text that does not end within a character.
func (w *fieldWriter) piece(b []byte) {
	if len(b) < pieceLen {
		w.buf = append(w.buf, b...)
		return
	}
	w.flush()
	if w.err == nil {
		w.err = w.write(b)
	}
}

// flush writes what was not written yet.
func (w *fieldWriter) flush() {
	if w.err == nil && len(w.buf) > 0 {
		w.err = w.write(w.buf)
	}
	w.buf = w.buf[:0]
}

// tree writes the fields of a message as a JSON array. What they need is allocated here and not before, because an
// exchange may have a Line for each of 200,000 frames.
func (w *fieldWriter) tree(t *fieldTree) {
	if t.message == nil {
		w.buf = append(w.buf, "[]"...)
		return
	}
	u := t.view.undecoded(t.message)
	defer u.release()
	w.fields(u)
}

// fields writes fields as a JSON array.
func (w *fieldWriter) fields(u *undecoded) {
	w.buf = append(w.buf, '[')
	first := true
	u.heads(true, func(h decodedHead) bool {
		if !first {
			w.buf = append(w.buf, ',')
		}
		first = false
		w.field(h.Field, h.fields, h.cutFields)
		if len(w.buf) >= pieceLen {
			w.flush()
		}
		return w.err == nil
	})
	w.buf = append(w.buf, ']')
}

// field writes one field with the fields inside of it, and with those inside of its Cut; nil for none.
func (w *fieldWriter) field(f *field.Field, inside, cut *undecoded) {
	w.buf = f.AppendBeforeFields(w.buf)
	if inside != nil {
		w.buf = append(w.buf, `,"fields":`...)
		w.fields(inside)
	}
	if f.Cut != nil {
		w.buf = append(w.buf, `,"cut":`...)
		w.field(f.Cut, cut, nil)
	}
	w.buf = f.AppendAfterFields(w.buf)
}
