package contract

import (
	"time"

	"unwire/captures"
)

// A PlaceNote is a note inside the object of a frame or exchange, which already has the address.
type PlaceNote struct {
	// Kind is "note" or "mark".
	Kind captures.NoteKind `json:"kind"`

	// Path is the path of the field; missing for a note about a whole frame or exchange.
	Path string `json:"path,omitempty"`

	// Value is the text of the note, or the name of the mark.
	Value string `json:"value"`

	// Changed is when the note was written, in RFC 3339 with nanoseconds.
	Changed string `json:"changed,omitempty"`
}

// NewPlaceNote builds the JSON object for a note without its address.
func NewPlaceNote(n *captures.Note) *PlaceNote {
	p := &PlaceNote{Kind: n.Kind, Path: n.Path, Value: n.Value}
	if !n.Changed.IsZero() {
		p.Changed = n.Changed.Format(time.RFC3339Nano)
	}
	return p
}

// A Note is one line of `unwire note`: a note with its address.
type Note struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Address is the address of the exchange or frame that the note is about, as `unwire show` accepts it.
	Address string `json:"address"`

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Dir is the direction of the frame; missing for an exchange.
	Dir string `json:"dir,omitempty"`

	// Frame is the number of the frame; missing for an exchange.
	Frame *int `json:"frame,omitempty"`

	// PlaceNote is the text and the mark of the note; its fields become members of the JSON object.
	PlaceNote
}

// NewNote builds the JSON object for a note at an address.
func NewNote(address string, n *captures.Note) *Note {
	l := &Note{Address: address, Exchange: n.Exchange, PlaceNote: *NewPlaceNote(n)}
	if n.Frame != captures.NoFrame {
		l.Dir, l.Frame = n.Dir.String(), &n.Frame
	}
	return l
}

// AddNote adds a user's note or mark to the JSON object of the exchange, or counts it if it is about a
// frame or field.
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

// A ProjectFile is the output of `unwire config`: the settings in the unwire.yaml of the working
// folder.
type ProjectFile struct {
	// version adds the member v, the version number of the JSON format.
	version

	// File is the path of unwire.yaml. If there is no such file, all members are empty.
	File string `json:"file"`

	// Definitions are paths of definition files.
	Definitions []string `json:"definitions"`

	// Profile is the name of a profile, as for --profile; "" if the file does not choose one.
	Profile string `json:"profile"`

	// Weights is the path of the weights of chat; "" if the file does not say.
	Weights string `json:"weights"`

	// Redact are the rules for secrets that the file adds.
	Redact ProjectRules `json:"redact"`
}

// ProjectRules are rules for secrets of an unwire.yaml.
type ProjectRules struct {
	// Headers are names of HTTP headers whose values are secrets.
	Headers []string `json:"headers"`

	// Keys describe the syntax of API keys.
	Keys []ProjectKey `json:"keys"`

	// Names are names of query parameters and JSON members whose values are secrets.
	Names []string `json:"names"`

	// Fields are full names of message fields whose values are secrets.
	Fields []string `json:"fields"`
}

// A ProjectKey describes the syntax of one kind of API key.
type ProjectKey struct {
	// Prefix is the fixed text at the beginning of the keys, such as "sk-".
	Prefix string `json:"prefix"`

	// MinLength is the least number of letters and digits after the prefix.
	MinLength int `json:"min_length"`
}

// A KeptDefinition is a line of `unwire use --list`: a part of the definitions that a capture
// keeps.
type KeptDefinition struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Kind is "proto" or "descriptors".
	Kind captures.DefinitionKind `json:"kind"`

	// Name is the path of a .proto file, or another name.
	Name string `json:"name"`

	// Bytes is the size of the definition.
	Bytes int `json:"bytes"`

	// Changed is when the definition was stored, in RFC 3339 with nanoseconds.
	Changed string `json:"changed,omitempty"`
}

// NewKeptDefinition builds the JSON object for a definition that a capture stores.
func NewKeptDefinition(d *captures.Definition) *KeptDefinition {
	l := &KeptDefinition{Kind: d.Kind, Name: d.Name, Bytes: len(d.Data)}
	if !d.Changed.IsZero() {
		l.Changed = d.Changed.Format(time.RFC3339Nano)
	}
	return l
}
