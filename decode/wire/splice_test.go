package wire

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"unwire/decode/fieldpath"
)

func TestSplice(t *testing.T) {
	// 1{2:1 3:"abc"} 4:5 with an overlong length of field 1
	const in = "0a 8700 1001 1a03616263 2005"
	at := func(path string) func(*Tree) int32 {
		return func(t *Tree) int32 {
			p, _ := fieldpath.ParseNumbers(path)
			return t.Find(p)[0]
		}
	}
	edit := func(op Op, path, data string) func(*Tree) Edit {
		return func(tr *Tree) Edit { return Edit{op, at(path)(tr), unhex(t, data)} }
	}
	for _, c := range []struct {
		name  string
		in    string
		edits []func(*Tree) Edit
		want  string
	}{
		{"none", in, nil, "0a 8700 1001 1a03616263 2005"},
		{"set string", in, []func(*Tree) Edit{edit(SetValue, "1.3", "61626364")}, "0a 8800 1001 1a0461626364 2005"},
		{"set scalar", in, []func(*Tree) Edit{edit(SetValue, "4", "9601")}, "0a 8700 1001 1a03616263 209601"},
		{"delete", in, []func(*Tree) Edit{edit(Delete, "1.2", "")}, "0a 8500 1a03616263 2005"},
		{"delete all", in, []func(*Tree) Edit{edit(Delete, "1", ""), edit(Delete, "4", "")}, ""},
		{"replace", in, []func(*Tree) Edit{edit(Replace, "1.2", "1002 1003")}, "0a 8900 1002 1003 1a03616263 2005"},
		{"insert", in, []func(*Tree) Edit{edit(AppendInto, "1", "2801"), edit(InsertAfter, "1", "3001"), edit(InsertBefore, "4", "3801"), edit(InsertAfter, "4", "4001"), edit(AppendInto, "", "4801")}, "0a 8900 1001 1a03616263 2801 3001 3801 2005 4001 4801"},
		{"adjacent", in, []func(*Tree) Edit{edit(Delete, "1.2", ""), edit(InsertBefore, "1.2", "1007"), edit(InsertAfter, "1.2", "1008")}, "0a 8900 1007 1008 1a03616263 2005"},
		{"set message", in, []func(*Tree) Edit{edit(SetValue, "1", "")}, "0a 8000 2005"},
		{"set root", in, []func(*Tree) Edit{edit(SetValue, "", "0801")}, "0801"},
		{"group", "0b 1001 8c00", []func(*Tree) Edit{edit(AppendInto, "1", "1801"), edit(SetValue, "1.2", "05")}, "0b 1005 1801 8c00"},
		{"set group", "0a05 0b 1001 0c", []func(*Tree) Edit{}, "0a05 0b 1001 0c"},
		{"group in message", "0a04 0b 1001 0c", []func(*Tree) Edit{edit(SetValue, "1.1", "10011001")}, "0a06 0b 10011001 0c"},
		{"into empty", "0a00 1001", []func(*Tree) Edit{edit(AppendInto, "1", "0801"), edit(InsertAfter, "1", "1002")}, "0a02 0801 1002 1001"},
		{"length shrinks", "0a8101" + "0a7f" + hexOf(0x41, 127), []func(*Tree) Edit{edit(SetValue, "1.1", "41")}, "0a03 0a0141"},
		{"length grows", "0a7f" + "0a7d" + hexOf(0x41, 125), []func(*Tree) Edit{edit(SetValue, "1.1", hexOf(0x42, 128))}, "0a8301 0a8001" + hexOf(0x42, 128)},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := Parse(unhex(t, c.in), Options{})
			var edits []Edit
			for _, e := range c.edits {
				edits = append(edits, e(tree))
			}
			got, err := Splice(tree, edits)
			if want := unhex(t, c.want); err != nil || !bytes.Equal(got, want) {
				t.Errorf("\n got %x, %v\nwant %x", got, err, want)
			}
		})
	}
	tree := Parse(unhex(t, in), Options{})
	empty := Parse(unhex(t, "0a00"), Options{})
	for _, c := range []struct {
		t     *Tree
		edits []Edit
	}{
		{tree, []Edit{{Delete, 1, nil}, {SetValue, 2, []byte{1}}}},
		{tree, []Edit{{SetValue, 1, nil}, {Delete, 3, nil}}},
		{tree, []Edit{{SetValue, 2, []byte{1}}, {SetValue, 2, []byte{2}}}},
		{tree, []Edit{{SetValue, 1, nil}, {InsertAfter, 2, []byte{8, 1}}}},
		{empty, []Edit{{SetValue, 1, []byte{8, 1}}, {SetValue, 1, []byte{8, 2}}}},
	} {
		if got, err := Splice(c.t, c.edits); !errors.Is(err, errOverlap) {
			t.Errorf("%v: %x, %v", c.edits, got, err)
		}
	}
	for _, e := range []Edit{{Replace, 0, nil}, {AppendInto, 3, nil}, {SetValue, 99, nil}, {SetValue, -1, nil}, {Op(9), 1, nil}, {InsertAfter, 0, nil}} {
		if got, err := Splice(tree, []Edit{e}); err == nil {
			t.Errorf("%v: %x", e, got)
		}
	}
}

func hexOf(b byte, n int) string {
	const digits = "0123456789abcdef"
	return string(bytes.Repeat([]byte{digits[b>>4], digits[b&15]}, n))
}

// rebuild applies at most one edit a node by writing the tree anew.
func rebuild(t *Tree, i int32, edits map[int32]Edit) []byte {
	n := &t.Nodes[i]
	e, edited := edits[i]
	var body []byte
	for c := range t.Children(i) {
		body = append(body, rebuild(t, c, edits)...)
	}
	if n.First == None {
		body = t.Payload(i)
	}
	if edited && e.Op == SetValue {
		body = e.Data
	}
	if edited && e.Op == AppendInto {
		body = append(bytes.Clone(body), e.Data...)
	}
	var out []byte
	switch {
	case n.Type == Len && !bytes.Equal(body, t.Payload(i)):
		width := n.Val - n.TagEnd
		if width == SizeVarint(uint64(n.End-n.Val)) {
			width = 0
		}
		out = AppendVarintWidth(bytes.Clone(t.Data[n.Off:n.TagEnd]), uint64(len(body)), width)
		out = append(out, body...)
	case n.Type == StartGroup:
		out = append(append(bytes.Clone(t.Data[n.Off:n.Val]), body...), t.Data[t.EndTag(i):n.End]...)
	default:
		out = append(bytes.Clone(t.Data[n.Off:n.Val]), body...)
	}
	if edited {
		switch e.Op {
		case Replace:
			return e.Data
		case Delete:
			return nil
		case InsertBefore:
			return append(bytes.Clone(e.Data), out...)
		case InsertAfter:
			return append(out, e.Data...)
		}
	}
	return out
}

func TestSpliceEqualsRebuilding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := message(t, 0)
		if rapid.Bool().Draw(t, "spoil") {
			data = append(data, rapid.SliceOf(rapid.Byte()).Draw(t, "spoilt")...)
		}
		tree := Parse(data, Options{})
		edits := map[int32]Edit{}
		var list []Edit
		for range rapid.IntRange(0, 6).Draw(t, "edits") {
			i := int32(rapid.IntRange(0, len(tree.Nodes)-1).Draw(t, "node"))
			e := Edit{Op(rapid.IntRange(0, int(AppendInto)).Draw(t, "op")), i, rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
			if _, twice := edits[i]; twice {
				continue
			}
			if _, err := Splice(tree, append(bytes2(list), e)); err != nil {
				if !errors.Is(err, errOverlap) && len(list) > 0 {
					if _, alone := Splice(tree, []Edit{e}); alone == nil {
						t.Fatalf("%v: %v", e, err)
					}
				}
				continue
			}
			edits[i], list = e, append(list, e)
		}
		// The order of edits at different places must not matter.
		got, err := Splice(tree, rapid.Permutation(list).Draw(t, "order"))
		if want := rebuild(tree, 0, edits); err != nil || !samePlaces(list, tree) && !bytes.Equal(got, want) {
			t.Fatalf("%x with %v:\n got %x, %v\nwant %x", data, list, got, err, want)
		}
	})
}

func bytes2(list []Edit) []Edit { return append([]Edit(nil), list...) }

// samePlaces reports whether two insertions meet at one place in one message,
// where the order of the edits decides.
func samePlaces(list []Edit, t *Tree) bool {
	seen := map[[2]int]bool{}
	for _, e := range list {
		c, _ := t.patch(e)
		if c.lo != c.hi {
			continue
		}
		at := [2]int{c.lo, int(c.owner)}
		if seen[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

// message draws a message that nests.
func message(t *rapid.T, depth int) []byte {
	var b []byte
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		number := uint64(rapid.IntRange(1, 40).Draw(t, "number"))
		switch k := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case k == 0:
			b = AppendVarint(AppendVarint(b, number<<3), rapid.Uint64().Draw(t, "v"))
		case k == 1 && depth < 4:
			m := message(t, depth+1)
			b = AppendVarintWidth(AppendVarint(b, number<<3|2), uint64(len(m)), rapid.IntRange(0, 3).Draw(t, "width"))
			b = append(b, m...)
		case k == 2 && depth < 4:
			b = AppendVarint(append(AppendVarint(b, number<<3|3), message(t, depth+1)...), number<<3|4)
		default:
			s := rapid.StringN(0, 40, 200).Draw(t, "s")
			b = append(AppendVarint(AppendVarint(b, number<<3|2), uint64(len(s))), s...)
		}
	}
	return b
}
