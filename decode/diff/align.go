package diff

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

const (
	maxAligned  = 400   // elements of a side that are aligned by similarity
	maxCompared = 4e6   // node weights that one alignment may look at
	maxKeys     = 16    // members of an element that are tried as its key
	mateFloor   = 0.2   // objects less similar are different objects
	scalarFloor = 0.1   // what scalars of one type have in common at least
	shapeShare  = 0.3   // of an object's similarity, that is the same keys
	alikeness   = 0.999 // of values that differ in volatile parts only
)

// align pairs the elements of as with those of bs, and lists the elements of bs
// that are left over. A mate of -1 is none.
//
// Equal elements pair wherever they stand, so a move is no difference; then
// those that differ in volatile values only; then those with the same key; the
// rest by the alignment, in order, that has most in common in sum.
func align(as, bs []*node) (mates, added []int) {
	mates = make([]int, len(as))
	for i := range mates {
		mates[i] = -1
	}
	used := make([]bool, len(bs))
	by := func(hash func(*node) (uint64, bool)) {
		where := make(map[uint64][]int)
		for j, b := range bs {
			if h, ok := hash(b); ok && !used[j] {
				where[h] = append(where[h], j)
			}
		}
		for i, a := range as {
			h, ok := hash(a)
			if js := where[h]; ok && mates[i] < 0 && len(js) > 0 {
				mates[i], used[js[0]] = js[0], true
				where[h] = js[1:]
			}
		}
	}
	by(func(n *node) (uint64, bool) { return n.exact, true })
	by(func(n *node) (uint64, bool) { return n.alike, true })
	if key, ok := likelyKey(as, bs); ok {
		by(func(n *node) (uint64, bool) { return memberHash(n, key) })
	}
	pairRest(as, bs, mates, used)
	for j := range bs {
		if !used[j] {
			added = append(added, j)
		}
	}
	return mates, added
}

// likelyKey returns the first member that names the elements: a string or an
// integer that each of them has, no two of a side with the same value.
func likelyKey(as, bs []*node) (string, bool) {
	if len(as) == 0 || len(bs) == 0 {
		return "", false
	}
	members := as[0].children
	for _, m := range members[:min(len(members), maxKeys)] {
		if (m.kind == text && m.text != "" || m.kind == integer) && isUnique(as, m.key) && isUnique(bs, m.key) {
			return m.key, true
		}
	}
	return "", false
}

func isUnique(nodes []*node, key string) bool {
	seen := make(map[uint64]bool, len(nodes))
	for _, n := range nodes {
		h, ok := memberHash(n, key)
		if !ok || seen[h] {
			return false
		}
		seen[h] = true
	}
	return true
}

// memberHash is the hash of the one member key of n.
func memberHash(n *node, key string) (uint64, bool) {
	var h uint64
	found := 0
	for _, m := range n.children {
		if m.key == key {
			h = m.exact
			found++
		}
	}
	return h, found == 1
}

// pairRest pairs what is left in order, so that the sum of similarities is
// greatest.
func pairRest(as, bs []*node, mates []int, used []bool) {
	var left, right []int
	var weights [2]float64
	for i, j := range mates {
		if j < 0 {
			left = append(left, i)
			weights[0] += as[i].weight
		}
	}
	for j, u := range used {
		if !u {
			right = append(right, j)
			weights[1] += bs[j].weight
		}
	}
	if len(left) == 0 || len(right) == 0 {
		return
	}
	pair := func(i, j int) { mates[left[i]], used[right[j]] = right[j], true }
	at := func(i, j int) (a, b *node) { return as[left[i]], bs[right[j]] }
	n, m := len(left), len(right)
	cost := weights[0]*float64(len(right)) + weights[1]*float64(len(left))
	if n > maxAligned || m > maxAligned || cost > maxCompared {
		for k := range min(n, m) {
			if a, b := at(k, k); a.kind == b.kind {
				pair(k, k)
			}
		}
		return
	}
	// Of alignments that are as good, the same one is taken both ways round.
	if slices.CompareFunc(left, right, func(i, j int) int { return order(as[i], bs[j]) }) <= 0 {
		alignInOrder(n, m, at, pair)
		return
	}
	alignInOrder(m, n, func(j, i int) (a, b *node) { return at(i, j) }, func(j, i int) { pair(i, j) })
}

// alignInOrder calls pair for the n and m elements that at returns so that the
// sum of the similarities is greatest and no two pairs cross.
func alignInOrder(n, m int, at func(i, j int) (a, b *node), pair func(i, j int)) {
	same := make([][]float64, n)
	best := make([][]float64, n+1)
	best[n] = make([]float64, m+1)
	for i := n - 1; i >= 0; i-- {
		same[i] = make([]float64, m)
		best[i] = make([]float64, m+1)
		for j := m - 1; j >= 0; j-- {
			a, b := at(i, j)
			s := similarity(a, b)
			if a.kind == object && s < mateFloor {
				s = 0
			}
			same[i][j] = s
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if s > 0 {
				best[i][j] = max(best[i][j], s+best[i+1][j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case same[i][j] > 0 && best[i][j] == same[i][j]+best[i+1][j+1]:
			pair(i, j)
			i++
			j++
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
}

// order compares nodes by content.
func order(a, b *node) int {
	return cmp.Or(
		cmp.Compare(a.key, b.key), cmp.Compare(a.kind, b.kind), cmp.Compare(a.wire, b.wire), cmp.Compare(a.number, b.number),
		strings.Compare(a.text, b.text), bytes.Compare(a.bytes, b.bytes), slices.CompareFunc(a.children, b.children, order),
	)
}

// similarity is from 0, nothing in common, to 1, the same.
func similarity(a, b *node) float64 {
	switch {
	case a.kind != b.kind || a.wire != b.wire:
		return 0
	case a.exact == b.exact:
		return 1
	case a.alike == b.alike:
		return alikeness
	}
	switch a.kind {
	case text:
		return scalarFloor + (1-scalarFloor)*commonEnds(a.text, b.text)
	case object, list:
		return objectSimilarity(a, b)
	}
	return scalarFloor
}

// objectSimilarity weighs members by what they hold. Elements of one key are
// taken in order.
func objectSimilarity(a, b *node) float64 {
	as, bs := a.children, b.children
	shared, keys := 0.0, 0.0
	common, all := 0.0, 0.0
	for len(as) > 0 || len(bs) > 0 {
		switch {
		case len(bs) == 0 || len(as) > 0 && less(as[0].key, bs[0].key, a.wire == 0):
			keys++
			all += as[0].weight
			as = as[1:]
		case len(as) == 0 || less(bs[0].key, as[0].key, a.wire == 0):
			keys++
			all += bs[0].weight
			bs = bs[1:]
		default:
			keys++
			shared++
			w := (as[0].weight + bs[0].weight) / 2
			all += w
			common += w * similarity(as[0], bs[0])
			as, bs = as[1:], bs[1:]
		}
	}
	if keys == 0 {
		return 1
	}
	return shapeShare*shared/keys + (1-shapeShare)*common/all
}

// commonEnds is the share of the longer text that both begin and end with.
func commonEnds(a, b string) float64 {
	short, long := min(len(a), len(b)), max(len(a), len(b))
	head := 0
	for head < short && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < short-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return float64(head+tail) / float64(long)
}
