package replay

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"unwire/decode"
	"unwire/decode/wire"
)

// message draws the bytes of a message with messages in it.
func message(t *rapid.T, depth int) []byte {
	var out []byte
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		n := rapid.Uint64Range(1, 40).Draw(t, "number")
		switch k := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case k == 0:
			out = appendField(out, n, wire.Varint, wire.AppendVarint(nil, rapid.Uint64().Draw(t, "varint")))
		case k == 1:
			out = appendField(out, n, wire.I32, rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "i32"))
		case k == 2:
			out = appendField(out, n, wire.I64, rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "i64"))
		case k == 3 || depth == 0:
			out = appendField(out, n, wire.Len, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
		default:
			out = appendField(out, n, wire.Len, message(t, depth-1))
		}
	}
	return out
}

// node draws a message and one of its fields.
func node(t *rapid.T) (*wire.Tree, int32) {
	tree := wire.Parse(message(t, 3), wire.Options{})
	if len(tree.Nodes) < 2 {
		t.Skip("an empty message")
	}
	return tree, int32(rapid.IntRange(1, len(tree.Nodes)-1).Draw(t, "node"))
}

func apply(t *rapid.T, op, text string, data []byte) []byte {
	e, err := ParseEdit(op, text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.apply(data, false, nil)
	if err != nil {
		t.Fatalf("%s of %x: %v", e, data, err)
	}
	return out
}

// Putting a value in its own place changes no byte.
func TestRawOfTheSameIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, i := node(t)
		text := fmt.Sprintf("%s=%x", tree.PathOf(i), tree.Payload(i))
		if out := apply(t, "raw", text, tree.Data); !bytes.Equal(out, tree.Data) {
			t.Fatalf("%s: %x became %x", text, tree.Data, out)
		}
	})
}

// A field that was added at the end is taken out again without a trace.
func TestAddThenDel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := message(t, 3)
		added := apply(t, "add", "77:bytes=hex:"+hex.EncodeToString(rapid.SliceOf(rapid.Byte()).Draw(t, "value")), data)
		if len(added) <= len(data) || !bytes.HasPrefix(added, data) {
			t.Fatalf("%x became %x", data, added)
		}
		if out := apply(t, "del", "77", added); !bytes.Equal(out, data) {
			t.Fatalf("%x became %x", data, out)
		}
	})
}

// A live value takes the place of the captured one, and binding it to itself
// changes nothing.
func TestBindToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, _ := node(t)
		f := &decode.Frame{Tree: tree}
		f.Data = tree.Data
		for _, l := range leavesOf(f, nil) {
			b := &Binding{Path: l.path, FromPath: l.path, value: l.value}
			if out, err := bind(tree.Data, b, f); err != nil || !bytes.Equal(out, tree.Data) {
				t.Fatalf("%s: %x became %x, %v", l.path, tree.Data, out, err)
			}
		}
	})
}

// A schema keeps a text that parses as a message from being taken apart.
func TestLeavesFollowTheSchema(t *testing.T) {
	f := &decode.Frame{}
	f.Data = []byte("\x0a\x09image.png") // a tag and a fixed64
	f.Tree = wire.Parse(f.Data, wire.Options{})
	if n := len(leavesOf(f, nil)); n != 2 {
		t.Fatalf("%d values without a schema: the text is no trap", n)
	}
	if n := len(leavesOf(f, (&wrapperspb.StringValue{}).ProtoReflect().Descriptor())); n != 1 {
		t.Errorf("%d values", n)
	}
}

func FuzzLeaves(f *testing.F) {
	f.Add([]byte("\x0a\x04\x08\x01\x12\x00\x0a\x02hi"), []byte("\x12\x04\x08\x09\x12\x00"))
	f.Add([]byte(`{"a":{"b":["x",1,null,{"c":true}]},"d.e":"y"}`), []byte(`{"a":[[1],"z"]}`))
	f.Fuzz(func(t *testing.T, up, down []byte) {
		for _, tree := range []bool{true, false} {
			from := &decode.Frame{}
			if from.Data = down; tree {
				from.Tree = wire.Parse(down, wire.Options{})
			}
			to := &decode.Frame{}
			if to.Data = up; tree {
				to.Tree = wire.Parse(up, wire.Options{})
			}
			leaves, theirs := leavesOf(to, nil), leavesOf(from, nil)
			const most = 40 // of each: every pair is tried, and each try parses both again
			for _, l := range leaves[:min(len(leaves), most)] {
				for _, d := range theirs[:min(len(theirs), most)] {
					_, _ = bind(up, &Binding{Path: l.path, FromPath: d.path, value: l.value}, from) // must not panic
				}
				if out, err := bind(up, &Binding{Path: l.path, FromPath: l.path, value: l.value}, to); err != nil || !bytes.Equal(out, up) {
					t.Fatalf("%s: %q became %q, %v", l.path, up, out, err)
				}
			}
		}
	})
}
