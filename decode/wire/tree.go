package wire

import (
	"iter"
)

// Node returns node i. It is valid until the tree is Reset.
func (t *Tree) Node(i int32) *Node { return &t.Nodes[i] }

// Children yields the fields of a group, of a Len node that parses as a
// message, or of the root, with the garbage among them, in order.
func (t *Tree) Children(i int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for c := t.Nodes[i].First; c != None; c = t.Nodes[c].Next {
			if !yield(c) {
				return
			}
		}
	}
}

// IsMessage reports whether node i holds fields: the root, a group, or a Len
// node whose whole payload parses strictly: field numbers of 1 to 2^29-1, wire
// types that exist, balanced groups, nothing left over. An empty payload does.
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

// Payload is the value's bytes: the payload of a Len node, the fields of a
// group without its end tag, a scalar's encoding, garbage itself.
func (t *Tree) Payload(i int32) []byte {
	n := &t.Nodes[i]
	if n.Type == StartGroup {
		return t.Data[n.Val:t.EndTag(i):t.EndTag(i)]
	}
	return t.Data[n.Val:n.End:n.End]
}

// EndTag is the offset of a group's end tag, or the group's end if it has none.
// For other nodes it is their end.
func (t *Tree) EndTag(i int32) int {
	n := &t.Nodes[i]
	if n.Type != StartGroup || IsOpen(n) {
		return n.End
	}
	if !n.Overlong {
		return n.End - SizeVarint(n.Number<<3)
	}
	end := n.Val
	for c := range t.Children(i) {
		end = t.Nodes[c].End
	}
	return end
}

// IsOpen reports whether n is a group that lacks its end tag.
func IsOpen(n *Node) bool {
	e, ok := n.Err.(*Error)
	return ok && n.Type == StartGroup && e.Reason == groupOpen
}

// Uint is the number a node's value encodes: a varint, a fixed 32- or 64-bit
// value, or the length of a Len node's payload. It is 0 for all others.
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

// depth is how many nodes enclose node i; 0 for the root.
func (t *Tree) depth(i int32) int {
	d := 0
	for p := t.Nodes[i].Parent; p != None; p = t.Nodes[p].Parent {
		d++
	}
	return d
}

// Err returns the first error of the tree, in the order of its bytes, or nil.
// Payloads that were not followed because of a limit count.
func (t *Tree) Err() error {
	for i := range t.Nodes {
		if t.Nodes[i].Err != nil {
			return t.Nodes[i].Err
		}
	}
	return nil
}

// At returns the innermost node whose bytes include offset off, or None. A Len
// node's children are looked into.
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

// A span is a run of bytes that belongs to one node.
type span struct {
	Node     int32
	Off, End int
}

// Spans yields every node's own bytes in the order of the input: the tag and
// length of a node with children, a group's end tag, all of a leaf. The spans
// meet and do not overlap, and are never empty.
func (t *Tree) Spans() iter.Seq[span] {
	return func(yield func(span) bool) { t.spans(0, yield) }
}

func (t *Tree) spans(i int32, yield func(span) bool) bool {
	n := &t.Nodes[i]
	own := func(lo, hi int) bool { return lo == hi || yield(span{i, lo, hi}) }
	if n.First == None {
		return own(n.Off, n.End)
	}
	if !own(n.Off, n.Val) {
		return false
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

// Append appends the tree's bytes, span by span; they are Data again.
func (t *Tree) Append(dst []byte) []byte {
	for s := range t.Spans() {
		dst = append(dst, t.Data[s.Off:s.End]...)
	}
	return dst
}
