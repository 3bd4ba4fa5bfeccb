package diff

const (
	maxTable = 1 << 16 // cells of the exact search for common elements
	maxSplit = 24      // times that lists are split at elements that occur once
)

// A commoner finds elements that two lists have in common in the same order.
//
// What both begin and end with is common. What is left is searched exactly
// where that is small; longer lists are split at the elements that occur once
// in each, the longest run of which is in order in both ("patience"). The time
// is at most n log n a split.
type commoner struct {
	ha, hb []uint64 // hashes by index
	pair   func(i, j int)
}

func (c *commoner) common(left, right []int, depth int) {
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
		c.table(left, right)
		return
	}
	anchors := c.anchors(left, right)
	if len(anchors) == 0 || depth == maxSplit {
		c.greedy(left, right)
		return
	}
	i, j := 0, 0
	for _, a := range anchors {
		c.common(left[i:a[0]], right[j:a[1]], depth+1)
		c.pair(left[a[0]], right[a[1]])
		i, j = a[0]+1, a[1]+1
	}
	c.common(left[i:], right[j:], depth+1)
}

// table finds a longest common subsequence.
func (c *commoner) table(left, right []int) {
	n, m := len(left), len(right)
	best := make([]int32, (n+1)*(m+1))
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

// anchors are places in left and right of elements that occur once in each,
// ascending in both.
func (c *commoner) anchors(left, right []int) [][2]int {
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
	mates := make([]int, len(left))
	for i, k := range left {
		mates[i] = -1
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

// greedy pairs each of left with the next equal one of right.
func (c *commoner) greedy(left, right []int) {
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

// longestRun marks a longest ascending subsequence of mates, of which those
// below 0 do not count; of several, one with most elements in their old places.
func longestRun(mates []int) []bool {
	in := make([]bool, len(mates))
	most := 0
	for _, j := range mates {
		most = max(most, j+1)
	}
	unit := int64(len(mates)) + 1
	sums := make([]int64, len(mates))
	before := make([]int32, len(mates))

	// Of each prefix of values, from 1, the run with the greatest sum that ends in it.
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
	for i := last; i >= 0; i = before[i] {
		in[i] = true
	}
	return in
}
