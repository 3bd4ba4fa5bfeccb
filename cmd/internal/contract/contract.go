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
	"encoding/json"
	"io"

	"unwire/captures/safetext"
)

// An Object is a type of this package that is printed as a line.
type Object interface {
	setVersion()
}

// A version holds the version number of the JSON format, which is the first member of every object.
type version struct {
	V int `json:"v"`
}

func (v *version) setVersion() { v.V = 1 }

// An escapedVersion is the version of objects in whose strings <, > and & are escaped,
// as package json does by default.
type escapedVersion struct{ version }

func (*escapedVersion) escapesHTML() {}

// An Encoder writes JSON Lines. Characters that would drive a terminal are escaped.
type Encoder struct{ lines *json.Encoder }

// A safeWriter escapes the lines that an Encoder writes.
type safeWriter struct{ w io.Writer }

func (s safeWriter) Write(line []byte) (int, error) {
	if _, err := s.w.Write(safetext.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// NewEncoder returns an Encoder that writes JSON lines to w.
func NewEncoder(w io.Writer) Encoder {
	return Encoder{json.NewEncoder(safeWriter{w})}
}

// Encode writes an object as one line of JSON, with the version number of the format.
func (e Encoder) Encode(o Object) error {
	o.setVersion()
	_, escaped := o.(interface{ escapesHTML() })
	e.lines.SetEscapeHTML(escaped)
	return e.lines.Encode(o)
}
