package align

import "slices"

// A graph is a bipartite graph of rows and columns, of which some may stay
// without a partner.
type graph struct {
	// by row, by column
	edges [][]bool

	// rows that need no partner
	spareRow    []bool
	spareColumn []bool

	// of each row, a column; columns behind the last are the rows' own dummies
	partner      []int
	rows, column int
}

func newGraph(rows, columns int) *graph {
	g := &graph{rows: rows, column: columns, edges: make([][]bool, rows), spareRow: make([]bool, rows), spareColumn: make([]bool, columns)}
	for i := range g.edges {
		g.edges[i] = make([]bool, columns)
	}
	return g
}

// adjacent reports whether row r may have column c. The square of both sides:
// rows from g.rows on are dummies that take a spare column each, columns from
// g.column on are dummies that take a spare row each, and dummies take dummies.
func (g *graph) adjacent(r, c int) bool {
	switch {
	case r < g.rows && c < g.column:
		return g.edges[r][c]
	case r < g.rows:
		return c-g.column == r && g.spareRow[r]
	case c < g.column:
		return r-g.rows == c && g.spareColumn[c]
	}
	return true
}

// match finds a matching that leaves only spare ones alone.
func (g *graph) match() bool {
	size := g.rows
	if slices.Contains(g.spareRow, true) || slices.Contains(g.spareColumn, true) {
		size += g.column // with dummies
	} else if g.rows != g.column {
		return false
	}
	of := make([]int, size) // the row of each column, plus one
	for r := range size {
		if !g.augment(r, of, make([]bool, size)) {
			return false
		}
	}
	g.partner = make([]int, size)
	for c, r := range of {
		g.partner[r-1] = c
	}
	return true
}

func (g *graph) augment(r int, of []int, seen []bool) bool {
	for c := range of {
		if seen[c] || !g.adjacent(r, c) {
			continue
		}
		seen[c] = true
		if of[c] == 0 || g.augment(of[c]-1, of, seen) {
			of[c] = r + 1
			return true
		}
	}
	return false
}

// groups are the rows between which partners can be exchanged so that a
// matching stays one: an own number for each strongly connected part of the
// graph that leads from a row to those whose partner it could have. A row that
// is alone in its group has the same partner in every matching.
//
// It wants a matching.
func (g *graph) groups() []int {
	s := &scc{g: g, index: make([]int, len(g.partner)), low: make([]int, len(g.partner)), group: make([]int, len(g.partner)), on: make([]bool, len(g.partner))}
	s.owner = make([]int, len(g.partner))
	for r, c := range g.partner {
		s.owner[c] = r
	}
	for r := range g.partner {
		if s.index[r] == 0 {
			s.visit(r)
		}
	}
	return s.group
}

// scc is Tarjan's algorithm.
type scc struct {
	g                        *graph
	owner, index, low, group []int
	on                       []bool
	stack                    []int
	next, groups             int
}

func (s *scc) visit(r int) {
	s.next++
	s.index[r], s.low[r], s.on[r] = s.next, s.next, true
	s.stack = append(s.stack, r)
	for c := range s.owner {
		if !s.g.adjacent(r, c) {
			continue
		}
		switch to := s.owner[c]; {
		case s.index[to] == 0:
			s.visit(to)
			s.low[r] = min(s.low[r], s.low[to])
		case s.on[to]:
			s.low[r] = min(s.low[r], s.index[to])
		}
	}
	if s.low[r] != s.index[r] {
		return
	}
	s.groups++
	for {
		last := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		s.on[last], s.group[last] = false, s.groups
		if last == r {
			return
		}
	}
}
