package diff

import (
	"cmp"
	"slices"
)

const (
	// maxAligned is the maximum number of elements per side and gap that are aligned by similarity.
	maxAligned = 400

	// maxCompared is the maximum sum of node weights that one alignment examines.
	maxCompared = 4e6

	// maxTried is the maximum number of pairs by whose similarity a member is judged as key.
	maxTried = 64

	// maxKeys is the maximum number of members that are tried as the key that identifies elements.
	maxKeys = 16

	// mateFloor is the similarity below which two objects are considered unrelated.
	mateFloor = 0.2

	// shareFloor is the same for two objects that share a unique value.
	shareFloor = 0.3

	// movedFloor is the same for elements at different positions.
	movedFloor = 0.6

	// scalarFloor is the minimum similarity of two scalars of one type.
	scalarFloor = 0.1

	// shapeShare is the weight of equal keys in the similarity of objects.
	shapeShare = 0.3

	// volatileSimilarity is the similarity of values that differ in volatile parts only.
	volatileSimilarity = 0.999

	// minSharedNumber is the smallest integer whose equality is not considered accidental.
	minSharedNumber = 1000

	// minSharedText is the minimum length of a text for the same purpose.
	minSharedText = 4
)

// An alignment pairs the elements of two lists that correspond to each other.
type alignment struct {
	// as and bs are the elements of the two lists.
	as, bs []*node

	// mates has, for each element of as, the index of its partner in bs, or -1.
	mates []int

	// used has, for each element of bs, whether it is paired.
	used []bool

	// budget is how much weight (node.weight, about 1 for each value) may still be compared for similarity.
	budget float64
}

// align pairs elements of as with elements of bs. mates has the index in bs of each element of as, or -1. added
// are the elements of bs without a partner.
//
// The steps, each for elements that are still unpaired: equal elements, in order and then moved ones; elements
// that differ in volatile values only; objects that exclusively share a value, or have the same key; elements
// between paired ones, so that the sum of similarities is maximal; elements that moved and changed.
func align(as, bs []*node) (mates, added []int) {
	// Make the result independent of the direction: sort the two lists first.
	swapped := slices.CompareFunc(as, bs, order) > 0
	if swapped {
		as, bs = bs, as
	}
	al := &alignment{as: as, bs: bs, mates: make([]int, len(as)), used: make([]bool, len(bs)), budget: maxCompared}
	for i := range al.mates {
		al.mates[i] = -1
	}

	// Each step examines only what the previous steps left over.
	al.pairByHash(func(n *node) uint64 { return n.exact })
	if al.isOpen() {
		al.pairByHash(func(n *node) uint64 { return n.alike })
	}
	if al.isOpen() {
		al.pairByShared()
		al.pairByKey()
	}
	if al.isOpen() {
		al.alignGaps()
		al.pairMoved()
	}
	if swapped {
		al.swap()
	}
	for j, used := range al.used {
		if !used {
			added = append(added, j)
		}
	}
	return al.mates, added
}

// pair pairs element i of as with element j of bs.
func (al *alignment) pair(i, j int) { al.mates[i], al.used[j] = j, true }

// swap exchanges the two lists.
func (al *alignment) swap() {
	mates, used := make([]int, len(al.bs)), make([]bool, len(al.as))
	for j := range mates {
		mates[j] = -1
	}
	for i, j := range al.mates {
		if j >= 0 {
			mates[j], used[i] = i, true
		}
	}
	al.as, al.bs, al.mates, al.used = al.bs, al.as, mates, used
}

// unpaired returns the indexes of the elements of as (left) and bs (right) that are still unpaired.
func (al *alignment) unpaired() (left, right []int) {
	for i, j := range al.mates {
		if j < 0 {
			left = append(left, i)
		}
	}
	for j, used := range al.used {
		if !used {
			right = append(right, j)
		}
	}
	return left, right
}

// isOpen reports whether both lists have unpaired elements.
func (al *alignment) isOpen() bool {
	return slices.Contains(al.mates, -1) && slices.Contains(al.used, false)
}

// pairByHash pairs elements for which hash returns the same: those of a common subsequence first, then moved
// elements.
func (al *alignment) pairByHash(hash func(*node) uint64) {
	left, right := al.unpaired()
	c := lcs{pair: al.pair, ha: make([]uint64, len(al.as)), hb: make([]uint64, len(al.bs))}
	for _, i := range left {
		c.ha[i] = hash(al.as[i])
	}
	for _, j := range right {
		c.hb[j] = hash(al.bs[j])
	}
	c.pairCommon(left, right, 0)
	if !al.isOpen() {
		return
	}

	// Equal elements outside of the subsequence have moved.
	where := make(map[uint64][]int)
	for _, j := range right {
		if !al.used[j] {
			where[c.hb[j]] = append(where[c.hb[j]], j)
		}
	}
	for _, i := range left {
		if js := where[c.ha[i]]; al.mates[i] < 0 && len(js) > 0 {
			al.pair(i, js[0])
			where[c.ha[i]] = js[1:]
		}
	}
}

// pairByShared pairs an element of as with an element of bs if both have a member with the same value that no other
// element has, most similar pairs first. Short texts and small numbers do not count, since they coincide by
// accident.
func (al *alignment) pairByShared() {
	left, right := al.unpaired()
	type holders struct{ a, b, na, nb int }
	owners := make(map[uint64]*holders)
	each := func(n *node, do func(uint64)) {
		// Only these values are specific enough.
		for _, m := range n.children {
			if m.kind == text && len(m.text) >= minSharedText || m.kind == integer && m.number >= minSharedNumber || m.kind == blob && len(m.bytes) >= minSharedText {
				do(m.member)
			}
		}
	}
	for _, i := range left {
		each(al.as[i], func(h uint64) {
			if owners[h] == nil {
				owners[h] = &holders{}
			}
			owners[h].a = i
			owners[h].na++
		})
	}
	for _, j := range right {
		each(al.bs[j], func(h uint64) {
			if owners[h] != nil {
				owners[h].b = j
				owners[h].nb++
			}
		})
	}

	// A value counts if exactly one element on each side has it.
	var list []candidate
	met := make(map[[2]int]bool)
	for _, i := range left {
		each(al.as[i], func(h uint64) {
			x := owners[h]
			if x.na != 1 || x.nb != 1 || met[[2]int{x.a, x.b}] {
				return
			}
			met[[2]int{x.a, x.b}] = true
			if al.budget -= al.as[x.a].weight + al.bs[x.b].weight; al.budget > 0 {
				list = append(list, candidate{x.a, x.b, similarity(al.as[x.a], al.bs[x.b])})
			}
		})
	}
	al.pairBest(list, shareFloor)
}

// A candidate is a possible pair of elements with its similarity.
type candidate struct {
	// i is the index of the element in the first list, j that in the second.
	i, j int

	// similarity is from 0 (unrelated) to 1 (equal).
	similarity float64
}

// pairBest pairs the candidates whose similarity is at least floor, most similar first, each element at most once.
func (al *alignment) pairBest(list []candidate, floor float64) {
	slices.SortStableFunc(list, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.similarity, x.similarity), cmp.Compare(abs(x.i-x.j), abs(y.i-y.j)))
	})
	for _, l := range list {
		if l.similarity >= floor && al.mates[l.i] < 0 && !al.used[l.j] {
			al.pair(l.i, l.j)
		}
	}
}

// abs returns the absolute value of n.
func abs(n int) int { return max(n, -n) }

// pairByKey pairs elements by the member that identifies them, such as a name. If several members have unique
// values, it uses the member for which the resulting pairs are most similar.
func (al *alignment) pairByKey() {
	left, right := al.unpaired()
	if len(left) == 0 || len(right) == 0 {
		return
	}

	// Try each member of the first element as the key.
	var found []candidate
	best := 0.0

	// A key is a member that each element has exactly once.
	members := al.as[left[0]].children
	for _, m := range members[:min(len(members), maxKeys)] {
		if !(m.kind == text && m.text != "" || m.kind == integer) || !isUnique(al.as, m.key) || !isUnique(al.bs, m.key) {
			continue
		}
		where := make(map[uint64]int, len(right))
		for _, j := range right {
			h, _ := memberHash(al.bs[j], m.key)
			where[h] = j
		}
		var list []candidate
		sum := 0.0
		for _, i := range left {
			h, _ := memberHash(al.as[i], m.key)
			j, ok := where[h]
			if !ok {
				continue
			}
			list = append(list, candidate{i: i, j: j})
			// Judge the member by a sample of the pairs.
			if len(list) <= maxTried {
				sum += similarity(al.as[i], al.bs[j])
			}
		}
		if sum *= float64(len(list)) / float64(max(1, min(len(list), maxTried))); sum > best {
			best, found = sum, list
		}
	}
	for _, l := range found {
		al.pair(l.i, l.j)
	}
}

// isUnique reports whether the member named key identifies the nodes: each has it exactly once, with a different
// value.
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

// memberHash returns the hash of the member of n with the given key. ok is false unless there is exactly one.
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

// alignGaps aligns the unpaired elements in each gap, i.e. between two pairs that are in the same order on both
// sides.
func (al *alignment) alignGaps() {
	inOrder := longestRun(al.mates)
	gap := func(i0, i1, j0, j1 int) {
		var left, right []int
		for i := i0; i < i1; i++ {
			if al.mates[i] < 0 {
				left = append(left, i)
			}
		}
		for j := j0; j < j1 && len(left) > 0; j++ {
			if !al.used[j] {
				right = append(right, j)
			}
		}
		if len(left) > 0 && len(right) > 0 {
			al.alignGap(left, right)
		}
	}

	// The paired elements in order delimit the gaps.
	i, j := 0, 0
	for k, ok := range inOrder {
		if ok {
			gap(i, k, j, al.mates[k])
			i, j = k+1, al.mates[k]+1
		}
	}
	gap(i, len(al.as), j, len(al.bs))
}

// alignGap aligns the unpaired elements of one gap by similarity, or pairs them in order if there are too many.
// left and right are their indexes.
func (al *alignment) alignGap(left, right []int) {
	n, m := len(left), len(right)
	cost := 0.0
	for _, i := range left {
		cost += al.as[i].weight * float64(m)
	}
	for _, j := range right {
		cost += al.bs[j].weight * float64(n)
	}
	pair := func(i, j int) { al.pair(left[i], right[j]) }
	at := func(i, j int) (a, b *node) { return al.as[left[i]], al.bs[right[j]] }
	// The quadratic alignment is too expensive here.
	if n > maxAligned || m > maxAligned || cost > al.budget {
		for k := range min(n, m) {
			if a, b := at(k, k); a.kind == b.kind {
				pair(k, k)
			}
		}
		return
	}
	al.budget -= cost
	alignInOrder(n, m, at, pair)
}

// pairMoved pairs remaining elements that are similar, although both their position and their content changed.
func (al *alignment) pairMoved() {
	left, right := al.unpaired()
	if len(left) > maxAligned || len(right) > maxAligned {
		return
	}
	var list []candidate
	for _, i := range left {
		for _, j := range right {
			a, b := al.as[i], al.bs[j]
			if a.kind != b.kind || a.kind == integer || a.kind == literal {
				continue
			}
			if al.budget -= a.weight + b.weight; al.budget < 0 {
				return
			}
			if s := similarity(a, b); s >= movedFloor {
				list = append(list, candidate{i, j, s})
			}
		}
	}
	al.pairBest(list, movedFloor)
}

// alignInOrder selects pairs of n and m elements in increasing order on both sides, so that the sum of similarities
// is maximal (Needleman and Wunsch, 1970). at returns the elements of a possible pair, and pair is called for each
// selected one.
func alignInOrder(n, m int, at func(i, j int) (a, b *node), pair func(i, j int)) {
	// best[i][j] is the maximal sum for the elements from i and j on.
	same := make([][]float64, n)
	best := make([][]float64, n+1)
	best[n] = make([]float64, m+1)
	for i := n - 1; i >= 0; i-- {
		same[i] = make([]float64, m)
		best[i] = make([]float64, m+1)
		for j := m - 1; j >= 0; j-- {
			a, b := at(i, j)
			s := similarity(a, b)
			// Different objects must not be paired only because nothing better exists.
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

	// Walk along the best path.
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
