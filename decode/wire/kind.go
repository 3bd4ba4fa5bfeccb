package wire

// A Kind is a way to interpret a field's bytes, such as text or a message, by its name in JSON.
type Kind string

const (
	// KindMessage is a Len payload that contains fields.
	KindMessage Kind = "message"

	// KindString is a Len payload of UTF-8 text.
	KindString Kind = "string"

	// KindBytes is a Len payload without further structure.
	KindBytes Kind = "bytes"

	// KindPacked is a Len payload of numbers: a packed repeated field.
	KindPacked Kind = "packed"

	// KindVarint is an integer, bool or enum.
	KindVarint Kind = "varint"

	// KindFixed32 is fixed32, sfixed32 or float.
	KindFixed32 Kind = "fixed32"

	// KindFixed64 is fixed64, sfixed64 or double.
	KindFixed64 Kind = "fixed64"

	// KindGroup is a group: the fields between two tags.
	KindGroup Kind = "group"
)
