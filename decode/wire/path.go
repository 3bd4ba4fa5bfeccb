package wire

import "unwire/decode/fieldpath"

// Find returns the indexes of all nodes that p selects, in the order of the input. It returns nil if a step of p is
// not a field number. Garbage nodes are never selected.
func (t *Tree) Find(p fieldpath.Path) []int32 {
	at := []int32{0}
	// Each step replaces the selected nodes by their matching children.
	for _, s := range p {
		number, ok := s.Number()
		if !ok {
			return nil
		}
		var next []int32
		// Index counts the siblings that share the field number, as in a repeated field.
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

// PathOf returns the path that selects node i alone. A step has an index wherever the field has siblings of the
// same number, so PathOf scans all siblings on the way up; FieldPath does not. For garbage the result is the
// path of the enclosing node.
func (t *Tree) PathOf(i int32) fieldpath.Path {
	p := t.FieldPath(i)
	if t.Nodes[i].Type == Garbage {
		i = t.Nodes[i].Parent
	}
	// From the leaf upwards, count the siblings of the same number and the node's place among them.
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

// FieldPath returns the field numbers from the root to node i, without indexes. For garbage the result is the
// path of the enclosing node.
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
