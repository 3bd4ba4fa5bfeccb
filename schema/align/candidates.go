package align

import (
	"maps"
	"slices"
)

// An edge is a candidate match of a protobuf field number with a JSON name, with the combined evidence of all
// message pairs.
type edge struct {
	// cell has the types and enum values under which all values of the field number agree with those of the JSON
	// member.
	cell
	// byName maps the names of enum values to their numbers.
	byName map[string]int32
	// byNumber maps the numbers of enum values to their names.
	byNumber map[int32]string
	// insides are the messages nested in the field, from all instances.
	insides []inside
	// pairs are the indices of the message pairs that contain both the field and the JSON member.
	pairs []int
}

// An inside is a message nested in a field of an instance (one recorded message).
type inside struct {
	// of is the field type under which the value is a message: tMessage, tGroup, tMap or tAny.
	of types
	// name is the full name of the type if the message is in a google.protobuf.Any; otherwise "".
	name string

	// instance is the nested message, in its protobuf form and its JSON form.
	instance
}

// messages returns the messages nested in the field. It returns none if it is ambiguous which kind of message
// type the field has (message, group, map, Any, …).
func (e *edge) messages() (out []inside) {
	of := (e.types | e.lists) & (tMessage | tGroup | tMap | tAny | tStruct | tValue)
	for _, in := range e.insides {
		if in.of == of {
			out = append(out, in)
		}
	}
	return out
}

// addPair adds the evidence of one more value of the field and its JSON member: the types that do not fit c are
// ruled out. It reports whether the edge is still possible.
func (e *edge) addPair(i instance, c cell) bool {
	// The first pair begins with everything possible, and each pair rules something out.
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

	// The messages inside are compared later, all instances of their type together.
	for _, in := range c.inside {
		e.insides = append(e.insides, inside{in.of, in.name, instance{body: i.body, messagePair: in.messagePair, pair: i.pair, trusted: i.trusted}})
	}
	if len(e.pairs) == 0 || e.pairs[len(e.pairs)-1] != i.pair {
		e.pairs = append(e.pairs, i.pair)
		e.significance += c.significance
	}
	return e.ok()
}

// addName adds an enum value that was seen. If a name has two numbers or a number two names, the field is not
// an enum.
func (e *edge) addName(n enumName) {
	number, hasName := e.byName[n.name]
	name, hasNumber := e.byNumber[n.number]
	// A contradiction: the field is not an enum.
	if hasName && number != n.number || hasNumber && name != n.name {
		e.types &^= tEnum
		e.lists &^= tEnum
		e.values &^= tEnum
	}
	e.byName[n.name], e.byNumber[n.number] = n.number, n.name
}

// A matrix has the candidate matches of one message type: field numbers are rows, JSON names are columns.
type matrix struct {
	// numbers are the field numbers in increasing order.
	numbers []uint64
	// names are the JSON names, one for each column.
	names []string
	// edges are the candidates by row and column. An edge is nil if the two cannot be the same field.
	edges map[[2]int]*edge
	// optional has the rows ([0]) and columns ([1]) that may stay unmatched, because no instance requires a
	// counterpart.
	optional [2][]bool
	// row maps field numbers to the rows of the matrix.
	row map[uint64]int
	// column maps JSON names to the columns of the matrix.
	column map[string]int
}

// newMatrix returns a matrix for the numbers and names of a message type in which every match is still
// possible.
func newMatrix(p *position) *matrix {
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

	b := &matrix{
		numbers: slices.Sorted(maps.Keys(numbers)), names: slices.Sorted(maps.Keys(names)),
		edges: map[[2]int]*edge{}, row: map[uint64]int{}, column: map[string]int{},
	}
	b.optional = [2][]bool{make([]bool, len(b.numbers)), make([]bool, len(b.names))}

	// A row or column needs no partner until an instance shows that it does.
	for i, n := range b.numbers {
		b.row[n], b.optional[0][i] = i, true
	}
	for i, n := range b.names {
		b.column[n], b.optional[1][i] = i, true
	}
	for r := range b.numbers {
		for c := range b.names {
			b.edges[[2]int{r, c}] = &edge{}
		}
	}
	return b
}

// fill removes the candidate matches (elements of the matrix) that contradict trusted instances, i.e. recorded
// messages whose two forms are known to be the same data.
func (b *matrix) fill(p *position) {
	for _, i := range p.instances {
		if i.trusted {
			b.ruleOut(i)
		}
	}
	for at, e := range b.edges {
		if e != nil && e.pairs == nil {
			// No instance has both, so nothing connects them.
			b.edges[at] = nil
		}
	}
}

// ruleOut removes the candidate matches (elements of the matrix) that contradict one recorded message.
func (b *matrix) ruleOut(i instance) {
	how := i.agree(i.messagePair)
	fields, _ := fieldsOf(i.tree, i.node)
	for r, n := range b.numbers {
		nodes := fields[n]
		// A default value may be written on one side and omitted on the other.
		empty := nodes != nil && how == loosely && isDefault(i.tree, nodes)
		if nodes != nil && !empty {
			b.optional[0][r] = false
		}

		// A pairing of a number with a name survives only if every pair of messages agrees with it.
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
			b.optional[1][c] = false
		}
	}
}

// allowsDefault reports whether the field may be absent in protobuf while its JSON member is v: v is absent, a
// default value, or the name of an enum's value 0, which is then added to the edge.
func (e *edge) allowsDefault(v *value) bool {
	if v == nil || v.kind != text || v.isDefault() || e.pairs == nil {
		return true
	}
	e.addName(enumName{v.text, 0})
	return e.ok()
}

// graph returns the remaining candidate matches as a bipartite graph.
func (b *matrix) graph() *graph {
	g := newGraph(len(b.numbers), len(b.names))
	for at, e := range b.edges {
		g.edges[at[0]][at[1]] = e != nil
	}
	copy(g.optionalRow, b.optional[0])
	copy(g.optionalColumn, b.optional[1])
	return g
}
