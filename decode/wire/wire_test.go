package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// outline writes a tree as one line: 1:len{2:varint}, errors after !.
func outline(t *Tree) string {
	var b strings.Builder
	var walk func(i int32)
	walk = func(i int32) {
		sep := ""
		for c := range t.Children(i) {
			b.WriteString(sep)
			sep = " "
			n := t.Node(c)
			if n.Type == Garbage {
				fmt.Fprintf(&b, "garbage(%x)", t.Payload(c))
			} else {
				fmt.Fprintf(&b, "%d:%s", n.Number, n.Type)
			}
			if n.Overlong {
				b.WriteString("+")
			}
			if n.First != None {
				b.WriteString("{")
				walk(c)
				b.WriteString("}")
			} else if n.Type == Len {
				fmt.Fprintf(&b, "(%x)", t.Payload(c))
			} else if n.Type == Varint || n.Type == I32 || n.Type == I64 {
				fmt.Fprintf(&b, "=%d", t.Uint(c))
			}
			if !n.Sound() {
				fmt.Fprintf(&b, "!%s", t.Fault(n))
			}
		}
	}
	walk(0)
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"scalars", "0896011100000000000000401d00000080", "1:varint=150 2:i64=4611686018427387904 3:i32=2147483648"},
		{"text delta", "0a060a040a024869", "1:len{1:len{1:len{9:varint=105}}}"},
		{"empty payload", "3a00", "7:len()"},
		{"group", "0b 1001 0c 1801", "1:group{2:varint=1} 3:varint=1"},
		{"group in group", "0b 130a0014 0c", "1:group{2:group{1:len()}}"},
		{"overlong tag", "8800 01", "1:varint+=1"},
		{"overlong value", "08 818000", "1:varint+=1"},
		{"overlong length", "0a 8100 41", "1:len+(41)"},
		{"overlong end tag", "0b 8c00 0801", "1:group+ 1:varint=1"},
		{"negative varint", "08 ffffffffffffffffff01", "1:varint=18446744073709551615"},
		{"long length", "08016a900741", "1:varint=1 garbage(6a900741)!field 13 at 0x2: the length is 912, but only 1 bytes are left"},
		{"length 4 GiB", "0a 8080808010 41", "garbage(0a808080801041)!field 1 at 0x0: the length is 4294967296, but only 1 bytes are left"},
		{"length 2^63", "0a 80808080808080808001 41", "garbage(0a8080808080808080800141)!field 1 at 0x0: the length is 9223372036854775808, but only 1 bytes are left"},
		{"length 2^64-1", "0a ffffffffffffffffff01", "garbage(0affffffffffffffffff01)!field 1 at 0x0: the length is 18446744073709551615, but only 0 bytes are left"},
		{"length cut", "0a 80", "garbage(0a80)!field 1 at 0x0: the length is truncated after 1 bytes"},
		{"length too long", "0a ffffffffffffffffffff01", "garbage(0affffffffffffffffffff01)!field 1 at 0x0: the length is 18446744073709551615, but only 11 bytes are left"},
		{"number 0", "0001 0801", "0:varint=1!field 0 at 0x0: the field number must be from 1 to 536870911 1:varint=1"},
		{"number 2^29", "8080808010 01 0801", "536870912:varint=1!field 536870912 at 0x0: the field number must be from 1 to 536870911 1:varint=1"},
		{"number 2^29-1", "f8ffffff0f 01", "536870911:varint=1"},
		{"wire type 6", "0801 0e 0801", "1:varint=1 garbage(0e0801)!field 1 at 0x2: the wire type 6 does not exist, and 2 bytes are left"},
		{"wire type 7", "07", "garbage(07)!field 0 at 0x0: the wire type 7 does not exist, and 0 bytes are left"},
		{"tag cut", "0801 80", "1:varint=1 garbage(80)!tag at 0x2: the tag is truncated after 1 bytes"},
		{"tag too long", "ffffffffffffffffffffff01", "garbage(ffffffffffffffffffffff01)!tag at 0x0: the varint has more than 64 bits"},
		{"varint too long", "08 ffffffffffffffffff02 1001", "garbage(08ffffffffffffffffff02)!field 1 at 0x0: the varint has more than 64 bits 2:varint=1"},
		{"varint cut", "08", "garbage(08)!field 1 at 0x0: the value needs 1 bytes or more, but only 0 are left"},
		{"fixed cut", "0d 0102", "garbage(0d0102)!field 1 at 0x0: the value needs 4 bytes or more, but only 2 are left"},
		{"stray end", "0c 0801", "garbage(0c)!field 1 at 0x0: the tag ends a group that is not open 1:varint=1"},
		{"wrong end", "0b 14 0801 0c", "1:group{garbage(14)!field 2 at 0x1: the tag ends a group that is not open 1:varint=1}"},
		{"open group", "0b 0801", "1:group{1:varint=1}!field 1 at 0x0: the group has no end tag"},
		{"payload with number 0", "0a 02 0001", "1:len(0001)"},
		{"payload with open group", "0a 03 0b0801", "1:len(0b0801)"},
		{"payload with group", "0a 04 0b08010c", "1:len{1:group{1:varint=1}}"},
		{"payload with rest", "0a 03 080108", "1:len(080108)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := unhex(t, c.in)
			tree := Parse(data, Options{})
			if got := outline(tree); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			checkCoverage(t, tree)
		})
	}
}

// checkCoverage holds every byte to belong to exactly one span.
func checkCoverage(t interface {
	Helper()
	Fatalf(string, ...any)
}, tree *Tree,
) {
	t.Helper()
	pos := 0
	for s := range tree.Spans() {
		if s.Off != pos || s.End <= s.Off {
			t.Fatalf("span of node %d is [%d,%d), want it to begin at %d", s.Node, s.Off, s.End, pos)
		}
		pos = s.End
	}
	if pos != len(tree.Data) {
		t.Fatalf("spans end at %d of %d", pos, len(tree.Data))
	}
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		if n.Off > n.TagEnd || n.TagEnd > n.Val || n.Val > n.End || n.Type == Garbage && n.Sound() {
			t.Fatalf("node %d: %+v", i, *n)
		}
		if i > 0 {
			if p := tree.Node(n.Parent); n.Off < p.Val || n.End > p.End || n.Parent >= int32(i) {
				t.Fatalf("node %d [%d,%d) is not inside its parent [%d,%d)", i, n.Off, n.End, p.Val, p.End)
			}
		}
		if e := tree.EndTag(int32(i)); e < n.Val || e > n.End {
			t.Fatalf("node %d: end tag at %d of [%d,%d)", i, e, n.Val, n.End)
		}
	}
	if got := tree.Append(nil); !bytes.Equal(got, tree.Data) {
		t.Fatalf("Append gives other bytes")
	}
}

func TestBytesToTreeToBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Small numbers are tags and lengths: they nest and break more often.
		b := rapid.SliceOf(rapid.OneOf(rapid.ByteRange(0, 40), rapid.Byte())).Draw(t, "data")
		tree := Parse(b, Options{MaxDepth: rapid.IntRange(0, 5).Draw(t, "depth"), MaxNodes: rapid.IntRange(0, 20).Draw(t, "nodes")})
		checkCoverage(t, tree)
	})
}

func TestSkipField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.OneOf(rapid.ByteRange(0, 40), rapid.Byte())).Draw(t, "data")
		tree := Parse(b, Options{})
		want := 0
		if len(tree.Nodes) > 1 {
			if n := tree.Node(1); n.Sound() && n.Type != StartGroup && n.Type != Garbage {
				want = n.End
			}
		}
		if got := SkipField(b); got != want {
			t.Fatalf("%x: %d, want %d", b, got, want)
		}
	})
}

func FuzzTree(f *testing.F) {
	f.Add([]byte{0x0a, 0x06, 0x0a, 0x04, 0x0a, 0x02, 'H', 'i'})
	f.Add([]byte{0x0b, 0x08, 0x01, 0x8c, 0x00, 0x07})
	f.Fuzz(func(t *testing.T, b []byte) {
		tree := Parse(b, Options{})
		checkCoverage(t, tree)
		for i := range tree.Nodes {
			if tree.Nodes[i].Type == Garbage || len(tree.Nodes) > 500 {
				continue
			}
			if found := tree.Find(tree.PathOf(int32(i))); len(found) != 1 || found[0] != int32(i) {
				t.Fatalf("node %d has path %v, which finds %v", i, tree.PathOf(int32(i)), found)
			}
		}
	})
}

// nested returns depth messages inside each other.
func nested(depth int) []byte {
	var b []byte
	for range depth {
		b = append(AppendVarint([]byte{0x0a}, uint64(len(b))), b...)
	}
	return b
}

func TestHostileInputIsLinear(t *testing.T) {
	for name, data := range map[string][]byte{
		"10,000 nested messages":       nested(10_000),
		"1 MB of 0x0a":                 bytes.Repeat([]byte{0x0a}, 1<<20),
		"1 MB of start groups":         bytes.Repeat([]byte{0x0b}, 1<<20),
		"1 MB of start and end groups": bytes.Repeat([]byte{0x0b, 0x0c}, 1<<19),
		"1 MB of empty fields":         bytes.Repeat([]byte{0x0a, 0x00}, 1<<19),
		"nested, with a bad end":       append(nested(30_000), 0x0a),
		"wide levels that fail at the end": func() []byte {
			b := []byte{0x07}
			for range 60 {
				b = append(bytes.Repeat([]byte{0x08, 1}, 5000), b...)
				b = append(AppendVarint([]byte{0x0a}, uint64(len(b))), b...)
			}
			return b
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			tree := Parse(data, Options{})
			// A quadratic parse of a megabyte takes minutes.
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%v for %d bytes", d, len(data))
			}
			checkCoverage(t, tree)
		})
	}
}

func TestDepthLimit(t *testing.T) {
	tree := Parse(nested(10), Options{MaxDepth: 4})
	last := int32(len(tree.Nodes) - 1)
	if d := tree.depth(last); d != 5 {
		t.Errorf("the deepest node is %d below the root, want 5", d)
	}
	if !errors.Is(tree.Err(), ErrDepth) || !errors.Is(tree.Fault(tree.Node(last)), ErrDepth) {
		t.Errorf("Err = %v", tree.Err())
	}
}

func TestNodeLimit(t *testing.T) {
	data := bytes.Repeat([]byte{0x08, 1}, 50)
	tree := Parse(data, Options{MaxNodes: 10})
	if n := len(tree.Nodes); n != 11 || tree.Nodes[10].Type != Garbage {
		t.Errorf("%d nodes: %s", n, outline(tree))
	}
	if got := tree.Err().Error(); got != "at 0x12: the message has more than 10 fields, and 82 bytes are left" {
		t.Errorf("Err = %s", got)
	}
	wrapped := append([]byte{0x0a, 100}, data...)
	if err := Parse(wrapped, Options{MaxNodes: 10}).Err(); !errors.Is(err, errNodes) {
		t.Errorf("Err = %v", err)
	}
}

func TestVarintWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v")
		w := rapid.IntRange(0, 12).Draw(t, "width")
		b := AppendVarintWidth(nil, v, w)
		got, n := ConsumeVarint(b)
		if got != v || n != len(b) || (w <= maxVarintLen && w >= SizeVarint(v) && n != w) {
			t.Fatalf("%d in %d bytes: %x reads as %d in %d", v, w, b, got, n)
		}
	})
}

// TestFaultsOutliveReset: a copy of the nodes and faults of a tree stays valid when the tree is used for another message.
func TestFaultsOutliveReset(t *testing.T) {
	var tree Tree
	tree.Reset([]byte{0x12, 0x7f, 'h'}, Options{})
	kept := Tree{Data: tree.Data, Nodes: slices.Clone(tree.Nodes), Faults: tree.Faults}
	want := kept.Err().Error()
	tree.Reset([]byte{0x0f}, Options{})
	if got := kept.Err().Error(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNodesHaveNoPointers: the garbage collector does not read the nodes of a large message.
func TestNodesHaveNoPointers(t *testing.T) {
	typ := reflect.TypeFor[Node]()
	if typ.Size() > 64 {
		t.Errorf("a node has %d bytes", typ.Size())
	}
	for i := range typ.NumField() {
		if k := typ.Field(i).Type.Kind(); k > reflect.Uint64 {
			t.Errorf("%s is a %s", typ.Field(i).Name, k)
		}
	}
}
