package diff

import (
	"cmp"
	"slices"
)

const (
	// maxAligned bounds the elements of a side, in one gap, that are aligned by
	// similarity.
	maxAligned = 400

	maxCompared = 4e6   // node weights that one alignment may look at
	maxTried    = 64    // pairs that a key is judged by
	maxKeys     = 16    // members of an element that are tried as its key
	mateFloor   = 0.2   // objects less similar are different objects
	shareFloor  = 0.3   // the same, where they alone have a value in common
	movedFloor  = 0.6   // the same, of elements in different places
	scalarFloor = 0.1   // what scalars of one type have in common at least
	shapeShare  = 0.3   // of an object's similarity, that is the same keys
	alikeness   = 0.999 // of values that differ in volatile parts only
	telling     = 1000  // integers from here on are not had in common by chance
	tellingText = 4     // the same for the length of a text
)

// An alignment pairs the elements of two lists.
type alignment struct {
	as, bs []*node
	mates  []int  // of each of as, its index in bs, or -1
	used   []bool // of bs
	budget float64
}

// align pairs the elements of as with those of bs, and lists the elements of bs
// that are left over. A mate of -1 is none.
//
// Equal elements pair first, those in order before those that moved; then those
// that differ in volatile values only; then those that alone have a value in
// common, or the same key; then, between what is paired already, those whose
// alignment in order has most in common in sum; then what moved and changed.
func align(as, bs []*node) (mates, added []int) {
	// Of alignments that are as good, the same one is taken both ways round.
	swapped := slices.CompareFunc(as, bs, order) > 0
	if swapped {
		as, bs = bs, as
	}
	al := &alignment{as: as, bs: bs, mates: make([]int, len(as)), used: make([]bool, len(bs)), budget: maxCompared}
	for i := range al.mates {
		al.mates[i] = -1
	}
	al.byHash(func(n *node) uint64 { return n.exact })
	if al.isOpen() {
		al.byHash(func(n *node) uint64 { return n.alike })
	}
	if al.isOpen() {
		al.byShared()
		al.byKey()
	}
	if al.isOpen() {
		al.inGaps()
		al.moved()
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

func (al *alignment) pair(i, j int) { al.mates[i], al.used[j] = j, true }

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

// left returns what is not paired yet.
func (al *alignment) left() (left, right []int) {
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

func (al *alignment) isOpen() bool {
	return slices.Contains(al.mates, -1) && slices.Contains(al.used, false)
}

// byHash pairs elements of equal hash: as many as can be in order, then the rest.
func (al *alignment) byHash(hash func(*node) uint64) {
	left, right := al.left()
	c := commoner{pair: al.pair, ha: make([]uint64, len(al.as)), hb: make([]uint64, len(al.bs))}
	for _, i := range left {
		c.ha[i] = hash(al.as[i])
	}
	for _, j := range right {
		c.hb[j] = hash(al.bs[j])
	}
	c.common(left, right, 0)
	if !al.isOpen() {
		return
	}
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

// byShared pairs elements that hold a value that no other element of either
// side holds, the most similar first.
func (al *alignment) byShared() {
	left, right := al.left()
	type holders struct{ a, b, na, nb int }
	held := make(map[uint64]*holders)
	each := func(n *node, do func(uint64)) {
		for _, m := range n.children {
			if m.kind == text && len(m.text) >= tellingText || m.kind == integer && m.number >= telling || m.kind == blob && len(m.bytes) >= tellingText {
				do(m.member)
			}
		}
	}
	for _, i := range left {
		each(al.as[i], func(h uint64) {
			if held[h] == nil {
				held[h] = &holders{}
			}
			held[h].a = i
			held[h].na++
		})
	}
	for _, j := range right {
		each(al.bs[j], func(h uint64) {
			if held[h] != nil {
				held[h].b = j
				held[h].nb++
			}
		})
	}
	var list []likely
	met := make(map[[2]int]bool)
	for _, i := range left {
		each(al.as[i], func(h uint64) {
			x := held[h]
			if x.na != 1 || x.nb != 1 || met[[2]int{x.a, x.b}] {
				return
			}
			met[[2]int{x.a, x.b}] = true
			if al.budget -= al.as[x.a].weight + al.bs[x.b].weight; al.budget > 0 {
				list = append(list, likely{x.a, x.b, similarity(al.as[x.a], al.bs[x.b])})
			}
		})
	}
	al.best(list, shareFloor)
}

// A likely pair of elements.
type likely struct {
	i, j int
	like float64
}

// best pairs the most similar first, each element once.
func (al *alignment) best(list []likely, floor float64) {
	slices.SortStableFunc(list, func(x, y likely) int {
		return cmp.Or(cmp.Compare(y.like, x.like), cmp.Compare(abs(x.i-x.j), abs(y.i-y.j)))
	})
	for _, l := range list {
		if l.like >= floor && al.mates[l.i] < 0 && !al.used[l.j] {
			al.pair(l.i, l.j)
		}
	}
}

func abs(n int) int { return max(n, -n) }

// byKey pairs what is left by the member that names elements, if one does: of
// the members that could, the one whose pairs are most similar.
func (al *alignment) byKey() {
	left, right := al.left()
	if len(left) == 0 || len(right) == 0 {
		return
	}
	var found []likely
	best := 0.0
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
		var list []likely
		sum := 0.0
		for _, i := range left {
			h, _ := memberHash(al.as[i], m.key)
			j, ok := where[h]
			if !ok {
				continue
			}
			list = append(list, likely{i: i, j: j})
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

// inGaps pairs what is left between elements that are paired in order, in order
// and so that the sum of similarities is greatest.
func (al *alignment) inGaps() {
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
			al.gap(left, right)
		}
	}
	i, j := 0, 0
	for k, ok := range inOrder {
		if ok {
			gap(i, k, j, al.mates[k])
			i, j = k+1, al.mates[k]+1
		}
	}
	gap(i, len(al.as), j, len(al.bs))
}

// gap aligns what is left in one gap.
func (al *alignment) gap(left, right []int) {
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

// moved pairs elements that moved and changed.
func (al *alignment) moved() {
	left, right := al.left()
	if len(left) > maxAligned || len(right) > maxAligned {
		return
	}
	var list []likely
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
				list = append(list, likely{i, j, s})
			}
		}
	}
	al.best(list, movedFloor)
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
