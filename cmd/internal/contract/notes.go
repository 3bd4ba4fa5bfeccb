package contract

import (
	"time"

	"unwire/captures"
)

// A PlaceNote is a note where its frame or exchange is known.
type PlaceNote struct {
	Kind  captures.NoteKind `json:"kind"` // "note" or "mark"
	Path  string            `json:"path,omitempty"`
	Value string            `json:"value"`

	// When it was written: RFC 3339, in nanoseconds.
	Changed string `json:"changed,omitempty"`
}

// NewPlaceNote is the member of a note.
func NewPlaceNote(n *captures.Note) *PlaceNote {
	p := &PlaceNote{Kind: n.Kind, Path: n.Path, Value: n.Value}
	if !n.Changed.IsZero() {
		p.Changed = n.Changed.Format(time.RFC3339Nano)
	}
	return p
}

// A Note is a line of `unwire note`.
type Note struct {
	version

	// What it is about: an exchange or a frame, as `unwire show` takes it.
	Address  string `json:"address"`
	Exchange int64  `json:"exchange"`
	Dir      string `json:"dir,omitempty"`
	Frame    *int   `json:"frame,omitempty"`

	PlaceNote
}

// NewNote is the line of a note.
func NewNote(address string, n *captures.Note) *Note {
	l := &Note{Address: address, Exchange: n.Exchange, PlaceNote: *NewPlaceNote(n)}
	if n.Frame != captures.NoFrame {
		l.Dir, l.Frame = n.Dir.String(), &n.Frame
	}
	return l
}

// AddNote adds what a note says of an exchange.
func (l *Exchange) AddNote(n *captures.Note) {
	switch {
	case n.Frame == captures.NoFrame && n.Kind == captures.MarkNote:
		l.Mark = n.Value
		return
	case n.Frame == captures.NoFrame && n.Kind == captures.TextNote:
		l.Note = n.Value
	}
	l.Notes++
}

// A ProjectFile is what `unwire config` prints: the unwire.yaml of the working folder.
type ProjectFile struct {
	version

	// File is its path. If there is no file, all is empty.
	File string `json:"file"`

	// Definitions are paths of definitions.
	Definitions []string `json:"definitions"`

	// Profile is as --profile has it; "" if the file does not say.
	Profile string `json:"profile"`

	// Weights is the path of the weights of chat; "" if the file does not say.
	Weights string `json:"weights"`

	// Redact are the rules for secrets that the file adds.
	Redact ProjectRules `json:"redact"`
}

// ProjectRules are rules for secrets of an unwire.yaml.
type ProjectRules struct {
	// Headers are header fields whose value is a secret.
	Headers []string `json:"headers"`

	// Keys are what keys look like.
	Keys []ProjectKey `json:"keys"`

	// Names are query parameters and JSON members whose value is a secret.
	Names []string `json:"names"`

	// Fields are full names of message fields whose value is a secret.
	Fields []string `json:"fields"`
}

// A ProjectKey is what keys of one kind look like.
type ProjectKey struct {
	// Prefix is how the keys begin.
	Prefix string `json:"prefix"`

	// MinLength is how many letters and digits stand behind the prefix, at least.
	MinLength int `json:"min_length"`
}

// A KeptDefinition is a line of `unwire use --list`: a part of the definitions that a capture
// keeps.
type KeptDefinition struct {
	version
	Kind  captures.DefinitionKind `json:"kind"` // "proto" or "descriptors"
	Name  string                  `json:"name"`
	Bytes int                     `json:"bytes"`

	// When it was stored: RFC 3339, in nanoseconds.
	Changed string `json:"changed,omitempty"`
}

// NewKeptDefinition is the line of a definition.
func NewKeptDefinition(d *captures.Definition) *KeptDefinition {
	l := &KeptDefinition{Kind: d.Kind, Name: d.Name, Bytes: len(d.Data)}
	if !d.Changed.IsZero() {
		l.Changed = d.Changed.Format(time.RFC3339Nano)
	}
	return l
}
