// Package wire parses protobuf bytes without a schema into a lossless tree, and writes the same bytes from that
// tree.
//
// Bytes go in through Parse, and a Tree comes out. Its nodes are offsets into the bytes, so nothing is copied.
// Every byte of the input belongs to exactly one node: to its tag, its length or its scalar value. Malformed
// input is not an error of Parse: bytes that are not protobuf become a Garbage node, whose Err has the reason.
//
//	tree := wire.Parse(data, wire.Options{})
//	for i := range tree.Children(0) {
//		fmt.Println(tree.Node(i).Number, tree.Payload(i))
//	}
//
// Find and PathOf convert between nodes and field paths. Splice edits nodes and corrects the lengths around
// them. ConsumeVarint, Fixed and SkipField read single values without a tree.
//
// A wire type leaves several readings open: a Len field may be a message, a string, bytes or packed numbers. A
// Kind names such a reading. Package kind chooses among them; package decode combines both into readable fields.
package wire

import "strconv"

// A Type is a protobuf wire type, or Garbage or Message, the types of nodes without a wire type.
type Type uint8

// Wire types have the numbers of the encoding (https://protobuf.dev/programming-guides/encoding/#structure).
// Values from 8 on cannot occur on the wire, where a type has three bits.
const (
	// Varint is a number of 1 to 10 bytes, 7 bits in each, low bits first.
	Varint Type = 0

	// I64 is a value of 8 bytes, little-endian.
	I64 Type = 1

	// Len is a payload after its length, which is a varint: string, bytes, message or packed numbers.
	Len Type = 2

	// StartGroup begins a group, whose fields end at the EndGroup of the same number.
	StartGroup Type = 3

	// EndGroup is the tag behind a group. It is part of the group's node and never a node itself.
	EndGroup Type = 4

	// I32 is a value of 4 bytes, little-endian.
	I32 Type = 5

	// Garbage is a run of bytes that do not parse.
	Garbage Type = 8

	// Message is the type of the root.
	Message Type = 9
)

// typeNames are the names of wire types in JSON and in printed trees.
var typeNames = [...]string{Varint: "varint", I64: "i64", Len: "len", StartGroup: "group", EndGroup: "end", I32: "i32", Garbage: "garbage", Message: "message"}

// FixedLen returns the size in bytes of an I32 or I64 value, and 0 for types without a fixed size.
func (t Type) FixedLen() int {
	switch t {
	case I32:
		return 4
	case I64:
		return 8
	}
	return 0
}

// String returns the type's name in JSON: "varint", "i64", "len", "group", "i32", "garbage".
func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// None is the index in Tree.Nodes that means "no node".
const None int32 = -1

// A Node is one field, a run of garbage, or the root.
//
// Shape: offsets count bytes from the beginning of Tree.Data, and spans are half-open. [Off,TagEnd) is the tag,
// [TagEnd,Val) is the length prefix of a Len node (empty for other types), and [Val,End) is the value: the
// varint, the fixed bytes, the payload, or a group's fields with its end tag. For a Garbage node, Off, TagEnd
// and Val are equal. Children lie within [Val,End), in order. A parent precedes its children in Tree.Nodes.
type Node struct {
	// Number is the field number as on the wire. 0 occurs in malformed input only.
	Number uint64

	// Off is the offset at which the field begins, and TagEnd the end of its tag.
	Off, TagEnd int

	// Val is the offset at which the field's value begins, and End the end of the field.
	Val, End int

	// Parent is the index of the enclosing node; None for the root.
	Parent int32

	// First is the first child and Next the next sibling, or None. Groups have children. A Len node has some if
	// its payload parses as a message, although that payload may still be a string.
	First, Next int32

	// Type is the wire type of the field, or Garbage or Message.
	Type Type

	// Overlong reports that a varint of the tag, length, value or end tag has more bytes than necessary.
	Overlong bool

	// fault says which error of the tree is that of this node: 0 for none, overNested or overfull, or else the number of
	// the error in Tree.Faults, from 1 on. An error here would make each node larger, and the garbage collector read all
	// nodes for pointers.
	fault int32
}

// Sound reports whether the field has no error (see Tree.Fault).
func (n *Node) Sound() bool { return n.fault == 0 }

// HasValidNumber reports whether protobuf permits the field number.
func (n *Node) HasValidNumber() bool { return n.Number-1 < maxNumber }

const (
	// overNested is Node.fault of a payload that was not parsed because of ErrDepth.
	overNested = -1
	// overfull is Node.fault of a payload that was not parsed because of errNodes.
	overfull = -2
)

// A Tree is a parsed protobuf message, without a schema.
type Tree struct {
	// Data is the input, to which the nodes' offsets refer.
	Data []byte

	// Nodes has the root at index 0, then all other nodes in the order of their first bytes.
	Nodes []Node

	// Faults are the errors of nodes. A copy of the nodes needs them, too: Reset does not change them.
	Faults []error
}

// Options bounds a parse. The zero value is the default.
type Options struct {
	// MaxDepth is the number of nested messages and groups that are followed. Deeper payloads stay unparsed. The
	// default is 100.
	MaxDepth int

	// MaxNodes is the number of nodes in the whole tree. The rest of the input becomes one Garbage node. The
	// default is 4,000,000.
	MaxNodes int
}
