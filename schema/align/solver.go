package align

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A solver works from the roots inwards: what is in a field is looked at once
// the field is joined.
type solver struct {
	pairs     []dataPair
	positions map[string]*position
	results   map[string]*result
	queue     []string
}

// A result is what is known of one position.
type result struct {
	joined map[uint64]joined
	doubts []Doubt
	unread string // why nothing can be told
}

type joined struct {
	name string
	*edge
}

// Solve says what the pairs tell.
//
// Limits: a pair that takes more than about two million comparisons is left out.
func (a *Aligner) Solve() *Report {
	left := map[int]bool{}
	for {
		s := &solver{pairs: a.sorted(), positions: map[string]*position{}, results: map[string]*result{}}
		r := &Report{}
		bodies := s.start(r, left)
		for len(s.queue) > 0 {
			key := s.queue[0]
			s.queue = s.queue[1:]
			s.solve(s.positions[key])
		}
		before := len(left)
		for i, b := range bodies {
			if b.left < 0 { // what it seemed to rule out it need not
				left[i] = true
			}
		}
		if len(left) == before {
			s.report(r)
			return r
		}
	}
}

// start parses the pairs, but for those that are left out.
func (s *solver) start(r *Report, left map[int]bool) map[int]*body {
	bodies := map[int]*body{}
	for i, p := range s.pairs {
		where := p.Evidence[0] + ", " + p.Evidence[1]
		b, err := newBody(p)
		if err == nil && left[i] {
			err = errLimit
		}
		if err != nil {
			r.Skipped = append(r.Skipped, fmt.Sprintf("%s: %v", where, err))
			continue
		}
		bodies[i] = b
		root := instance{body: b, at: b.root(), pair: i, trusted: b.agree(b.root()) != differs}
		if !root.trusted {
			r.Differ = append(r.Differ, where)
		}
		r.Pairs++
		s.addInstance(p.Message, p.Type, root)
	}
	return bodies
}

// addInstance adds an instance to a position, and has it solved anew.
func (s *solver) addInstance(key string, md protoreflect.MessageDescriptor, i instance) {
	p := s.positions[key]
	if p == nil {
		if len(s.positions) == maxPositions {
			return
		}
		p = &position{key: key, desc: md, seen: map[at]bool{}}
		s.positions[key] = p
	}
	if len(p.instances) < maxInstances && p.addInstance(i) && !slices.Contains(s.queue, key) {
		s.queue = append(s.queue, key)
	}
}

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

// child is the position of what is in a joined field.
func (s *solver) child(p *position, n uint64) position {
	key := childName(p.key, n)
	if p.desc != nil {
		if fd := p.desc.Fields().ByNumber(protoreflect.FieldNumber(n)); fd != nil {
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

// childName is the name of the type of a field, as schema infer makes it.
func childName(parent string, n uint64) string {
	i := strings.LastIndexByte(parent, '.') + 1
	return parent[:i] + fmt.Sprintf("%sField%d", parent[i:], n)
}

// resolve joins the fields of a position as far as they can be told.
func resolve(p *position, depth int) *result {
	r := &result{joined: map[uint64]joined{}}
	b := newBoard(p)
	if len(b.numbers) > maxBoard || len(b.names) > maxBoard {
		r.unread = errLimit.Error()
		return r
	}
	b.fill(p)
	votes := b.votes(p)
	g := b.graph()
	for at := range votes {
		b.fixEdge(g, at)
	}
	if !g.match() {
		r.unread = "its pairs contradict each other"
		r.acceptVotes(b, votes)
		return r
	}
	groups := g.groups()
	for b.removeMisfits(g, groups, depth) && g.match() {
		groups = g.groups()
	}
	if !g.match() {
		r.unread = "its pairs contradict each other"
		r.acceptVotes(b, votes)
		return r
	}
	b.collect(g, g.groups(), r)
	r.acceptVotes(b, votes)
	return r
}

// fixEdge makes an edge the only one of its ends, if it is one.
func (b *board) fixEdge(g *graph, at [2]int) {
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

// removeMisfits takes away edges between exchangeable messages whose contents, over
// all pairs, do not fit.
func (b *board) removeMisfits(g *graph, groups []int, depth int) (changed bool) {
	if depth > maxDepth {
		return false
	}
	size := map[int]int{}
	for r := range b.numbers {
		size[groups[r]]++
	}
	for r := range b.numbers {
		if n := size[groups[r]]; n > maxRefinement {
			continue
		}
		for c := range b.names {
			e := b.edges[[2]int{r, c}]
			if !g.edges[r][c] || e == nil || len(e.insides) == 0 || len(e.pairs) < 2 || e.types|e.lists != tMessage {
				continue
			}
			if g.partner[r] == c && alone(groups, groups[r]) {
				continue
			}
			inner := &position{seen: map[at]bool{}}
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

func alone(groups []int, group int) bool {
	n := 0
	for _, g := range groups {
		if g == group {
			n++
		}
	}
	return n == 1
}

// collect takes over what all matchings have in common, and names the rest.
func (b *board) collect(g *graph, groups []int, r *result) {
	open := map[int]*Doubt{}
	doubt := func(group int) *Doubt {
		if open[group] == nil {
			open[group] = &Doubt{}
		}
		return open[group]
	}
	for row, c := range g.partner {
		if alone(groups, groups[row]) {
			if row < g.rows && c < g.column {
				r.joined[b.numbers[row]] = joined{b.names[c], b.edges[[2]int{row, c}]}
			}
			continue
		}
		if row < g.rows {
			d := doubt(groups[row])
			d.Numbers = append(d.Numbers, b.numbers[row])
		}
		if c < g.column {
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

// votes are the joins that instances tell which are not the same data in both
// halves.
func (b *board) votes(p *position) map[[2]int]*edge {
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
	for at, e := range votes {
		if rows[at[0]] > 1 || columns[at[1]] > 1 || !e.ok() {
			delete(votes, at)
		}
	}
	return votes
}

// distinct are the fields of an instance whose value stands once on each side
// and is none that two fields have by chance.
func (b *board) distinct(i instance) map[[2]int]cell {
	fields, _ := fieldsOf(i.tree, i.node)
	found := map[[2]int]cell{}
	rows, columns := map[int]int{}, map[int]int{}
	for n, nodes := range fields {
		for c, v := range i.obj.elems {
			cell := i.cell(i.tree, nodes, v)
			// not the same, but perhaps in parts
			if !cell.ok() && v.kind == object && len(nodes) == 1 {
				p := at{i.tree, nodes[0], v}
				if i.tree.IsMessage(nodes[0]) {
					cell.types, cell.inside, cell.sure = tMessage, []inner{{at: p, of: tMessage}}, i.overlap(p)
				}
			}
			if cell.ok() && cell.sure >= sureBits {
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

// acceptVotes adds the votes for fields and names of which nothing else is known.
func (r *result) acceptVotes(b *board, votes map[[2]int]*edge) {
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
		if old, ok := r.joined[n]; ok && old.name == name {
			r.joined[n] = joined{name, old.merged(e)}
			continue
		}
		if _, ok := r.joined[n]; !ok && !used[name] && !doubted[n] && b.isUncontradicted(at) {
			r.joined[n] = joined{name, e}
		}
	}
}

// isUncontradicted reports whether no trusted instance says anything against an edge.
func (b *board) isUncontradicted(at [2]int) bool { return b.spare[0][at[0]] && b.spare[1][at[1]] }

// merged is an edge of trusted pairs with one of others.
func (e *edge) merged(o *edge) *edge {
	out := *e
	out.insides = append(slices.Clone(e.insides), o.insides...)
	out.pairs = append(slices.Clone(e.pairs), o.pairs...)
	if e.types&o.types|e.lists&o.lists != 0 {
		out.types, out.lists = e.types&o.types, e.lists&o.lists
	}
	return &out
}
