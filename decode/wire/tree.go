package wire

import (
	"iter"
)

// Node returns node i. The pointer is valid until the next Reset.
func (t *Tree) Node(i int32) *Node { return &t.Nodes[i] }

// Children yields the indexes of node i's children in order: fields, with the garbage among them.
func (t *Tree) Children(i int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for c := t.Nodes[i].First; c != None; c = t.Nodes[c].Next {
			if !yield(c) {
				return
			}
		}
	}
}

// IsMessage reports whether node i contains fields: the root, a group, or a Len node whose whole payload parses
// strictly (valid field numbers and wire types, balanced groups, no bytes left over). An empty payload counts as
// a message.
func (t *Tree) IsMessage(i int32) bool {
	n := &t.Nodes[i]
	switch n.Type {
	case Len:
		return n.First != None || n.Val == n.End
	case StartGroup, Message:
		return true
	}
	return false
}

// Payload returns the bytes of node i's value: the payload of a Len node, the fields of a group without its end
// tag, the encoding of a scalar, or the garbage.
func (t *Tree) Payload(i int32) []byte {
	n := &t.Nodes[i]
	if n.Type == StartGroup {
		return t.Data[n.Val:t.EndTag(i):t.EndTag(i)]
	}
	return t.Data[n.Val:n.End:n.End]
}

// EndTag returns the offset of a group's end tag, or the end of the group if the tag is missing. For other nodes
// it returns their end.
func (t *Tree) EndTag(i int32) int {
	n := &t.Nodes[i]
	if n.Type != StartGroup || t.IsOpen(n) {
		return n.End
	}
	// An end tag has the size of its start tag, unless a varint is overlong. Then it begins behind the last
	// field.
	if !n.Overlong {
		return n.End - SizeVarint(n.Number<<3)
	}
	end := n.Val
	for c := range t.Children(i) {
		end = t.Nodes[c].End
	}
	return end
}

// IsOpen reports whether node n of t is a group whose end tag is missing.
func (t *Tree) IsOpen(n *Node) bool {
	if n.Type != StartGroup || n.Sound() {
		return false
	}
	e, ok := t.Fault(n).(*Error)
	return ok && e.Reason == groupOpen
}

// Fault returns the error of node n of t. It is why a Garbage node is garbage. In other nodes it is a violation of the
// encoding, or the limit because of which the payload was not parsed. It is nil for a sound field.
func (t *Tree) Fault(n *Node) error {
	switch n.fault {
	case 0:
		return nil
	case overNested:
		return ErrDepth
	case overfull:
		return errNodes
	}
	return t.Faults[n.fault-1]
}

// Uint returns the number in node i: the value of a varint or a fixed value, or the length in bytes of a Len
// payload. For other types it returns 0.
func (t *Tree) Uint(i int32) uint64 {
	n := &t.Nodes[i]
	switch n.Type {
	case Varint:
		v, _ := consumeVarint(t.Data, n.Val, n.End)
		return v
	case I64, I32:
		return Fixed(t.Data[n.Val:n.End])
	case Len:
		return uint64(n.End - n.Val)
	}
	return 0
}

// depth returns the number of nodes around node i; 0 for the root.
func (t *Tree) depth(i int32) int {
	d := 0
	for p := t.Nodes[i].Parent; p != None; p = t.Nodes[p].Parent {
		d++
	}
	return d
}

// Err returns the first error of the tree in the order of its bytes, or nil. Payloads that were not parsed
// because of a limit count as errors.
func (t *Tree) Err() error {
	for i := range t.Nodes {
		if n := &t.Nodes[i]; !n.Sound() {
			return t.Fault(n)
		}
	}
	return nil
}

// At returns the innermost node that contains offset off, or None if off is outside the data. It descends into
// Len payloads that parse as messages.
func (t *Tree) At(off int) int32 {
	if off < 0 || off >= len(t.Data) {
		return None
	}
	i := int32(0)
down:
	for {
		for c := range t.Children(i) {
			if n := &t.Nodes[c]; n.Off <= off && off < n.End {
				i = c
				continue down
			}
		}
		return i
	}
}

// A span is a range of bytes that belongs to one node.
type span struct {
	// Node is the index of the node to which the bytes belong.
	Node int32

	// Off and End are the offsets of the first byte of the span and after its last byte.
	Off, End int
}

// Spans yields the bytes that belong to each node itself, in the order of the input: the tag and length of a
// node with children, the end tag of a group, all of a leaf. The spans cover the input without overlap. None is
// empty.
func (t *Tree) Spans() iter.Seq[span] {
	return func(yield func(span) bool) { t.spans(0, yield) }
}

// spans yields the spans of node i and of everything in it. It returns false if the caller stops.
func (t *Tree) spans(i int32, yield func(span) bool) bool {
	n := &t.Nodes[i]
	own := func(lo, hi int) bool { return lo == hi || yield(span{i, lo, hi}) }
	if n.First == None {
		return own(n.Off, n.End)
	}
	if !own(n.Off, n.Val) {
		return false
		// The end tag of a group, if any, is behind the last child.
	}
	end := n.Val
	for c := range t.Children(i) {
		if !t.spans(c, yield) {
			return false
		}
		end = t.Nodes[c].End
	}
	return own(end, n.End)
}

// Append appends the tree's bytes to dst, span by span. The result equals Data.
func (t *Tree) Append(dst []byte) []byte {
	for s := range t.Spans() {
		dst = append(dst, t.Data[s.Off:s.End]...)
	}
	return dst
}
