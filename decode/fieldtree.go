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
	w.fields(t.fields())
	return b.Bytes(), w.err
}

// fields returns the fields, of which none is decoded yet; nil for none. What they need is allocated here and not before,
// because an exchange may have a Line for each of 200,000 frames.
func (t *fieldTree) fields() *undecoded {
	if t.message == nil {
		return nil
	}
	return t.view.undecoded(t.message)
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
		w.fields(t.fields())
		text = text[at+len("[]"):]
	}
	w.piece(text)
	return w.err
}

// A fieldWriter writes fields as JSON while it decodes them.
type fieldWriter struct {
	// write is called with consecutive pieces of the text.
	write func(piece []byte) error

	// buf is reused memory for the next piece.
	buf []byte

	// err is the first error of write. Nothing is decoded after it.
	err error
}

// piece writes the next piece of the text.
func (w *fieldWriter) piece(b []byte) {
	if w.err == nil {
		w.err = w.write(b)
	}
}

// fields writes fields as a JSON array; u is nil for none.
func (w *fieldWriter) fields(u *undecoded) {
	w.piece([]byte("["))
	if u != nil {
		first := true
		for h := range u.heads() {
			if w.err != nil {
				return
			}
			if !first {
				w.piece([]byte(","))
			}
			first = false
			w.field(h.Field, h.fields, h.cutFields)
		}
	}
	w.piece([]byte("]"))
}

// field writes one field with the fields inside of it, and with those inside of its Cut.
func (w *fieldWriter) field(f *field.Field, inside, cut *undecoded) {
	w.buf = f.AppendBeforeFields(w.buf[:0])
	if inside == nil && f.Cut == nil {
		// Most fields are one piece.
		w.buf = f.AppendAfterFields(w.buf)
		w.piece(w.buf)
		return
	}
	w.piece(w.buf)
	if inside != nil {
		w.piece([]byte(`,"fields":`))
		w.fields(inside)
	}
	if f.Cut != nil {
		w.piece([]byte(`,"cut":`))
		w.field(f.Cut, cut, nil)
	}
	w.buf = f.AppendAfterFields(w.buf[:0])
	w.piece(w.buf)
}
