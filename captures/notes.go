package captures

import "time"

// NoFrame is the Frame of a Place that is an exchange as a whole.
const NoFrame = -1

// A Place is what a note belongs to: an exchange, a frame of it, or a field of that frame.
type Place struct {
	Exchange int64
	Dir      Direction // of the frame
	Frame    int       // counted from 0 for each direction, or NoFrame

	// Path is that of a field in the frame's message, such as 1.7 or 2[3].1; "" is the frame
	// as a whole.
	Path string
}

// A NoteKind says what a note is. The list is open: readers show kinds that they do not
// know.
type NoteKind string

const (
	TextNote NoteKind = "note" // a text of up to 64 KiB
	MarkNote NoteKind = "mark" // one word of up to 64 bytes, such as star
)

// A Note is what a user wrote about a place. A place has at most one of each kind.
type Note struct {
	Place
	Kind  NoteKind
	Value string // "" for one that was removed

	Changed time.Time // zero if unknown
}

// A DefinitionKind says what the data of a Definition is. The list is open: readers ignore
// kinds that they do not know.
type DefinitionKind string

const (
	DescriptorSet DefinitionKind = "descriptors" // a serialized FileDescriptorSet
	ProtoFile     DefinitionKind = "proto"       // the text of one .proto file
)

// A Definition is a part of the definitions that are kept in a capture, by content.
type Definition struct {
	Kind DefinitionKind

	// Name is the path by which others import a ProtoFile, and otherwise a name for people.
	Name string

	Data    []byte // at most 64 MiB
	Active  bool   // not replaced or removed
	Changed time.Time
}
