// Package diff compares two messages, two exchanges or the calls of two captures by
// structure. A list of Changes comes out; a series is compared as a whole, and a
// Variation for each path comes out.
//
// It compares what was said, not the bytes: the order of fields does not count, nor does
// an overlong varint. Protobuf and JSON become nodes first; a field that is cut off is a
// node, too. A comparison walks two nodes. Elements of a repeated field are aligned by
// content, with the longest common subsequence, then by a likely key, then by
// similarity, so an insertion is one change, and so is a move. Two texts are compared by
// words.
//
// Of an exchange, frames that are deltas of one text become one node first. Exchanges of
// two captures are paired by method and by sketches of their values.
//
// Volatile ids are values that differ in every run (UUIDs, ids, tokens, times). They are
// unified: where the same value of one side always stands for the same value of the
// other, the difference is reported as ignored.
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

// An Op says what happened to a value.
type Op string

const (
	Add    Op = "add"    // only B has it
	Remove Op = "remove" // only A has it
	Modify Op = "change"
	Move   Op = "move" // of an element of a repeated field, to another place
)

// A Change is one difference of B against A.
//
// Shape: Path is field numbers or member names joined by dots, with an index
// where a field repeats: in B of what was added, in A otherwise. In an exchange
// it begins with the frame (@down/3 1.2) or the direction (@down 1.2, joined
// deltas), or names a property of the exchange (status, code). Old and New are
// what JSON needs: a string, a number, a list of Fields for a message, []byte;
// of a move, the index in A and in B. To is the path in B where that differs.
// Ignored is empty for a real difference, else why it is none.
type Change struct {
	Path    string `json:"path"`
	Op      Op     `json:"op"`
	Old     any    `json:"old"`
	New     any    `json:"new"`
	Ignored string `json:"ignored"`
	To      string `json:"to,omitempty"`

	OldBytes Bytes `json:"-"`
	NewBytes Bytes `json:"-"`
}

// Bytes are a field as it is on the wire, its tag included: where its message
// begins is offset 0. Of joined deltas, JSON and what is no field there are none.
type Bytes struct {
	Off  int
	Data []byte
}

// A Field is a field of a message that was added or removed.
type Field struct {
	Number uint64  `json:"n"`
	Wire   string  `json:"wire"`
	Value  any     `json:"value,omitempty"`
	Fields []Field `json:"fields,omitempty"`
}

// Options says what to leave out. The zero value is the default.
type Options struct {
	Volatile bool // report volatile values as real changes, too

	// Ignore are paths without frame or indexes whose changes, and those below, are
	// ignored.
	Ignore []string
	Answer bool // of exchanges, compare only what the server sent

	MaxChanges int // changes that are returned; default 10,000

	// records compares each frame of an exchange alone: no text is joined over several.
	records bool

	// choices are the readings that somebody chose for fields of two messages;
	// exchanges have their own.
	choices []kinds.Choice
}

// Same reports whether no change counts: all are ignored.
func Same(changes []Change) bool {
	for i := range changes {
		if changes[i].Ignored == "" {
			return false
		}
	}
	return true
}

// compareTrees compares two messages. Their paths' kinds are decided over both.
//
// Shape: changes in the order of A's fields, then what B adds, at each level.
// Limits: time is proportional to the trees, and to the square of the elements
// that differ between two of a repeated field that do not, of which at most 400
// on a side are aligned; the others are paired in order.
func compareTrees(a, b *wire.Tree, o Options) []Change {
	var s shape.Shape
	s.Add(a)
	s.Add(b)
	s.Choose(o.choices)
	c := newComparison(o)
	c.nodes(place{}, c.fromTree(&s, a), c.fromTree(&s, b))
	return c.finish()
}

// compareMessages compares two messages given as bytes: as JSON if both are, else as
// protobuf.
//
// Limits: those of compareTrees; of a message of more than two million fields the rest
// is one value.
func compareMessages(a, b []byte, o Options) []Change {
	if isJSON(a) && isJSON(b) {
		c := newComparison(o)
		x, okX := c.fromJSON(a)
		y, okY := c.fromJSON(b)
		if okX && okY {
			c.nodes(place{}, x, y)
			return c.finish()
		}
	}
	return compareTrees(wire.Parse(a, wire.Options{MaxNodes: maxFields}), wire.Parse(b, wire.Options{MaxNodes: maxFields}), o)
}

// maxFields bounds the memory of a comparison, which is about 250 bytes a field.
const maxFields = 2_000_000

// isJSON reports whether data is a JSON object or array.
func isJSON(data []byte) bool {
	start := bytes.TrimLeft(data, " \t\r\n")
	return len(start) > 0 && (start[0] == '{' || start[0] == '[') && json.Valid(data)
}
