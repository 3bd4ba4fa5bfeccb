package kind

import (
	"reflect"
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
		"7:packed-double":   "7:packed-double",
		"7:packed-sint32":   "7:packed-sint64",
		"7:packed-zigzag":   "7:packed-sint64",
		"1:packed float":    "1:packed-float",
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
		{"1:packed-fixed32", "", "", "cannot read as packed fixed32: 5 bytes are not a multiple of 4"},
		{"1.1:bytes", "bytes", "bytes", ""},
		{"1:int64", "packed", "packed int64", ""},
		{"1:bool", "", "", "cannot read as bool: the field is length-delimited, the number at 0x2 is neither 0 nor 1"},
		{"1:float", "", "", "cannot read as float: the field is length-delimited, 5 bytes are not a multiple of 4"},
		{"1:timestamp-s", "", "", "cannot read as timestamp-s: the field is length-delimited"},
		{"2:sint64", "varint", "sint64", ""},
		{"2:bool", "", "", "the value is 300"},
		{"2:timestamp-s", "varint", "timestamp-s", ""},
		{"2:string", "", "", "cannot read as string: the field is a varint"},
		{"3:string", "", "", "invalid UTF-8 at 0xc"},
		{"3:message", "", "", "0xc"},
		{"3:packed", "packed", "packed varint", ""},
		{"3:packed-sint32", "packed", "packed sint64", ""},
		{"4:timestamp-s", "fixed64", "timestamp-s", ""},
		{"4:double", "fixed64", "double", ""},
		{"4:float", "", "", "cannot read as float: the field is a fixed 64-bit value"},
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

// Every choice about a value of every wire type is met, or an error that leaves the
// reading as it was.
func TestChooseEverywhere(t *testing.T) {
	values := map[string][]byte{
		"varint 1":   protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1),
		"varint 300": protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 300),
		"i32":        protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 0x3e4ccccd),
		"i64":        protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 0x3fc999999999999a),
		"group":      protowire.AppendTag(protowire.AppendTag(nil, 1, protowire.StartGroupType), 1, protowire.EndGroupType),
	}
	for name, payload := range map[string]string{
		"empty": "", "text": "abcdefg", "8 bytes": "\xcd\xcc\x4c\x3e\x00\x00\x80\x3f", "4 bytes": "\xcd\xcc\x4c\x3e",
		"flags": "\x01\x00\x01", "overlong": "\x80\x80\x00", "message": "\x0a\x03abc", "no varint": "\xff",
	} {
		values["len, "+name] = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), payload)
	}
	for name, b := range values {
		tree := wire.Parse(b, wire.Options{})
		before := NewReader(tree, nil).Readings(1)[0]
		for _, word := range ChoiceTypes() {
			choice, err := ParseChoice("1:" + word)
			if err != nil {
				t.Fatal(err)
			}
			r := NewReader(tree, nil)
			r.Choose([]Choice{choice})
			is, unfit := r.Chosen(1)
			after := r.Readings(1)[0]
			kind, typ := choice.For(tree.Node(1).Type)
			switch {
			case word == Auto:
				if is || unfit != nil {
					t.Errorf("%s as %s: %v %v", name, word, is, unfit)
				}
			case is == (unfit != nil):
				t.Errorf("%s as %s: chosen %v, %v", name, word, is, unfit)
			case is && (after.Kind != kind || after.Type != typ || after.P != 1):
				t.Errorf("%s as %s: read as %s %s", name, word, after.Kind, after.Type)
			case !is && (after.Type != before.Type || !strings.HasPrefix(unfit.Error(), "cannot read as "+choice.Type+": ")):
				t.Errorf("%s as %s: read as %s, %v", name, word, after.Type, unfit)
			}
			if branch := kind == wire.KindMessage || kind == wire.KindGroup; is && (after.Value == nil) != branch {
				t.Errorf("%s as %s: value %v", name, word, after.Value)
			}
		}
	}
}

// What is around a chosen field is read as a message, so that the choice shows.
func TestChooseWithin(t *testing.T) {
	tree := wire.Parse([]byte("\x0a\x09image.png"), wire.Options{}) // text that is a field 13 of 64 bits, too
	choice, err := ParseChoice("1.13:double")
	if err != nil {
		t.Fatal(err)
	}
	best := func(r *Reader, want wire.Kind) {
		t.Helper()
		if is, _, _ := r.Best(1); is != want {
			t.Errorf("the field around the chosen one is %s, not %s", is, want)
		}
	}
	r := NewReader(tree, nil)
	best(r, wire.KindString)
	r.Choose([]Choice{choice})
	best(r, wire.KindMessage)
	if is, typ, _ := r.Best(2); is != wire.KindFixed64 || typ != "double" {
		t.Errorf("the chosen field is %s %s", is, typ)
	}
	r.Choose([]Choice{{choice.Path, "", Auto}})
	best(r, wire.KindString)
	r.Choose([]Choice{choice, {choice.Path[:1], wire.KindBytes, "bytes"}})
	best(r, wire.KindBytes)
}

// The numbers of a packed list are those that its type makes of the bytes.
func TestPackedList(t *testing.T) {
	for typ, c := range map[string]struct {
		data string
		want any
	}{
		"packed varint":   {"\x01\x96\x01", []uint64{1, 150}},
		"packed int64":    {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", []int64{1, -1}},
		"packed uint64":   {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", []uint64{1<<64 - 1}},
		"packed sint64":   {"\x01\x02", []int64{-1, 1}},
		"packed bool":     {"\x01\x00", []bool{true, false}},
		"packed enum":     {"\x05", []int64{5}},
		"packed float":    {"\xcd\xcc\x4c\x3e", []float32{0.2}},
		"packed fixed32":  {"\xff\xff\xff\xff", []uint64{1<<32 - 1}},
		"packed sfixed32": {"\xff\xff\xff\xff", []int64{-1}},
		"packed double":   {"\x9a\x99\x99\x99\x99\x99\xc9\x3f", []float64{0.2}},
		"packed fixed64":  {"\xff\xff\xff\xff\xff\xff\xff\xff", []uint64{1<<64 - 1}},
		"packed sfixed64": {"\xff\xff\xff\xff\xff\xff\xff\xff", []int64{-1}},
		"packed string":   {"abc", nil},
	} {
		if ElementOf(typ) == notPacked {
			if c.want != nil {
				t.Errorf("%s is no packed type", typ)
			}
			continue
		}
		if got := packedList(typ, []byte(c.data)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %T %v, want %T %v", typ, got, got, c.want, c.want)
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
