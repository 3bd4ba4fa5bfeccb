package align

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A solver matches JSON names with field numbers for all message types, from the outermost inwards: the
// messages nested in a field are compared once the field's name is known.
type solver struct {
	// pairs are all recorded message pairs.
	pairs []dataPair
	// positions maps the keys of message types to their recorded messages.
	positions map[string]*position
	// results are the matches found so far, by the key of the message type.
	results map[string]*result
	// queue has the keys of message types to be solved (again), because they have new instances.
	queue []string
}

// A result has the matches found for one message type.
type result struct {
	// joined are the fields whose JSON name is certain, by field number.
	joined map[uint64]joined
	// doubts are groups of fields that can be matched in several ways.
	doubts []Doubt
	// unread is the reason why the message type could not be solved, or "".
	unread string
}

// A joined is the JSON name found for a field, with the possible types.
type joined struct {
	// name is the field's name in JSON.
	name string

	// edge has the evidence that the field number and the JSON name belong together, with the possible types of the
	// field.
	*edge
}

// Solve matches JSON names with field numbers, using all pairs added so far.
//
// Limits: a pair that takes more than about two million comparisons is left out.
func (a *Aligner) Solve() *Report {
	left := map[int]bool{}
	for {
		// The sorted order makes the result independent of the order in which pairs were added.
		s := &solver{pairs: a.sorted(), positions: map[string]*position{}, results: map[string]*result{}}
		r := &Report{}
		bodies := s.start(r, left)
		for len(s.queue) > 0 {
			key := s.queue[0]
			s.queue = s.queue[1:]
			s.solve(s.positions[key])
		}

		// A pair that exceeded the limit seems to contradict more than it does. Solve again without such pairs.
		before := len(left)
		for i, b := range bodies {
			if b.comparisonsLeft < 0 {
				left[i] = true
			}
		}
		if len(left) == before {
			s.report(r)
			return r
		}
	}
}

// start parses the message pairs, except those whose index is in left, and adds their outermost messages to the
// solver. It returns the parsed pairs by index.
func (s *solver) start(r *Report, left map[int]bool) map[int]*body {
	bodies := map[int]*body{}
	for i, p := range s.pairs {
		where := p.Evidence[0] + " and " + p.Evidence[1]
		b, err := newBody(p)
		if err == nil && left[i] {
			err = errLimit
		}
		if err != nil {
			r.Skipped = append(r.Skipped, fmt.Sprintf("%s: %v", where, err))
			continue
		}
		bodies[i] = b
		root := instance{body: b, messagePair: b.root(), pair: i, trusted: b.agree(b.root()) != differs}
		if !root.trusted {
			r.Differ = append(r.Differ, where)
		}
		r.Pairs++
		s.addInstance(p.Message, p.Type, root)
	}
	return bodies
}

// addInstance adds a message to the message type called key, and queues that type to be solved. md is the
// type's descriptor or nil.
func (s *solver) addInstance(key string, md protoreflect.MessageDescriptor, i instance) {
	p := s.positions[key]
	if p == nil {
		if len(s.positions) == maxPositions {
			return
		}
		p = &position{key: key, desc: md, seen: map[messagePair]bool{}}
		s.positions[key] = p
	}
	// New instances can change what was concluded, so the position is solved again.
	if len(p.instances) < maxInstances && p.addInstance(i) && !slices.Contains(s.queue, key) {
		s.queue = append(s.queue, key)
	}
}

// solve matches the fields of one message type, and adds the messages nested in the matched fields to
// the solver.
func (s *solver) solve(p *position) {
	r := resolve(p, 0)
	s.results[p.key] = r
	for _, n := range slices.Sorted(maps.Keys(r.joined)) {
		j := r.joined[n]
		md := s.child(p, n)
		for _, in := range j.messages() {
			if in.of == tAny {
				s.addInstance(in.name, nil, in.instance)
			} else {
				s.addInstance(md.key, md.desc, in.instance)
			}
		}
	}
}

// child returns the message type, without recorded messages, of the values of field n of the message type p.
func (s *solver) child(p *position, n uint64) position {
	key := childName(p.key, n)
	if p.desc != nil {
		if fd := p.desc.Fields().ByNumber(protoreflect.FieldNumber(n)); fd != nil {
			// Entries are not messages of their own here.
			if fd.IsMap() {
				fd = fd.MapValue()
			}
			if md := fd.Message(); md != nil {
				return position{key: string(md.FullName()), desc: md}
			}
		}
	}
	return position{key: key}
}

// childName returns an invented name for the message type of field n, built from the parent type's name as
// package infer does.
func childName(parent string, n uint64) string {
	i := strings.LastIndexByte(parent, '.') + 1
	return parent[:i] + fmt.Sprintf("%sField%d", parent[i:], n)
}

// resolve matches the fields of a message type with JSON names, as far as the recorded messages determine it.
// depth is the nesting of calls from removeMisfits.
func resolve(p *position, depth int) *result {
	r := &result{joined: map[uint64]joined{}}

	// The time grows with the product of numbers and names.
	b := newMatrix(p)
	if len(b.numbers) > maxMatrixSide || len(b.names) > maxMatrixSide {
		r.unread = errLimit.Error()
		return r
	}

	b.fill(p)
	votes := b.votes(p)
	g := b.graph()

	// What significant values show is certain, so it is fixed before matching.
	for at := range votes {
		b.fixEdge(g, at)
	}
	if !g.match() {
		r.unread = "the recorded pairs of this message contradict each other"
		r.acceptVotes(b, votes)
		return r
	}

	groups := g.groups()

	// Removing edges can make further edges certain, so repeat.
	for b.removeMisfits(g, groups, depth) && g.match() {
		groups = g.groups()
	}
	if !g.match() {
		r.unread = "the recorded pairs of this message contradict each other"
		r.acceptVotes(b, votes)
		return r
	}

	b.collect(g, g.groups(), r)
	r.acceptVotes(b, votes)
	return r
}

// fixEdge makes the edge at (row, column) the only one in its row and column. It does nothing if g lacks that
// edge.
func (b *matrix) fixEdge(g *graph, at [2]int) {
	if !g.edges[at[0]][at[1]] {
		return
	}
	for c := range b.names {
		g.edges[at[0]][c] = c == at[1]
	}
	for r := range b.numbers {
		g.edges[r][at[1]] = r == at[0]
	}
}

// removeMisfits removes candidate matches between fields that are interchangeable so far, if the contents of
// their nested messages contradict each other over all pairs. It reports whether it removed any.
func (b *matrix) removeMisfits(g *graph, groups []int, depth int) (changed bool) {
	if depth > maxDepth {
		return false
	}
	size := map[int]int{}
	for r := range b.numbers {
		size[groups[r]]++
	}
	for r := range b.numbers {
		// Comparing the content of very many exchangeable messages takes too long.
		if n := size[groups[r]]; n > maxRefinement {
			continue
		}
		for c := range b.names {
			e := b.edges[[2]int{r, c}]
			if !g.edges[r][c] || e == nil || len(e.insides) == 0 || len(e.pairs) < 2 || e.types|e.lists != tMessage {
				continue
			}
			// The partner is certain already.
			if g.partner[r] == c && alone(groups, groups[r]) {
				continue
			}

			inner := &position{seen: map[messagePair]bool{}}
			insides := e.messages()
			for _, i := range insides[:min(len(insides), maxInstances)] {
				inner.addInstance(i.instance)
			}
			if resolve(inner, depth+1).unread != "" {
				g.edges[r][c], changed = false, true
			}
		}
	}
	return changed
}

// alone reports whether a group has only one member. groups has the group of each row.
func alone(groups []int, group int) bool {
	n := 0
	for _, g := range groups {
		if g == group {
			n++
		}
	}
	return n == 1
}

// collect adds the matches of g to r: a group of one row is certain, a larger group is ambiguous (a Doubt).
func (b *matrix) collect(g *graph, groups []int, r *result) {
	open := map[int]*Doubt{}
	doubt := func(group int) *Doubt {
		if open[group] == nil {
			open[group] = &Doubt{}
		}
		return open[group]
	}

	for row, c := range g.partner {
		// The row has the same partner in every perfect matching.
		if alone(groups, groups[row]) {
			if row < g.rows && c < g.columns {
				r.joined[b.numbers[row]] = joined{b.names[c], b.edges[[2]int{row, c}]}
			}
			continue
		}

		// Otherwise several matchings are perfect, so the names of the group are ambiguous.
		if row < g.rows {
			d := doubt(groups[row])
			d.Numbers = append(d.Numbers, b.numbers[row])
		}
		if c < g.columns {
			d := doubt(groups[row])
			d.Names = append(d.Names, b.names[c])
		}
	}

	for _, d := range open {
		if len(d.Numbers) > 0 && len(d.Names) > 0 {
			slices.Sort(d.Names)
			r.doubts = append(r.doubts, *d)
		}
	}
	slices.SortFunc(r.doubts, func(x, y Doubt) int { return cmp.Compare(x.Numbers[0], y.Numbers[0]) })
}

// votes returns the matches, by row and column, that the significant values of untrusted instances show.
// Contradictory ones are left out.
func (b *matrix) votes(p *position) map[[2]int]*edge {
	votes := map[[2]int]*edge{}
	rows, columns := map[int]int{}, map[int]int{}
	for _, i := range p.instances {
		if i.trusted {
			continue
		}
		for at, c := range b.distinct(i) {
			e := votes[at]
			if e == nil {
				e = &edge{}
				votes[at] = e
				rows[at[0]]++
				columns[at[1]]++
			}
			e.addPair(i, c)
		}
	}

	// Two candidates for one field or name exclude each other.
	for at, e := range votes {
		if rows[at[0]] > 1 || columns[at[1]] > 1 || !e.ok() {
			delete(votes, at)
		}
	}
	return votes
}

// distinct returns the fields of an instance whose significant value agrees with exactly one JSON member and
// with no other field, by row and column.
func (b *matrix) distinct(i instance) map[[2]int]cell {
	fields, _ := fieldsOf(i.tree, i.node)
	found := map[[2]int]cell{}
	rows, columns := map[int]int{}, map[int]int{}
	for n, nodes := range fields {
		for c, v := range i.obj.elems {
			cell := i.cell(i.tree, nodes, v)
			// A message that is not the same as a whole may be the same in parts.
			if !cell.ok() && v.kind == object && len(nodes) == 1 {
				p := messagePair{i.tree, nodes[0], v}
				if i.tree.IsMessage(nodes[0]) {
					cell.types, cell.inside, cell.significance = tMessage, []innerMessage{{messagePair: p, of: tMessage}}, i.overlap(p)
				}
			}
			if cell.ok() && cell.significance >= significantBits {
				at := [2]int{b.row[n], b.column[i.obj.names[c]]}
				found[at] = cell
				rows[at[0]]++
				columns[at[1]]++
			}
		}
	}

	for at := range found {
		if rows[at[0]] > 1 || columns[at[1]] > 1 {
			delete(found, at)
		}
	}
	return found
}

// acceptVotes adds to r the votes (see votes) for fields and names about which nothing else is known.
func (r *result) acceptVotes(b *matrix, votes map[[2]int]*edge) {
	// Names and numbers that are joined or in doubt are not available.
	used := map[string]bool{}
	for _, j := range r.joined {
		used[j.name] = true
	}
	doubted := map[uint64]bool{}
	for _, d := range r.doubts {
		for _, n := range d.Numbers {
			doubted[n] = true
		}
		for _, n := range d.Names {
			used[n] = true
		}
	}

	for at, e := range votes {
		n, name := b.numbers[at[0]], b.names[at[1]]
		// The vote confirms a join.
		if old, ok := r.joined[n]; ok && old.name == name {
			r.joined[n] = joined{name, old.merged(e)}
			continue
		}
		if _, ok := r.joined[n]; !ok && !used[name] && !doubted[n] && b.isUncontradicted(at) {
			r.joined[n] = joined{name, e}
		}
	}
}

// isUncontradicted reports whether no trusted instance requires another match for the row or the column at.
func (b *matrix) isUncontradicted(at [2]int) bool {
	return b.optional[0][at[0]] && b.optional[1][at[1]]
}

// merged combines e, found in trusted instances, with o, found for the same field in other instances.
func (e *edge) merged(o *edge) *edge {
	out := *e
	out.insides = append(slices.Clone(e.insides), o.insides...)
	out.pairs = append(slices.Clone(e.pairs), o.pairs...)
	if e.types&o.types|e.lists&o.lists != 0 {
		out.types, out.lists = e.types&o.types, e.lists&o.lists
	}
	return &out
}
