package diff

import (
	"slices"
	"strings"

	"unwire/decode/transcript/ident"
)

const (
	// maxLeaves is the maximum number of values in a frame that may be a delta, i.e. carry a piece of a streamed
	// text.
	maxLeaves = 32

	// maxTexts is the maximum number of texts in a frame that may be a delta.
	maxTexts = 4

	// fewDeltas is the minimum number of similar frames that are considered deltas of one text.
	fewDeltas = 2

	// fewCounts is the minimum number of frames with a single number that are considered a counter.
	fewCounts = 3
)

// A leaf is a scalar value in a frame. path is its path without list indexes.
type leaf struct {
	// path is the path of the value in the frame: field numbers or member names joined by dots, without list
	// indexes.
	path string

	// node is the scalar value.
	node *node
}

// A variant is the set of frames that have values of the same types at the same paths.
type variant struct {
	// sides are the indexes of the variant's frames in the two compared lists of items.
	sides [2][]int

	// paths are the leaves of the variant's first frame.
	paths []leaf
}

// joinDeltas replaces, on both sides, the deltas of a streamed text by one item with the whole text, and the frames
// of a counter by one item with their sum. The new item takes the position of the first frame. path is the address
// of the direction, such as "@down".
func (c *comparison) joinDeltas(path string, left, right []item) (l, r []item) {
	sides := [2][]item{left, right}
	leaves := [2][][]leaf{}
	variants := make(map[string]*variant)
	var order []*variant
	for side, items := range sides {
		leaves[side] = make([][]leaf, len(items))
		for i, it := range items {
			ls, ok := leavesOf(nil, "", it.node)
			if !ok || len(ls) == 0 {
				continue
			}
			leaves[side][i] = ls
			name := signature(ls)
			v := variants[name]
			if v == nil {
				v = &variant{paths: ls}
				variants[name] = v
				order = append(order, v)
			}
			v.sides[side] = append(v.sides[side], i)
		}
	}

	// Frames of one variant are deltas if they differ in one text only.
	for _, v := range order {
		most := max(len(v.sides[0]), len(v.sides[1]))
		if k := c.deltaLeaf(v, &leaves); k >= 0 && most >= fewDeltas {
			for side := range sides {
				c.joinTexts(path, sides[side], v.sides[side], leaves[side], k)
			}

			// A single number is a counter if there are many such frames, such as the progress of a
			// download.
		} else if len(v.paths) == 1 && v.paths[0].node.kind == integer && most >= fewCounts {
			for side := range sides {
				c.joinCounts(path, sides[side], v.sides[side], leaves[side])
			}
		}
	}
	joined := func(it item) bool { return it.node == nil }
	return slices.DeleteFunc(sides[0], joined), slices.DeleteFunc(sides[1], joined)
}

// leavesOf appends the non-empty values below n, which has the given path, to ls. ok is false if n cannot be a
// delta, because it has too many values or is damaged.
func leavesOf(ls []leaf, path string, n *node) (_ []leaf, ok bool) {
	switch n.kind {
	case object, list:
		for _, child := range n.children {
			if ls, ok = leavesOf(ls, path+"."+child.key, child); !ok {
				return nil, false
			}
		}
		return ls, true
	case garbage:
		return nil, false
	}
	if isEmpty(n) {
		return ls, true
	}
	return append(ls, leaf{path, n}), len(ls) < maxLeaves
}

// signature returns a map key that is equal for leaves with equal paths and types.
func signature(ls []leaf) string {
	var b strings.Builder
	for _, l := range ls {
		b.WriteString(l.path)
		b.WriteByte(byte(l.node.kind) + '0')
		b.WriteByte(byte(l.node.wire) + '0')
	}
	return b.String()
}

// deltaLeaf returns the index of the leaf whose text is a delta: most frames of v are equal apart from it. It
// returns -1 if there is none.
func (c *comparison) deltaLeaf(v *variant, leaves *[2][][]leaf) int {
	best, fewest, texts := -1, 0, 0
	for k, l := range v.paths {
		if l.node.kind != text {
			continue
		}
		if texts++; texts > maxTexts {
			return -1
		}
		// Count the variants of the frame apart from this text.
		rests := 0
		joins := false
		for side, frames := range v.sides {
			seen := make(map[uint64]bool)
			for _, i := range frames {
				seen[c.restHash(leaves[side][i], k)] = true
			}
			rests += len(seen)
			joins = joins || len(frames) >= fewDeltas && len(seen)*2 <= len(frames)
			// At least half of the frames must be equal to others apart from this text.
		}
		if joins && (best < 0 || rests < fewest) {
			best, fewest = k, rests
		}
	}

	return best
}

// restHash returns a hash of all leaves except the one at index k, so that frames that differ only in that leaf
// have the same hash.
func (c *comparison) restHash(ls []leaf, k int) uint64 {
	var sum uint64
	for i, l := range ls {
		if i != k {
			sum += c.keyed(l.path, l.node.exact)
		}
	}
	return sum
}

// joinTexts replaces frames that differ only in the text of leaf k by one item with the concatenated text. frames
// are the indexes of the frames in items, leaves the leaves of each item; replaced items get a nil node.
func (c *comparison) joinTexts(path string, items []item, frames []int, leaves [][]leaf, k int) {
	groups := make(map[uint64][]int)
	var order []uint64
	for _, i := range frames {
		h := c.restHash(leaves[i], k)
		if groups[h] == nil {
			order = append(order, h)
		}
		groups[h] = append(groups[h], i)
	}

	// Each group of equal frames becomes one text.
	for _, h := range order {
		group := groups[h]
		parts := make([]string, len(group))
		for n, i := range group {
			parts[n] = leaves[i][k].node.text
		}
		first := group[0]
		whole := &node{key: leaves[first][k].node.key, kind: text, wire: leaves[first][k].node.wire, text: joinParts(parts)}
		c.hash(whole)
		items[first] = item{path, c.replace(items[first].node, leaves[first][k].node, whole)}
		for _, i := range group[1:] {
			items[i].node = nil
		}
	}
}

// joinParts concatenates deltas. If each part begins with the previous one, the parts are snapshots of a growing
// text, and the last one is the whole text.
func joinParts(parts []string) string {
	grows := len(parts) > 2
	for i := 1; i < len(parts) && grows; i++ {
		grows = strings.HasPrefix(parts[i], parts[i-1])
	}
	if grows && parts[0] != parts[len(parts)-1] {
		return parts[len(parts)-1]
	}
	return strings.Join(parts, "")
}

// joinCounts replaces frames that contain one integer each by one item with their sum. Times are not summed: the
// first one is kept. The parameters are those of joinTexts.
func (c *comparison) joinCounts(path string, items []item, frames []int, leaves [][]leaf) {
	if len(frames) == 0 {
		return
	}
	first := frames[0]
	old := leaves[first][0].node
	sum := *old
	for _, i := range frames[1:] {
		if !ident.IsTime(old.number) {
			sum.number += leaves[i][0].node.number
		}
		items[i].node = nil
	}
	c.hash(&sum)
	items[first] = item{path, c.replace(items[first].node, old, &sum)}
}

// replace returns a copy of the tree n in which the node old is replaced by now. If old is not in the tree, it
// returns n itself.
func (c *comparison) replace(n, old, now *node) *node {
	if n == old {
		return now
	}
	for i, child := range n.children {
		if made := c.replace(child, old, now); made != child {
			out := *n
			out.children = slices.Clone(n.children)
			out.children[i] = made
			c.hash(&out)
			return &out
		}
	}
	return n
}
