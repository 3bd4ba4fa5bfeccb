package align

import (
	"maps"
	"slices"
)

// An edge is a field that may be a member, with all that pairs say of it.
type edge struct {
	cell
	byName   map[string]int32
	byNumber map[int32]string
	insides  []inside
	pairs    []int
}

// An inside is a message in a field of an instance.
type inside struct {
	of   types
	name string
	instance
}

// messages are those that the edge's field holds, if nothing but one kind of
// message can be in it.
func (e *edge) messages() (out []inside) {
	of := (e.types | e.lists) & (tMessage | tGroup | tMap | tAny | tStruct | tValue)
	for _, in := range e.insides {
		if in.of == of {
			out = append(out, in)
		}
	}
	return out
}

// addPair adds what one more pair of values says; it reports whether anything is left.
func (e *edge) addPair(i instance, c cell) bool {
	if e.pairs == nil {
		e.cell.types, e.cell.lists, e.keys, e.values = everyType, everyType, everyType, everyType
		e.byName, e.byNumber = map[string]int32{}, map[int32]string{}
	}
	e.types &= c.types
	e.lists &= c.lists
	if c.types&tMap != 0 {
		e.keys &= c.keys
		e.values &= c.values
	}
	for _, n := range c.names {
		e.addName(n)
	}
	if e.types&tMap != 0 && (e.keys == 0 || e.values == 0) {
		e.types &^= tMap
	}
	for _, in := range c.inside {
		e.insides = append(e.insides, inside{in.of, in.name, instance{body: i.body, at: in.at, pair: i.pair, trusted: i.trusted}})
	}
	if len(e.pairs) == 0 || e.pairs[len(e.pairs)-1] != i.pair {
		e.pairs = append(e.pairs, i.pair)
		e.sure += c.sure
	}
	return e.ok()
}

// addName adds an enum's value. A number has one name and a name one number, or
// it is no enum.
func (e *edge) addName(n named) {
	number, hasName := e.byName[n.name]
	name, hasNumber := e.byNumber[n.number]
	if hasName && number != n.number || hasNumber && name != n.name {
		e.types &^= tEnum
		e.lists &^= tEnum
		e.values &^= tEnum
	}
	e.byName[n.name], e.byNumber[n.number] = n.number, n.name
}

// A board is all fields of a position against all members.
type board struct {
	numbers []uint64
	names   []string
	edges   map[[2]int]*edge // by row and column; nil where it cannot be
	spare   [2][]bool        // rows and columns that need no partner
	row     map[uint64]int
	column  map[string]int
}

func newBoard(p *position) *board {
	numbers, names := map[uint64]bool{}, map[string]bool{}
	for _, i := range p.instances {
		fields, _ := fieldsOf(i.tree, i.node)
		for n := range fields {
			numbers[n] = true
		}
		for _, name := range i.obj.names {
			names[name] = true
		}
	}
	b := &board{
		numbers: slices.Sorted(maps.Keys(numbers)), names: slices.Sorted(maps.Keys(names)),
		edges: map[[2]int]*edge{}, row: map[uint64]int{}, column: map[string]int{},
	}
	b.spare = [2][]bool{make([]bool, len(b.numbers)), make([]bool, len(b.names))}
	for i, n := range b.numbers {
		b.row[n], b.spare[0][i] = i, true
	}
	for i, n := range b.names {
		b.column[n], b.spare[1][i] = i, true
	}
	for r := range b.numbers {
		for c := range b.names {
			b.edges[[2]int{r, c}] = &edge{}
		}
	}
	return b
}

// fill looks at the trusted instances.
func (b *board) fill(p *position) {
	for _, i := range p.instances {
		if i.trusted {
			b.ruleOut(i)
		}
	}
	for at, e := range b.edges {
		if e != nil && e.pairs == nil {
			b.edges[at] = nil // never together
		}
	}
}

// ruleOut removes the edges that one instance contradicts.
func (b *board) ruleOut(i instance) {
	how := i.agree(i.at)
	fields, _ := fieldsOf(i.tree, i.node)
	for r, n := range b.numbers {
		nodes := fields[n]
		empty := nodes != nil && how == loosely && isDefault(i.tree, nodes)
		if nodes != nil && !empty {
			b.spare[0][r] = false
		}
		for c, name := range b.names {
			e := b.edges[[2]int{r, c}]
			if e == nil {
				continue
			}
			v := i.obj.member(name)
			switch {
			case nodes != nil && v != nil:
				cell := i.cell(i.tree, nodes, v)
				if !cell.ok() || !e.addPair(i, cell) {
					b.edges[[2]int{r, c}] = nil
				}
			case nodes != nil && !empty, i.needsPartner(v, how), !e.allowsDefault(v):
				b.edges[[2]int{r, c}] = nil
			}
		}
	}
	for c, name := range b.names {
		if i.needsPartner(i.obj.member(name), how) {
			b.spare[1][c] = false
		}
	}
}

// allowsDefault reports whether e may be a field that the message leaves out and
// whose member is v: the name of an enum's first value, or nothing.
func (e *edge) allowsDefault(v *value) bool {
	if v == nil || v.kind != text || v.isDefault() || e.pairs == nil {
		return true
	}
	e.addName(named{v.text, 0})
	return e.ok()
}

func (b *board) graph() *graph {
	g := newGraph(len(b.numbers), len(b.names))
	for at, e := range b.edges {
		g.edges[at[0]][at[1]] = e != nil
	}
	copy(g.spareRow, b.spare[0])
	copy(g.spareColumn, b.spare[1])
	return g
}
