// Package contract holds the JSON objects that the commands print, one type for each
// kind of line. Scripts rely on their members: a member is added, and never renamed,
// removed or given another meaning.
//
// Results of the libraries go in, lines of JSON come out. An object that is a
// library's result embeds that type, so that a concept has one type; the members that
// only the command line knows, such as a file's name, stand beside it. The annotated
// field, which is also read back, is the type of package field.
package contract

import (
	"encoding/json"
	"io"
)

// An Object is a type of this package that is printed as a line.
type Object interface {
	setVersion()
}

// A version is the first member of every object.
type version struct {
	V int `json:"v"`
}

func (v *version) setVersion() { v.V = 1 }

// An Encoder writes JSON Lines.
type Encoder struct{ lines *json.Encoder }

// NewEncoder returns an Encoder that writes to w.
func NewEncoder(w io.Writer) Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return Encoder{e}
}

// Encode writes an object as one line, with the contract's version.
func (e Encoder) Encode(o Object) error {
	o.setVersion()
	return e.lines.Encode(o)
}
