// Package diff compares two messages, two exchanges, or the calls of two captures by structure. The result is a
// list of Changes. A series of messages is compared as a whole, and the result is a Variation for each path.
//
//	changes := diff.Compare(diff.Message{Data: a}, diff.Message{Data: b}, diff.Options{})
//	for _, c := range changes {
//		fmt.Println(c.Path, c.Op, c.Old, c.New)
//	}
//
// The comparison is about content, not bytes: the order of fields and overlong varints do not matter. Protobuf
// and JSON are first converted to nodes, including truncated fields. A comparison then walks two nodes. Elements
// of a repeated field are aligned by content with a longest common subsequence, then by a likely key, then by
// similarity. So an insertion is one change, and so is a move. Words compares two texts by words.
//
// In an exchange, frames that are deltas of one text are first joined to one node. Exchanges of two captures are
// paired by method and by the similarity of sketches of their values.
//
// Volatile ids are values that differ in every run: UUIDs, ids, tokens, times. They are unified: if a value of
// one side always corresponds to the same value of the other side, the change is reported as ignored.
//
// The commands diff and vary, the workbench and replay use this package.
//
// Source: decode/README.md#differences
package diff

import (
	"bytes"
	"encoding/json"

	kinds "unwire/decode/kind"
	"unwire/decode/transcript/shape"
	"unwire/decode/wire"
)

// An Op is the kind of a change: added, removed, changed or moved.
type Op string

const (
	// Add: only B has the value.
	Add Op = "add"

	// Remove: only A has the value.
	Remove Op = "remove"

	// Modify: the value differs.
	Modify Op = "change"

	// Move: an element of a repeated field is at another position.
	Move Op = "move"
)

// A Change is one difference between the two compared values A and B.
type Change struct {
	// Path consists of field numbers or member names joined by dots, with an index for repeated fields. For an
	// added value it is the path in B, otherwise the path in A. In an exchange it begins with the frame (@down/3
	// 1.2) or, for joined deltas, with the direction (@down 1.2). Properties of the exchange have names: status,
	// code.
	Path string `json:"path"`

	// Op is the kind of the change, such as an added field.
	Op Op `json:"op"`

	// Old is the value in A, the first of the two compared inputs, in a form for JSON: a string, a number, []byte,
	// or a list of Fields for a message. For a moved element, it is the element's index. nil if A does not have the
	// value.
	Old any `json:"old"`

	// New is the value in B, the second input, in the same form as Old; nil if B does not have the value.
	New any `json:"new"`

	// Ignored is the reason why the change does not count, or "".
	Ignored string `json:"ignored"`

	// To is the path in B if it differs from Path.
	To string `json:"to,omitempty"`

	// OldBytes is the encoded field in A, the first of the two compared inputs.
	OldBytes Bytes `json:"-"`

	// NewBytes is the encoded field in B, the second of the two compared inputs.
	NewBytes Bytes `json:"-"`
}

// Bytes is a compared field as encoded, with its tag. It is empty for joined deltas, for JSON, and for values that
// are not fields.
type Bytes struct {
	// Off is the offset of the field in the message, in bytes.
	Off int

	// Data are the encoded bytes of the field.
	Data []byte
}

// A Field is a field of a message that was added or removed.
type Field struct {
	// Number is the field's number.
	Number uint64 `json:"n"`

	// Wire is the name of the field's wire type, such as "varint".
	Wire string `json:"wire"`

	// Value is the value of a field that is not a message.
	Value any `json:"value,omitempty"`

	// Fields are the fields of an embedded message.
	Fields []Field `json:"fields,omitempty"`
}

// Options selects what counts as a change. The zero value is the default.
type Options struct {
	// Volatile also reports changes of volatile values, such as ids and times. By default they are marked as
	// ignored.
	Volatile bool

	// Ignore are paths, such as "4.1", below which changes are marked as ignored. They have neither frame addresses
	// nor list indexes.
	Ignore []string

	// Answer compares only what the server sent, and ignores the client's frames.
	Answer bool

	// MaxChanges is the maximum number of changes that are returned. The default is 10,000.
	MaxChanges int

	// records means that frames are independent records: each is compared on its own, and deltas of a text (pieces
	// of a streamed text) are not joined.
	records bool

	// choices are the types that users chose for fields, if two messages are compared. Exchanges bring their own.
	choices []kinds.Choice
}

// Same reports whether all changes in the list are ignored ones, i.e. nothing relevant differs.
func Same(changes []Change) bool {
	for i := range changes {
		if changes[i].Ignored == "" {
			return false
		}
	}
	return true
}

// compareTrees compares two messages. The kind of each path is determined from both.
//
// Shape: changes have the order of A's fields at each level, followed by additions.
//
// Limits: the time is proportional to the size of the trees, and to the square of the number of elements that
// differ between two equal elements of a repeated field. At most 400 such elements per side are aligned, and more
// are paired in order.
func compareTrees(a, b *wire.Tree, o Options) []Change {
	var s shape.Shape
	s.Add(a)
	s.Add(b)
	s.Choose(o.choices)
	c := newComparison(o)
	c.compareNodes(pathPair{}, c.fromTree(&s, a), c.fromTree(&s, b))
	return c.finish()
}

// compareMessages compares two messages as JSON if both are JSON, and as protobuf otherwise.
//
// Limits: those of compareTrees. After two million fields of a message, the remaining bytes are compared as one value.
func compareMessages(a, b []byte, o Options) []Change {
	if bytes.Equal(a, b) {
		return []Change{}
	}
	if isJSON(a) && isJSON(b) {
		c := newComparison(o)
		x, okX := c.fromJSON(a)
		y, okY := c.fromJSON(b)
		if okX && okY {
			c.compareNodes(pathPair{}, x, y)
			return c.finish()
		}
	}
	return compareTrees(wire.Parse(a, wire.Options{MaxNodes: maxFields}), wire.Parse(b, wire.Options{MaxNodes: maxFields}), o)
}

// maxFields bounds the memory of a comparison, which is about 250 bytes per field.
const maxFields = 2_000_000

// isJSON reports whether data is a JSON object or array.
func isJSON(data []byte) bool {
	start := bytes.TrimLeft(data, " \t\r\n")
	return len(start) > 0 && (start[0] == '{' || start[0] == '[') && json.Valid(data)
}
