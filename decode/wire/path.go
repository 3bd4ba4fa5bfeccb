package wire

import "unwire/decode/fieldpath"

// Find returns the nodes that p leads to, in order: none where a step is no
// field number. Garbage is never found.
func (t *Tree) Find(p fieldpath.Path) []int32 {
	at := []int32{0}
	for _, s := range p {
		number, ok := s.Number()
		if !ok {
			return nil
		}
		var next []int32
		for _, i := range at {
			k := 0
			for c := range t.Children(i) {
				if t.Nodes[c].Number != number || t.Nodes[c].Type == Garbage {
					continue
				}
				if s.Index == fieldpath.All || s.Index == k {
					next = append(next, c)
				}
				k++
			}
		}
		at = next
	}
	return at
}

// PathOf returns the path that leads to node i alone: with an index wherever
// the field has siblings of its number. It looks at all siblings on the way;
// FieldPath does not. Garbage has the path of what encloses it.
func (t *Tree) PathOf(i int32) fieldpath.Path {
	p := t.FieldPath(i)
	if t.Nodes[i].Type == Garbage {
		i = t.Nodes[i].Parent
	}
	for k := len(p) - 1; k >= 0; k-- {
		index, count := 0, 0
		for c := range t.Children(t.Nodes[i].Parent) {
			if c == i {
				index = count
			}
			if t.Nodes[c].Number == t.Nodes[i].Number && t.Nodes[c].Type != Garbage {
				count++
			}
		}
		if count > 1 {
			p[k].Index = index
		}
		i = t.Nodes[i].Parent
	}
	return p
}

// FieldPath returns the field numbers that lead to node i, without indexes.
func (t *Tree) FieldPath(i int32) fieldpath.Path {
	if t.Nodes[i].Type == Garbage {
		i = t.Nodes[i].Parent
	}
	p := make(fieldpath.Path, t.depth(i))
	for k := len(p) - 1; k >= 0; k-- {
		p[k] = fieldpath.Field(t.Nodes[i].Number)
		i = t.Nodes[i].Parent
	}
	return p
}
