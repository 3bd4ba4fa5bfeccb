package wire

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// An Op is the kind of an Edit, such as replacing a node.
type Op uint8

const (
	// Replace replaces the whole node, tag included, by Data.
	Replace Op = iota

	// Delete removes the node with its tag.
	Delete

	// SetValue replaces the node's value by Data. The tag and a group's end tag remain, and a length is adapted.
	SetValue

	// InsertBefore inserts Data in front of the node.
	InsertBefore

	// InsertAfter inserts Data behind the node.
	InsertAfter

	// AppendInto inserts Data behind the last field inside the node: the root, a message or a group.
	AppendInto
)

// opNames are the names of operations in error messages.
var opNames = [...]string{"replace", "delete", "set", "insert before", "insert after", "insert into"}

// String returns the name of the operation in error messages, such as "replace" or "insert before".
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// An Edit is a change to one node of a message tree.
type Edit struct {
	// Op is the kind of the change.
	Op Op

	// Node is the index in Tree.Nodes of the changed node.
	Node int32

	// Data is written unchanged: encoded fields, or for SetValue an encoded value. Delete ignores it.
	Data []byte
}

// errOverlap is wrapped by Splice if two edits change the same bytes.
var errOverlap = errors.New("the edits overlap")

// A patch replaces the bytes Data[lo:hi] of a tree by data. It is the result of an Edit, or corrects a length.
type patch struct {
	// lo is the offset in Tree.Data of the first replaced byte.
	lo int

	// hi is the offset in Tree.Data after the last replaced byte; equal to lo for an insertion.
	hi int

	// data are the bytes that replace Tree.Data[lo:hi].
	data []byte

	// owner is the innermost node whose payload changes its size because of the patch.
	owner int32

	// depth is the number of nodes that enclose owner.
	depth int

	// edit is the index of the Edit, for errors and for the order of insertions; -1 for the length of an
	// enclosing node.
	edit int
}

// Splice returns the tree's bytes with the edits applied. The tree does not change.
//
// Shape: only the edited spans and the lengths of enclosing nodes change. An overlong length keeps its width if
// the new value fits; other lengths have as few bytes as possible. Insertions at one place have the order of the
// edits.
//
// Errors: an edit that is impossible for its node, and overlapping edits.
func Splice(t *Tree, edits []Edit) ([]byte, error) {
	// One patch for each edit.
	patches := make([]patch, 0, len(edits)+8)
	for k, e := range edits {
		c, err := t.patch(e)
		if err != nil {
			return nil, err
		}
		c.edit, c.depth = k, t.depth(c.owner)
		patches = append(patches, c)
	}
	sortPatches(patches)
	if err := t.checkOverlap(patches, edits); err != nil {
		return nil, err
	}

	// The edits change the sizes of enclosing nodes, so add patches for their lengths.
	patches = append(patches, t.lengthPatches(patches)...)
	sortPatches(patches)

	// Copy the input and replace the patched spans. The exact size avoids growing the result.
	size := len(t.Data)
	for _, c := range patches {
		size += len(c.data) - (c.hi - c.lo)
	}
	out := make([]byte, 0, max(size, 0))
	pos := 0
	for _, c := range patches {
		out = append(append(out, t.Data[pos:c.lo]...), c.data...)
		pos = c.hi
	}
	return append(out, t.Data[pos:]...), nil
}

// patch converts an edit of a node to a replacement of bytes.
func (t *Tree) patch(e Edit) (patch, error) {
	if e.Node < 0 || int(e.Node) >= len(t.Nodes) {
		return patch{}, fmt.Errorf("%s node %d: the tree has only %d nodes", e.Op, e.Node, len(t.Nodes))
	}
	n := &t.Nodes[e.Node]
	c := patch{data: e.Data, owner: n.Parent}

	// The root is no field, so it cannot be replaced, deleted or have neighbours.
	if n.Type == Message && e.Op != SetValue && e.Op != AppendInto {
		return c, fmt.Errorf("%s: the whole message has no neighbouring fields", e.Op)
	}

	// owner is the parent for edits of a whole node, and the node itself for edits of its contents.
	switch e.Op {
	case Replace:
		c.lo, c.hi = n.Off, n.End
	case Delete:
		c.lo, c.hi, c.data = n.Off, n.End, nil
	case InsertBefore:
		c.lo, c.hi = n.Off, n.Off
	case InsertAfter:
		c.lo, c.hi = n.End, n.End
	case SetValue:
		c.lo, c.hi = n.Val, n.End
		switch n.Type {
		case Len, Message:
			c.owner = e.Node
		case StartGroup:
			c.owner, c.hi = e.Node, t.EndTag(e.Node)
		}
	case AppendInto:
		if !t.IsMessage(e.Node) {
			return c, fmt.Errorf("%s field %d at %#x: the field is not a message", e.Op, n.Number, n.Off)
		}
		c.lo, c.owner = n.End, e.Node

		// Behind the last field of a group comes its end tag, so new fields go before the tag.
		if n.Type == StartGroup {
			c.lo = t.EndTag(e.Node)
		}
		c.hi = c.lo
	default:
		return c, fmt.Errorf("the edit %s does not exist", e.Op)
	}
	return c, nil
}

// sortPatches sorts patches in the order of the output. At one offset, insertions precede replacements, and an
// insertion at the end of an inner node precedes that of the enclosing one.
func sortPatches(cuts []patch) {
	slices.SortStableFunc(cuts, func(a, b patch) int {
		return cmp.Or(
			cmp.Compare(a.lo, b.lo),
			cmp.Compare(min(a.hi-a.lo, 1), min(b.hi-b.lo, 1)),
			cmp.Compare(b.depth, a.depth),
			cmp.Compare(a.edit, b.edit),
		)
	})
}

// checkOverlap returns an error if an edit changes bytes that another edit replaces.
func (t *Tree) checkOverlap(cuts []patch, edits []Edit) error {
	fail := func(a, b int) error {
		at := func(e Edit) string {
			return fmt.Sprintf("%s field %d at %#x", e.Op, t.Nodes[e.Node].Number, t.Nodes[e.Node].Off)
		}
		return fmt.Errorf("%s, %s: %w", at(edits[a]), at(edits[b]), errOverlap)
	}

	// At most one edit may replace each node.
	replaced := map[int32]int{}
	for k, e := range edits {
		if e.Op != Replace && e.Op != Delete && e.Op != SetValue {
			continue
		}
		if other, twice := replaced[e.Node]; twice {
			return fail(other, k)
		}
		replaced[e.Node] = k
	}

	// No edit may be inside a node that another edit replaces.
	for _, c := range cuts {
		for i := c.owner; i != None; i = t.Nodes[i].Parent {
			if other, yes := replaced[i]; yes && other != c.edit {
				return fail(other, c.edit)
			}
		}
	}
	return nil
}

// lengthPatches returns the patches that correct the lengths of all Len nodes around other patches.
func (t *Tree) lengthPatches(cuts []patch) []patch {
	// delta is by how many bytes a node's payload grows.
	delta := map[int32]int{}
	var nodes []int32
	grow := func(i int32, by int) {
		if _, seen := delta[i]; !seen {
			nodes = append(nodes, i)
		}
		delta[i] += by
	}
	for _, c := range cuts {
		// Enclosing nodes are listed too, so that the loop below can add up from the inside outwards in one go.
		for i := c.owner; i != None; i = t.Nodes[i].Parent {
			grow(i, 0)
		}
		grow(c.owner, len(c.data)-(c.hi-c.lo))
	}

	// Parents have lower indexes than their children, so the reverse order is from the inside outwards.
	slices.Sort(nodes)
	var out []patch
	for _, i := range slices.Backward(nodes) {
		n, by := &t.Nodes[i], delta[i]
		if by == 0 || n.Parent == None {
			continue
		}
		if n.Type == Len {
			// An overlong length keeps its width; 0 means as few bytes as possible.
			was, width := uint64(n.End-n.Val), n.Val-n.TagEnd
			if width == SizeVarint(was) {
				width = 0
			}
			length := AppendVarintWidth(nil, was+uint64(by), width)
			out = append(out, patch{lo: n.TagEnd, hi: n.Val, data: length, owner: n.Parent, depth: t.depth(n.Parent), edit: -1})
			// The length itself may have grown by a byte.
			by += len(length) - (n.Val - n.TagEnd)
		}
		delta[n.Parent] += by
	}
	return out
}
