package infer

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/internal/schematest"
)

// FuzzInfer: whatever the samples, definitions come out that compile and read
// every sample. Fields are left over only where Infer says that they must be.
func FuzzInfer(f *testing.F) {
	for seed := range uint64(4) {
		c := schematest.RandomCorpus(f, seed, 3)
		f.Add(c.Samples[0], c.Samples[1], c.Samples[2])
	}
	f.Add([]byte{8, 1}, []byte{9, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{0x0b, 0x0c})
	f.Add([]byte("\n\x03abc"), []byte("\n\x02\xff\xfe"), []byte{})
	f.Add([]byte{8, 0, 8, 0, 0x0a, 2, 0xc3, 0x80}, []byte{}, []byte{}) // numbers, and a payload that is no packed list
	f.Add(protowire.AppendVarint(protowire.AppendTag(nil, protowire.MaxValidNumber+1, protowire.VarintType), 1), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		ev := NewEvidence()
		var samples [][]byte
		for _, s := range [][]byte{a, b, c} {
			if ev.Add("Root", s) == nil {
				samples = append(samples, s)
			}
		}
		if len(samples) == 0 {
			return
		}
		in, err := Infer(ev, Options{Package: "p"})
		if err != nil {
			t.Fatal(err)
		}
		exempt := strings.Contains(must(in.Text()), "is left out") || strings.Contains(must(in.Text()), "another wire type") || in.Truncated || deep(ev)
		for i, s := range samples {
			m := dynamicpb.NewMessage(in.Schema.Message("p.Root"))
			if err := proto.Unmarshal(s, m); err != nil {
				t.Fatalf("sample %d %x: %v\n%s", i, s, err, must(in.Text()))
			}
			if path := schema.TypeWithUnknownFields(m); path != "" && !exempt {
				t.Fatalf("sample %d %x: unknown fields in %s\n%s", i, s, path, must(in.Text()))
			}
		}
	})
}

// deep reports whether fields may have been left out for their depth.
func deep(ev *Evidence) bool {
	var walk func(m *kind.Message, depth int) bool
	walk = func(m *kind.Message, depth int) bool {
		if depth >= kind.MaxDepth {
			return true
		}
		for _, n := range m.Numbers() {
			for _, c := range m.Field(n).Children() {
				if walk(c, depth+1) {
					return true
				}
			}
		}
		return false
	}
	for _, m := range []*kind.Message{ev.Root("A"), ev.Root("B"), ev.Root("Root")} {
		if m != nil && walk(m, 0) {
			return true
		}
	}
	return false
}

// FuzzReadEvidence: no JSON makes reading, merging or inferring panic, and
// what is read is written and read alike.
func FuzzReadEvidence(f *testing.F) {
	for seed := range uint64(3) {
		c := schematest.RandomCorpus(f, seed, 2)
		ev := NewEvidence()
		for _, s := range c.Samples {
			if err := ev.Add("R", s); err != nil {
				f.Fatal(err)
			}
		}
		f.Add([]byte(written(f, ev)))
	}
	f.Add([]byte(written(f, evidenceOf(f, []byte{8, 1}, []byte("\x12\x02hi\x1a\x08abcdefgh\x25abcd\x29abcdefgh")))))
	f.Add([]byte(`{"unwire_evidence":2,"roots":{"/a.B/C:up":{"samples":1}},"methods":{"a.B/C":{"calls":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := ReadEvidence(bytes.NewReader(data))
		if err != nil {
			return
		}
		text := written(t, ev)
		back, err := ReadEvidence(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if written(t, back) != text {
			t.Fatal("written twice, not the same")
		}
		back.Merge(ev)
		if _, err := Infer(back, Options{Package: "p"}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHostileNames(t *testing.T) {
	ev := NewEvidence()
	tree := wire.Parse(protowire.AppendTag(nil, 1, protowire.BytesType), wire.Options{})
	tree.Data = []byte{8, 1}
	for _, name := range [][2]string{
		{"a.b.C", "D"},
		{"a.b.C", "DRequest"},
		{"a.b.message", "rpc"},
		{"C", "M"},
		{"x..y", "1"},
		{"p\n}; evil", "*/ {"},
		{"été.Ü", "ñ"},
		{"a.b", "C"},
		{"a.b.c-d", "E"},
		{"a.b.c_d", "E"},
		{"google.protobuf.Timestamp", "X"},
		{"message.rpc.import", "service"},
		{"import", "stream"},
		{"syntax", "returns"},
		{"stream.map.oneof", "string"},
		{"a.option.D", "repeated"},
		{"b.C", "D"}, // as in another package
		{"a.b.C.D", "E"},
		{strings.Repeat("long.", 60) + "S", strings.Repeat("M", 300)},
		{"..", "."},
	} {
		if err := addMessage(ev, name[0]+"/"+name[1], captures.Up, tree.Data); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []Options{{}, {Package: "p"}, {Package: "message.optional"}} {
		in, err := Infer(ev, o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		for root, full := range in.Roots {
			if in.Schema.Message(full) == nil {
				t.Errorf("%s: no message %s", root, full)
			}
		}
	}
	for _, bad := range []Options{{Package: "a b"}, {Root: "R"}} {
		if _, err := Infer(ev, bad); err == nil {
			t.Errorf("%+v: accepted", bad)
		}
	}
}
