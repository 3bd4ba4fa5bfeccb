package kind

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"unwire/decode/wire"
)

func TestParseChoice(t *testing.T) {
	for in, want := range map[string]string{
		"1.2:string":        "1.2:string",
		"1.2[3].5:TEXT":     "1.2[3].5:string",
		"7:packed-double":   "7:packed-fixed64",
		"7:packed":          "7:packed-varint",
		"7:zigzag":          "7:sint64",
		"7:epoch-ms":        "7:timestamp-ms",
		"7:auto":            "7:auto",
		"1:packed varint":   "1:packed-varint",
		"536870911:message": "536870911:message",
	} {
		c, err := ParseChoice(in)
		if err != nil || c.String() != want {
			t.Errorf("%s: %v, %v; want %s", in, c, err, want)
		}
	}
	for _, in := range []string{"", ":", ":string", "string", "1.2", "1.2:", "1.2:strong", "a.b:string", "1..2:string", "1[x]:string", "1.2:string:string"} {
		if c, err := ParseChoice(in); err == nil {
			t.Errorf("%q is taken for %v", in, c)
		}
	}
}

func FuzzParseChoice(f *testing.F) {
	for _, s := range []string{"1.2:string", "1[2].3:packed", ":", "1:auto", "99999999999999999999:bytes"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseChoice(s)
		if err != nil {
			return
		}
		if again, err := ParseChoice(c.String()); err != nil || again.String() != c.String() {
			t.Fatalf("%q: %v: %v, %v", s, c, again, err)
		}
	})
}

// A field that is a string is read as what is chosen where its bytes allow it.
func TestChoose(t *testing.T) {
	var inner []byte
	inner = protowire.AppendTag(inner, 1, protowire.BytesType)
	inner = protowire.AppendString(inner, "abc")
	var b []byte
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	b = protowire.AppendBytes(b, inner)
	b = protowire.AppendTag(b, 2, protowire.VarintType)
	b = protowire.AppendVarint(b, 300)
	b = protowire.AppendTag(b, 3, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte{0xff, 0xfe, 0x41})
	b = protowire.AppendTag(b, 4, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, 1_700_000_000)
	for _, c := range []struct {
		choice, kind, typ string
		unfit             string // what the error has
	}{
		{"1:message", "message", "message", ""},
		{"1:string", "string", "string", ""},
		{"1:bytes", "bytes", "bytes", ""},
		{"1:packed", "packed", "packed varint", ""},
		{"1:packed-fixed32", "", "", "5 bytes are no multiple of 4"},
		{"1.1:bytes", "bytes", "bytes", ""},
		{"1:int64", "", "", "a length with what it counts"},
		{"2:sint64", "varint", "sint64", ""},
		{"2:bool", "", "", "the value is 300"},
		{"2:timestamp-s", "varint", "timestamp-s", ""},
		{"2:string", "", "", "it is a varint on the wire"},
		{"3:string", "", "", "no UTF-8 at 0xc"},
		{"3:message", "", "", "0xc"},
		{"3:packed", "packed", "packed varint", ""},
		{"4:timestamp-s", "fixed64", "timestamp-s", ""},
		{"4:double", "fixed64", "double", ""},
		{"4:float", "", "", "it is a i64 on the wire"},
	} {
		choice, err := ParseChoice(c.choice)
		if err != nil {
			t.Fatal(err)
		}
		tree := wire.Parse(b, wire.Options{})
		nodes := tree.Find(choice.Path)
		if len(nodes) != 1 {
			t.Fatalf("%s: %d nodes", c.choice, len(nodes))
		}
		r := NewReader(tree, nil)
		before := r.Readings(nodes[0])
		r.Choose([]Choice{choice})
		is, unfit := r.Chosen(nodes[0])
		if c.unfit != "" {
			if is || unfit == nil || !strings.Contains(unfit.Error(), c.unfit) {
				t.Errorf("%s: chosen %v, %v; want %q", c.choice, is, unfit, c.unfit)
			}
			if after := r.Readings(nodes[0]); after[0].Type != before[0].Type {
				t.Errorf("%s: does not fit, and changes %s to %s", c.choice, before[0].Type, after[0].Type)
			}
			continue
		}
		got := r.Readings(nodes[0])[0]
		if !is || unfit != nil || string(got.Kind) != c.kind || got.Type != c.typ || got.P != 1 {
			t.Errorf("%s: %v %v: %s %s %v", c.choice, is, unfit, got.Kind, got.Type, got.P)
		}
		r.Choose([]Choice{{choice.Path, "", Auto}})
		if is, _ := r.Chosen(nodes[0]); is || r.Readings(nodes[0])[0].Type != before[0].Type {
			t.Errorf("%s: not taken back", c.choice)
		}
	}
}

// Readers that share evidence read as readers of their own do.
func TestPooledReadsAsItsMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev := NewEvidence()
		list := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 60), 1, 12).Draw(t, "messages")
		for _, b := range list {
			_ = ev.Add("M", b) // those that are no messages are left out
		}
		m := ev.Root("M")
		shared := NewPooled(m)
		for _, b := range list {
			tree := wire.Parse(b, wire.Options{})
			one, other := NewReader(tree, m), shared.NewReader(tree)
			for i := range tree.Nodes {
				k, typ, p := one.Best(int32(i))
				if k2, typ2, p2 := other.Best(int32(i)); k != k2 || typ != typ2 || p != p2 {
					t.Fatalf("node %d of %x: %s %s %v, shared %s %s %v", i, b, k, typ, p, k2, typ2, p2)
				}
			}
		}
	})
}
