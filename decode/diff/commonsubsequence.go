package diff

const (
	// maxTable is the maximum number of cells of the dynamic programming table for an exact longest common
	// subsequence.
	maxTable = 1 << 16

	// maxSplit is the maximum recursion depth of splitting lists at unique elements.
	maxSplit = 24
)

// An lcs finds a long common subsequence of two lists of hashes.
//
// The common beginning and end are paired first. A small remainder is solved exactly by dynamic programming. A
// larger one is split at elements that occur once in each list: those of a longest increasing subsequence are
// paired, and the lists between them are solved recursively. This is patience diff
// (https://bramcohen.livejournal.com/73318.html). The time is at most n log n per split.
type lcs struct {
	// ha and hb are the hashes of the elements, by index.
	ha, hb []uint64

	// pair is called for each pair of equal elements with their indexes.
	pair func(i, j int)
}

// pairCommon pairs equal elements of left and right, which are ascending indexes into ha and hb. depth is the
// recursion depth, 0 for the whole lists.
func (c *lcs) pairCommon(left, right []int, depth int) {
	for len(left) > 0 && len(right) > 0 && c.ha[left[0]] == c.hb[right[0]] {
		c.pair(left[0], right[0])
		left, right = left[1:], right[1:]
	}
	for len(left) > 0 && len(right) > 0 && c.ha[left[len(left)-1]] == c.hb[right[len(right)-1]] {
		c.pair(left[len(left)-1], right[len(right)-1])
		left, right = left[:len(left)-1], right[:len(right)-1]
	}
	if len(left) == 0 || len(right) == 0 {
		return
	}
	if len(left)*len(right) <= maxTable {
		c.pairByTable(left, right)
		return
	}

	// Too large for the table: split at unique elements.
	anchors := c.anchors(left, right)
	if len(anchors) == 0 || depth == maxSplit {
		c.pairGreedily(left, right)
		return
	}
	i, j := 0, 0
	for _, a := range anchors {
		c.pairCommon(left[i:a[0]], right[j:a[1]], depth+1)
		c.pair(left[a[0]], right[a[1]])
		i, j = a[0]+1, a[1]+1
	}
	c.pairCommon(left[i:], right[j:], depth+1)
}

// pairByTable pairs the elements of a longest common subsequence, by dynamic programming: best[i][j] is its length
// for left[i:] and right[j:].
func (c *lcs) pairByTable(left, right []int) {
	n, m := len(left), len(right)
	best := make([]int32, (n+1)*(m+1))
	// The table has one row and one column more than elements.
	at := func(i, j int) int { return i*(m+1) + j }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if c.ha[left[i]] == c.hb[right[j]] {
				best[at(i, j)] = best[at(i+1, j+1)] + 1
			} else {
				best[at(i, j)] = max(best[at(i+1, j)], best[at(i, j+1)])
			}
		}
	}

	// Walk back along a longest subsequence.
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case c.ha[left[i]] == c.hb[right[j]]:
			c.pair(left[i], right[j])
			i++
			j++
		case best[at(i+1, j)] >= best[at(i, j+1)]:
			i++
		default:
			j++
		}
	}
}

// anchors returns the pairs of positions in left and right at which equal elements are that occur once in each
// list. Positions ascend in both lists.
func (c *lcs) anchors(left, right []int) [][2]int {
	type places struct{ i, j, ni, nj int }
	met := make(map[uint64]*places, len(left))
	for i, k := range left {
		p := met[c.ha[k]]
		if p == nil {
			p = &places{}
			met[c.ha[k]] = p
		}
		p.i = i
		p.ni++
	}
	for j, k := range right {
		if p := met[c.hb[k]]; p != nil {
			p.j = j
			p.nj++
		}
	}

	// longestRun removes pairs that would cross others.
	mates := make([]int, len(left))
	for i, k := range left {
		mates[i] = -1

		// Only elements that occur once on each side are safe anchors, as in patience diff.
		if p := met[c.ha[k]]; p.ni == 1 && p.nj == 1 {
			mates[i] = p.j
		}
	}
	var list [][2]int
	for i, ok := range longestRun(mates) {
		if ok {
			list = append(list, [2]int{i, mates[i]})
		}
	}
	return list
}

// pairGreedily pairs each element of left with the next equal one of right. It is the fallback for lists without
// unique elements.
func (c *lcs) pairGreedily(left, right []int) {
	where := make(map[uint64][]int)
	for j, k := range right {
		where[c.hb[k]] = append(where[c.hb[k]], j)
	}
	next := 0
	for _, k := range left {
		js := where[c.ha[k]]
		for len(js) > 0 && js[0] < next {
			js = js[1:]
		}
		if len(js) > 0 {
			c.pair(k, right[js[0]])
			next = js[0] + 1
			js = js[1:]
		}
		where[c.ha[k]] = js
	}
}

// longestRun marks the elements that kept their order: those of a longest increasing subsequence of mates, which
// has for each element the index of its partner in another list. Negative mates (no partner) are ignored. Among
// several subsequences of equal length, it prefers elements that kept their positions.
func longestRun(mates []int) []bool {
	in := make([]bool, len(mates))
	most := 0
	for _, j := range mates {
		most = max(most, j+1)
	}
	// A position that was kept adds 1 to a sum, and an element adds unit, which is more than all positions
	// together.
	unit := int64(len(mates)) + 1
	sums := make([]int64, len(mates))
	before := make([]int32, len(mates))

	// tree is a Fenwick tree over the values of mates. It answers, for a range of values from 0, which
	// subsequence with the greatest sum ends in that range. Entries are indexes plus 1. Source: Fenwick, "A new
	// data structure for cumulative frequency tables", 1994.
	tree := make([]int32, most+1)
	last := int32(-1)
	for i, j := range mates {
		if j < 0 {
			continue
		}
		at := int32(-1)
		for k := j; k > 0; k &= k - 1 {
			if e := tree[k] - 1; e >= 0 && (at < 0 || sums[e] > sums[at]) {
				at = e
			}
		}
		sums[i], before[i] = unit, at
		if i == j {
			sums[i]++
		}
		if at >= 0 {
			sums[i] += sums[at]
		}
		for k := j + 1; k <= most; k += k & -k {
			if e := tree[k] - 1; e < 0 || sums[i] > sums[e] {
				tree[k] = int32(i) + 1
			}
		}
		if last < 0 || sums[i] > sums[last] {
			last = int32(i)
		}
	}
	// Follow the predecessors from the end of the best subsequence.
	for i := last; i >= 0; i = before[i] {
		in[i] = true
	}
	return in
}
