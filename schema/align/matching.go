package align

import "slices"

// A graph is a bipartite graph: rows (field numbers) are matched with columns (JSON names). Optional rows and
// columns may stay unmatched.
type graph struct {
	// edges[i][j] means that row i and column j may be matched.
	edges [][]bool

	// optionalRow marks the rows that may remain unmatched.
	optionalRow []bool
	// optionalColumn marks the columns that may remain unmatched.
	optionalColumn []bool

	// partner has the matched column of each row, once match has succeeded. Indices from rows or columns on are
	// dummy vertices, which stand for "unmatched".
	partner []int
	// rows and columns are the numbers of rows and columns, without dummy vertices.
	rows, columns int
}

// newGraph returns a bipartite graph without edges.
func newGraph(rows, columns int) *graph {
	g := &graph{rows: rows, columns: columns, edges: make([][]bool, rows), optionalRow: make([]bool, rows), optionalColumn: make([]bool, columns)}
	for i := range g.edges {
		g.edges[i] = make([]bool, columns)
	}
	return g
}

// adjacent reports whether row r may be matched with column c. So that a perfect matching exists, dummies
// extend the graph to a square: each optional column has a dummy row (index from rows on), each optional row
// has a dummy column (index from columns on), and dummies may be matched with each other.
func (g *graph) adjacent(r, c int) bool {
	switch {
	case r < g.rows && c < g.columns:
		return g.edges[r][c]
	case r < g.rows:
		return c-g.columns == r && g.optionalRow[r]
	case c < g.columns:
		return r-g.rows == c && g.optionalColumn[c]
	}
	return true
}

// match finds a matching that covers all rows and columns that are not optional, by augmenting paths (Kuhn's
// algorithm), and stores it in partner. It reports whether there is one.
func (g *graph) match() bool {
	size := g.rows
	if slices.Contains(g.optionalRow, true) || slices.Contains(g.optionalColumn, true) {
		// Dummies for both sides make the graph a square.
		size += g.columns
	} else if g.rows != g.columns {
		return false
	}
	// The row of each column, plus one.
	of := make([]int, size)
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

// augment looks for an augmenting path from row r and applies it. of has the row of each column, and seen marks
// the columns that were tried.
func (g *graph) augment(r int, of []int, seen []bool) bool {
	for c := range of {
		if seen[c] || !g.adjacent(r, c) {
			continue
		}
		seen[c] = true
		// Column c is free, or its row can move to another column.
		if of[c] == 0 || g.augment(of[c]-1, of, seen) {
			of[c] = r + 1
			return true
		}
	}
	return false
}

// groups returns a group for each row, such that partners can be exchanged within a group without losing the
// perfect matching. The groups are the strongly connected components of the directed graph in which each row
// points to the rows whose partner it could have. A row that is alone in its group has the same partner in every
// perfect matching.
//
// It requires a matching.
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

// scc is the state of finding strongly connected components with Tarjan's algorithm (1972).
type scc struct {
	// g is the bipartite graph with its matching.
	g *graph
	// owner has the row of each column. index, low and group are Tarjan's numbers by row.
	owner, index, low, group []int
	// on marks the rows that are on the stack of Tarjan's algorithm.
	on []bool
	// stack has the rows whose strongly connected component is incomplete.
	stack []int
	// next is the next index to assign, and groups the number of components found so far.
	next, groups int
}

// visit assigns components to row r and to all rows reachable from it (the recursive step of Tarjan's
// algorithm).
func (s *scc) visit(r int) {
	s.next++
	s.index[r], s.low[r], s.on[r] = s.next, s.next, true
	s.stack = append(s.stack, r)
	for c := range s.owner {
		if !s.g.adjacent(r, c) {
			continue
		}
		// The row could have column c, so it points to the row that has it.
		switch to := s.owner[c]; {
		case s.index[to] == 0:
			s.visit(to)
			s.low[r] = min(s.low[r], s.low[to])
		case s.on[to]:
			s.low[r] = min(s.low[r], s.index[to])
		}
	}

	// The component is complete if no row of it reaches an older one.
	if s.low[r] != s.index[r] {
		return
	}
	s.groups++
	for {
		// Everything above r on the stack belongs to its component.
		last := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		s.on[last], s.group[last] = false, s.groups
		if last == r {
			return
		}
	}
}
