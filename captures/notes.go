package captures

import "time"

// NoFrame is the value of Place.Frame if the place is the whole exchange.
const NoFrame = -1

// A Place identifies the subject of a note: an exchange, one of its frames, or a field of a frame.
type Place struct {
	// Exchange is the ID of the exchange that the note is about.
	Exchange int64
	// Dir is the direction of the frame that the note is about.
	Dir Direction
	// Frame is the number of the frame in its direction, from 0, or NoFrame if the note is about the whole
	// exchange.
	Frame int

	// Path is the path of a field in the frame's message, such as 1.7 or 2[3].1; "" means the whole
	// frame.
	Path string
}

// A NoteKind is the kind of a note. The list is open: readers show kinds that they do not know.
type NoteKind string

const (
	// TextNote is free text of at most 64 KiB.
	TextNote NoteKind = "note"
	// MarkNote is a mark, a single word of at most 64 bytes such as "star".
	MarkNote NoteKind = "mark"
)

// A Note is a text that a user attached to a place. A place has at most one note of each kind.
type Note struct {
	// The embedded Place is the exchange, frame or field that the note is about.
	Place
	// Kind is whether the note is free text or a mark, which is a single word such as "star".
	Kind NoteKind
	// Value is the text of the note; "" means that the note was removed.
	Value string

	// Changed is when the note was last written; zero if unknown.
	Changed time.Time
}

// A DefinitionKind is the format of a Definition's data. The list is open: readers ignore kinds that they do not
// know.
type DefinitionKind string

const (
	// DescriptorSet is a serialized google.protobuf.FileDescriptorSet.
	DescriptorSet DefinitionKind = "descriptors"
	// ProtoFile means that the definition is the source text of one .proto file.
	ProtoFile DefinitionKind = "proto"
)

// A Definition is a set of protobuf message definitions (a schema) that is stored in a capture.
type Definition struct {
	// Kind is the format of the definition's Data.
	Kind DefinitionKind

	// Name is the import path of a ProtoFile. For other kinds it is only shown to users.
	Name string

	// Data is the content of the definition, at most 64 MiB.
	Data []byte
	// Active is false if the definition was replaced or removed later.
	Active bool
	// Changed is when the definition was stored or replaced.
	Changed time.Time
}
