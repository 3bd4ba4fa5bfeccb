package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// All is the Index of a step that means every field of its number.
const All = -1

// A Step of a path names fields by number, and one of them by its index among
// the siblings of that number.
type Step struct {
	Number uint64
	Index  int // from 0, or All
}

// A Path leads from the root to fields. The empty path is the root.
//
// Shape: field numbers joined by dots, an index in brackets where one element
// is meant: 1.2[3].5.
type Path []Step

// ParsePath reads a path as String writes it.
//
// Errors: names the offset of what is wrong.
func ParsePath(s string) (Path, error) {
	if s == "" {
		return nil, nil
	}
	var p Path
	off := 0
	for part := range strings.SplitSeq(s, ".") {
		step, err := parseStep(part)
		if err != nil {
			return p, fmt.Errorf("wire: path %q at %d: %w", s, off, err)
		}
		p = append(p, step)
		off += len(part) + 1
	}
	return p, nil
}

func parseStep(s string) (Step, error) {
	num, index, indexed := strings.Cut(s, "[")
	n, err := strconv.ParseUint(num, 10, 61)
	if err != nil {
		return Step{}, fmt.Errorf("%q is not a field number", num)
	}
	if !indexed {
		return Step{Number: n, Index: All}, nil
	}
	inner, closed := strings.CutSuffix(index, "]")
	k, err := strconv.ParseUint(inner, 10, 31)
	if !closed || err != nil {
		return Step{}, fmt.Errorf("%q is not an index in brackets", "["+index)
	}
	return Step{Number: n, Index: int(k)}, nil
}

func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.FormatUint(s.Number, 10))
		if s.Index != All {
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(s.Index))
			b.WriteByte(']')
		}
	}
	return b.String()
}

// Find returns the nodes that p leads to, in order. Garbage is never found.
func (t *Tree) Find(p Path) []int32 {
	at := []int32{0}
	for _, s := range p {
		var next []int32
		for _, i := range at {
			k := 0
			for c := range t.Children(i) {
				if t.Nodes[c].Number != s.Number || t.Nodes[c].Type == Garbage {
					continue
				}
				if s.Index == All || s.Index == k {
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
func (t *Tree) PathOf(i int32) Path {
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
func (t *Tree) FieldPath(i int32) Path {
	if t.Nodes[i].Type == Garbage {
		i = t.Nodes[i].Parent
	}
	p := make(Path, t.Depth(i))
	for k := len(p) - 1; k >= 0; k-- {
		p[k] = Step{Number: t.Nodes[i].Number, Index: All}
		i = t.Nodes[i].Parent
	}
	return p
}
