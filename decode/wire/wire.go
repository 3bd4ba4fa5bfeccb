// Package wire parses protobuf bytes, without a schema, into a lossless tree
// whose nodes point back into the bytes, and writes the same bytes from it.
//
// Every byte of the input belongs to exactly one node's own bytes (its tag,
// its length, its scalar value, or garbage). Malformed input is not an error
// of the tree: what does not parse becomes a Garbage node, with the reason.
//
// A path leads to nodes and back. Splice changes nodes and the lengths around them.
// Varints, fixed values and the skipping of a field work without a tree, too. A Kind
// names what bytes may be; which one they are is what package kind decides.
//
// Source: RESEARCH.md#wire
package wire

import "strconv"

// A Type is a protobuf wire type, or Garbage.
type Type uint8

// Wire types have the numbers of the encoding.
const (
	Varint     Type = 0
	I64        Type = 1
	Len        Type = 2
	StartGroup Type = 3
	EndGroup   Type = 4
	I32        Type = 5
	Garbage    Type = 8 // bytes that do not parse; not on the wire
	Message    Type = 9 // the root; not on the wire
)

// typeNames are the contract's words for wire types.
var typeNames = [...]string{Varint: "varint", I64: "i64", Len: "len", StartGroup: "group", EndGroup: "end", I32: "i32", Garbage: "garbage", Message: "message"}

// FixedLen is how many bytes a value of a fixed size has; 0 for the other types.
func (t Type) FixedLen() int {
	switch t {
	case I32:
		return 4
	case I64:
		return 8
	}
	return 0
}

// String returns the contract's word: "varint", "i64", "len", "group", "i32".
func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// None is the index of no node.
const None int32 = -1

// A Node is one field, or a run of garbage, or the root.
//
// Shape: spans are half-open byte offsets into Tree.Data. [Off,Tag) is the tag,
// [Tag,Val) is the length prefix of a Len node (empty otherwise), [Val,End) the
// value: the varint, the fixed bytes, the payload, or a group's fields with its
// end tag. A node's children lie within [Val,End) in order.
//
// First is the first child: fields of a group, and of a Len node whose payload
// parses as a message (a candidate reading; the payload may well be a string).
// Nodes stand in the order of their first bytes, parents before children.
// Of a Garbage node Off, Tag and Val are the same.
type Node struct {
	Number      uint64 // field number as on the wire; 0 is possible, and malformed
	Off, Tag    int
	Val, End    int
	Parent      int32
	First, Next int32 // first child and next sibling, or None
	Type        Type

	// A varint of the tag, length, value or end tag is longer than it need be.
	Overlong bool

	// Why a Garbage node is garbage, or what is wrong with (or not followed in)
	// another.
	Err error
}

// A Tree is a parsed message. Nodes[0] is the root.
type Tree struct {
	Data  []byte
	Nodes []Node
}

// Options bounds a parse. The zero value is the default.
type Options struct {
	// Nesting that is followed; deeper payloads stay unparsed; default 100.
	MaxDepth int

	// Nodes in all; the rest of the input becomes one Garbage node; default 4,000,000.
	MaxNodes int
}
