// Package contract holds the JSON objects that the commands print, one type for each
// kind of line. Scripts rely on their members: a member is added, and never renamed,
// removed or given another meaning.
//
// Results of the libraries go in, lines of JSON come out. An object that is a library's result
// embeds that type, so that a concept has one type; the members that only the command line knows,
// such as a file's name, are added to it. The annotated field, which is also read back, is the type
// of package field.
//
// A file has the objects of a group of commands: capture those of ls, show and grep,
// notes those of note and use, events those of a recording, imported, diff, transcript, secrets, schema, replay
// and probe those of the commands of that name, machine those of ca and doctor. An
// Encoder writes an object as one line.
package contract

import (
	"bytes"
	"encoding/json"
	"io"

	"unwire/captures/safetext"
	"unwire/decode"
)

// An Object is a type of this package that an Encoder can write as a line.
type Object interface {
	setVersion()
}

// A version has the version number of the JSON format. It is embedded as the first member of objects.
type version struct {
	// V is the version number, always 1.
	V int `json:"v"`
}

// setVersion sets the version number to 1.
func (v *version) setVersion() { v.V = 1 }

// An escapedVersion is embedded, instead of version, in JSON output whose strings have <, > and & written as \u003c,
// \u003e and \u0026, as encoding/json does by default. In other output these characters stay readable.
type escapedVersion struct {
	// version adds the member "v" with the version number of the format.
	version
}

// escapesHTML marks objects for which Encode writes <, > and & as \u003c, \u003e and \u0026.
func (*escapedVersion) escapesHTML() {}

// An Encoder writes objects as JSON Lines. It escapes characters that a terminal would interpret.
type Encoder struct {
	// lines encodes the lines and writes them to a safeWriter.
	lines *json.Encoder

	// w is the output.
	w io.Writer

	// head and out are reused memory for objects with the fields of messages: head for an object without these, and out
	// for what was not written to w yet.
	head, out *bytes.Buffer
}

// A safeWriter escapes the characters that a terminal would interpret in JSON lines.
type safeWriter struct {
	// w is the underlying writer.
	w io.Writer
}

// Write writes a complete line to the underlying writer after escaping it.
func (s safeWriter) Write(line []byte) (int, error) {
	if _, err := s.w.Write(safetext.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// NewEncoder returns an Encoder that writes JSON lines to w.
func NewEncoder(w io.Writer) Encoder {
	return Encoder{json.NewEncoder(safeWriter{w}), w, new(bytes.Buffer), new(bytes.Buffer)}
}

// Encode writes an object as one line of JSON, with the version number of the format.
func (e Encoder) Encode(o Object) error {
	o.setVersion()
	if f, ok := o.(interface{ DeferTrees(*decode.DeferredTrees) }); ok {
		var trees decode.DeferredTrees
		f.DeferTrees(&trees)
		return e.encodeTrees(o, &trees)
	}
	_, escaped := o.(interface{ escapesHTML() })
	e.lines.SetEscapeHTML(escaped)
	return e.lines.Encode(o)
}

// bufferedBytes is the size from which encodeTrees writes the part of a line that it has.
const bufferedBytes = 64 << 10

// encodeTrees writes an object from which fields of messages were left out, and decodes them while it writes them.
func (e Encoder) encodeTrees(o Object, trees *decode.DeferredTrees) error {
	e.head.Reset()
	e.out.Reset()
	enc := json.NewEncoder(e.head)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return err
	}
	if err := trees.WriteJSON(e.head.Bytes(), func(piece []byte) error {
		e.out.Write(safetext.JSON(piece))
		if e.out.Len() < bufferedBytes {
			return nil
		}
		_, err := e.out.WriteTo(e.w)
		return err
	}); err != nil {
		return err
	}
	_, err := e.out.WriteTo(e.w)
	return err
}
