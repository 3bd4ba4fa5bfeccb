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

	// trees encodes the lines with the fields of messages and writes them to deferred.
	trees    *json.Encoder
	deferred *treesWriter
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
	t := &treesWriter{w: w}
	trees := json.NewEncoder(t)
	trees.SetEscapeHTML(false)
	return Encoder{json.NewEncoder(safeWriter{w}), trees, t}
}

// Encode writes an object as one line of JSON, with the version number of the format.
func (e Encoder) Encode(o Object) error {
	o.setVersion()
	if f, ok := o.(interface{ DeferTrees(*decode.DeferredTrees) }); ok {
		e.deferred.trees = decode.DeferredTrees{}
		f.DeferTrees(&e.deferred.trees)
		return e.trees.Encode(o)
	}
	_, escaped := o.(interface{ escapesHTML() })
	e.lines.SetEscapeHTML(escaped)
	return e.lines.Encode(o)
}

// A treesWriter writes JSON lines from which fields of messages were left out, and decodes these while it writes them.
type treesWriter struct {
	// w is the output.
	w io.Writer

	// trees are the fields that were left out of the next line.
	trees decode.DeferredTrees

	// out is what was not written to w yet. It grows, because most lines are much shorter than bufferedBytes.
	out bytes.Buffer
}

// bufferedBytes is the size from which a treesWriter writes the part of a line that it has.
const bufferedBytes = 64 << 10

// Write writes a complete line.
func (t *treesWriter) Write(line []byte) (int, error) {
	t.out.Reset()
	if err := t.trees.WriteJSON(line, t.piece); err != nil {
		return 0, err
	}
	if _, err := t.out.WriteTo(t.w); err != nil {
		return 0, err
	}
	return len(line), nil
}

// piece writes a part of a line that does not end within a character.
func (t *treesWriter) piece(part []byte) error {
	part = safetext.JSON(part)
	if t.out.Len()+len(part) < bufferedBytes {
		t.out.Write(part)
		return nil
	}
	if _, err := t.out.WriteTo(t.w); err != nil {
		return err
	}
	_, err := t.w.Write(part)
	return err
}
