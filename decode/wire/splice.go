package wire

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// An Op is what an Edit does.
type Op uint8

const (
	Replace Op = iota // the whole node, tag included, by Data
	Delete            // the whole node

	// The node's value by Data; a length and an end tag stay and are adapted.
	Set

	Before // Data in front of the node
	After  // Data behind the node

	// Data behind the last field in the node: the root, a message, a group.
	Into
)

var opNames = [...]string{"replace", "delete", "set", "insert before", "insert after", "insert into"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// An Edit changes one node of a tree. Data is written as it is: encoded fields,
// or with Set an encoded value.
type Edit struct {
	Op   Op
	Node int32
	Data []byte
}

// errOverlap is wrapped where two edits change the same bytes.
var errOverlap = errors.New("edits overlap")

// A cut replaces Data[lo:hi].
type cut struct {
	lo, hi int
	data   []byte
	owner  int32 // the innermost node whose payload changes
	depth  int   // of owner
	edit   int   // index, for errors and to keep the order
}

// Splice returns the tree's bytes with the edits applied.
//
// Shape: nothing changes but the edited spans and the lengths that enclose
// them. A length that was written longer than need be keeps its width if the
// new one fits; any other has as few bytes as it takes. Several insertions at
// one place stand in the order of the edits. The tree is not changed.
// Errors: an edit of a node that does not allow it, and errOverlap.
func Splice(t *Tree, edits []Edit) ([]byte, error) {
	cuts := make([]cut, 0, len(edits)+8)
	for k, e := range edits {
		c, err := t.cut(e)
		if err != nil {
			return nil, err
		}
		c.edit, c.depth = k, t.depth(c.owner)
		cuts = append(cuts, c)
	}
	sortCuts(cuts)
	if err := t.overlap(cuts, edits); err != nil {
		return nil, err
	}
	cuts = append(cuts, t.lengths(cuts)...)
	sortCuts(cuts)
	size := len(t.Data)
	for _, c := range cuts {
		size += len(c.data) - (c.hi - c.lo)
	}
	out := make([]byte, 0, max(size, 0))
	pos := 0
	for _, c := range cuts {
		out = append(append(out, t.Data[pos:c.lo]...), c.data...)
		pos = c.hi
	}
	return append(out, t.Data[pos:]...), nil
}

// cut turns an edit into the bytes it replaces.
func (t *Tree) cut(e Edit) (cut, error) {
	if e.Node < 0 || int(e.Node) >= len(t.Nodes) {
		return cut{}, fmt.Errorf("wire: %s node %d: there are %d", e.Op, e.Node, len(t.Nodes))
	}
	n := &t.Nodes[e.Node]
	c := cut{data: e.Data, owner: n.Parent}
	if n.Type == Message && e.Op != Set && e.Op != Into {
		return c, fmt.Errorf("wire: %s: the root has no place among others", e.Op)
	}
	switch e.Op {
	case Replace:
		c.lo, c.hi = n.Off, n.End
	case Delete:
		c.lo, c.hi, c.data = n.Off, n.End, nil
	case Before:
		c.lo, c.hi = n.Off, n.Off
	case After:
		c.lo, c.hi = n.End, n.End
	case Set:
		c.lo, c.hi = n.Val, n.End
		switch n.Type {
		case Len, Message:
			c.owner = e.Node
		case StartGroup:
			c.owner, c.hi = e.Node, t.EndTag(e.Node)
		}
	case Into:
		if !t.IsMessage(e.Node) {
			return c, fmt.Errorf("wire: %s field %d at %#x: it is no message", e.Op, n.Number, n.Off)
		}
		c.lo, c.owner = n.End, e.Node
		if n.Type == StartGroup {
			c.lo = t.EndTag(e.Node)
		}
		c.hi = c.lo
	default:
		return c, fmt.Errorf("wire: %s does not exist", e.Op)
	}
	return c, nil
}

// sortCuts puts cuts in the order of the output. At one place insertions come
// before what is replaced, and those of an inner node, which ends there, before
// those of an outer one.
func sortCuts(cuts []cut) {
	slices.SortStableFunc(cuts, func(a, b cut) int {
		return cmp.Or(
			cmp.Compare(a.lo, b.lo),
			cmp.Compare(min(a.hi-a.lo, 1), min(b.hi-b.lo, 1)),
			cmp.Compare(b.depth, a.depth),
			cmp.Compare(a.edit, b.edit),
		)
	})
}

// overlap looks for edits of what another edit replaces.
func (t *Tree) overlap(cuts []cut, edits []Edit) error {
	fail := func(a, b int) error {
		at := func(e Edit) string {
			return fmt.Sprintf("%s field %d at %#x", e.Op, t.Nodes[e.Node].Number, t.Nodes[e.Node].Off)
		}
		return fmt.Errorf("wire: %s, %s: %w", at(edits[a]), at(edits[b]), errOverlap)
	}
	replaced := map[int32]int{}
	for k, e := range edits {
		if e.Op != Replace && e.Op != Delete && e.Op != Set {
			continue
		}
		if other, twice := replaced[e.Node]; twice {
			return fail(other, k)
		}
		replaced[e.Node] = k
	}
	for _, c := range cuts {
		for i := c.owner; i != None; i = t.Nodes[i].Parent {
			if other, yes := replaced[i]; yes && other != c.edit {
				return fail(other, c.edit)
			}
		}
	}
	return nil
}

// lengths returns the cuts that adapt the lengths around others.
func (t *Tree) lengths(cuts []cut) []cut {
	delta := map[int32]int{}
	var nodes []int32
	grow := func(i int32, by int) {
		if _, seen := delta[i]; !seen {
			nodes = append(nodes, i)
		}
		delta[i] += by
	}
	for _, c := range cuts {
		// All that encloses it is listed, so that one pass from the inside
		// outwards can add up.
		for i := c.owner; i != None; i = t.Nodes[i].Parent {
			grow(i, 0)
		}
		grow(c.owner, len(c.data)-(c.hi-c.lo))
	}
	slices.Sort(nodes)
	var out []cut
	for _, i := range slices.Backward(nodes) {
		n, by := &t.Nodes[i], delta[i]
		if by == 0 || n.Parent == None {
			continue
		}
		if n.Type == Len {
			was, width := uint64(n.End-n.Val), n.Val-n.Tag
			if width == SizeVarint(was) {
				width = 0
			}
			length := AppendVarintWidth(nil, was+uint64(by), width)
			out = append(out, cut{lo: n.Tag, hi: n.Val, data: length, owner: n.Parent, depth: t.depth(n.Parent), edit: -1})
			by += len(length) - (n.Val - n.Tag)
		}
		delta[n.Parent] += by
	}
	return out
}
