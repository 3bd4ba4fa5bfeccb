package diff

import (
	"slices"
	"strings"

	"unwire/decode/transcript/ident"
)

const (
	maxLeaves = 32 // values of a frame that may be a delta
	maxTexts  = 4  // of these, texts
	fewDeltas = 2  // frames of one kind that make deltas
	fewCounts = 3  // frames of one kind that make a counter
)

// A leaf is a value of a frame with its path, without indexes.
type leaf struct {
	path string
	node *node
}

// A variant is the frames of both sides that hold the same leaves.
type variant struct {
	sides [2][]int // indexes into the items
	paths []leaf   // of the first frame
}

// join replaces the frames that are deltas of one text, and the counters, each
// by one item at the place of the first.
func (c *comparison) join(path string, left, right []item) (l, r []item) {
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
	for _, v := range order {
		most := max(len(v.sides[0]), len(v.sides[1]))
		if k := c.deltaLeaf(v, &leaves); k >= 0 && most >= fewDeltas {
			for side := range sides {
				c.joinTexts(path, sides[side], v.sides[side], leaves[side], k)
			}
		} else if len(v.paths) == 1 && v.paths[0].node.kind == integer && most >= fewCounts {
			for side := range sides {
				c.joinCounts(path, sides[side], v.sides[side], leaves[side])
			}
		}
	}
	joined := func(it item) bool { return it.node == nil }
	return slices.DeleteFunc(sides[0], joined), slices.DeleteFunc(sides[1], joined)
}

// leavesOf lists the values of n that are not empty. ok is false if there are
// too many, or one that a delta does not have.
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

func signature(ls []leaf) string {
	var b strings.Builder
	for _, l := range ls {
		b.WriteString(l.path)
		b.WriteByte(byte(l.node.kind) + '0')
		b.WriteByte(byte(l.node.wire) + '0')
	}
	return b.String()
}

// deltaLeaf returns which leaf of v's frames carries the deltas, or -1: the
// text that leaves the rest of the frames alike.
func (c *comparison) deltaLeaf(v *variant, leaves *[2][][]leaf) int {
	best, fewest, texts := -1, 0, 0
	for k, l := range v.paths {
		if l.node.kind != text {
			continue
		}
		if texts++; texts > maxTexts {
			return -1
		}
		rests := 0
		joins := false
		for side, frames := range v.sides {
			seen := make(map[uint64]bool)
			for _, i := range frames {
				seen[c.restHash(leaves[side][i], k)] = true
			}
			rests += len(seen)
			joins = joins || len(frames) >= fewDeltas && len(seen)*2 <= len(frames)
		}
		if joins && (best < 0 || rests < fewest) {
			best, fewest = k, rests
		}
	}
	return best
}

// restHash is the hash of all leaves but the one at k.
func (c *comparison) restHash(ls []leaf, k int) uint64 {
	var sum uint64
	for i, l := range ls {
		if i != k {
			sum += c.keyed(l.path, l.node.exact)
		}
	}
	return sum
}

// joinTexts makes one item of the frames that differ in leaf k only.
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

// joinParts joins deltas. Parts that each begin with the one before are
// snapshots of a growing text: the last has all.
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

// joinCounts makes one item with the sum of frames that hold one integer each.
// Times are not added up: the first stands for all.
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

// replace returns a copy of n in which now stands for old.
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
