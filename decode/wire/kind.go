package wire

// A Kind is what a field's bytes may stand for, in the contract's words.
type Kind string

const (
	KindMessage Kind = "message"
	KindString  Kind = "string"
	KindBytes   Kind = "bytes"
	KindPacked  Kind = "packed"
	KindVarint  Kind = "varint"
	KindFixed32 Kind = "fixed32"
	KindFixed64 Kind = "fixed64"
	KindGroup   Kind = "group"
)
