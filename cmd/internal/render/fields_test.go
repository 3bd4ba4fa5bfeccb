package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"

	"unwire/decode"
	"unwire/decode/kind"
	"unwire/decode/text"
	"unwire/decode/wire"
)

// What is there of a field that is cut off is told, in each view.
func TestCutField(t *testing.T) {
	whole, err := text.Parse([]byte(`1: {"hello world"} 2: {1: {"first name"} 4: {1: {"deep 日本 words"} 2: 99}} 3: 5`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		cut    int
		render string
		hex    string // what stands beside the bytes
	}{
		{"in text", 8, `
0000  1: string "hello "  (truncated)  ! field 1 at 0x0: the length is 11, but only 6 bytes are left
`, `1: string "hello "  ! field 1 at 0x0: the length is 11, but only 6 bytes are left`},
		{"in a character", 37, `
0000  1: string "hello world"
000d  2: message, 22 bytes  (truncated)  ! field 2 at 0xd: the length is 35, but only 22 bytes are left
000f    1: string "first name"
001b    4: message, 8 bytes  (truncated)  ! field 4 at 0x1b: the length is 21, but only 8 bytes are left
001d      1: string "deep "  (truncated)  ! field 1 at 0x1d: the length is 17, but only 6 bytes are left
`, `1: string "hello world"
2: message, 22 bytes  ! field 2 at 0xd: the length is 35, but only 22 bytes are left
1: string "first name"
4: message, 8 bytes  ! field 4 at 0x1b: the length is 21, but only 8 bytes are left
1: string "deep "  ! field 1 at 0x1d: the length is 17, but only 6 bytes are left`},
		{"behind a length", 15, `
0000  1: string "hello world"
000d  garbage bytes[2] 1223  ! field 2 at 0xd: the length is 35, but only 0 bytes are left
`, `1: string "hello world"
garbage bytes[2]  ! field 2 at 0xd: the length is 35, but only 0 bytes are left`},
	} {
		tree := wire.Parse(whole[:c.cut], wire.Options{})
		fields := decode.View{}.Each(tree)
		var out bytes.Buffer
		if err := Fields(&out, fields, ""); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + out.String(); got != c.render {
			t.Errorf("%s:%s\nwant:%s", c.name, got, c.render)
		}
		out.Reset()
		v := newHexView(&out, hexOptions{All: true, Columns: 40})
		v.tree(tree, decode.View{}, 0)
		if err := v.flush(); err != nil {
			t.Fatal(err)
		}
		var beside, shown []string
		for line := range strings.Lines(out.String()) {
			k := len("00000000  ") + 3*40 - 1
			beside = append(beside, strings.TrimSpace(line[min(k, len(line)):]))
			shown = append(shown, strings.Fields(line[:min(k, len(line))])[1:]...)
		}
		if got := strings.Join(beside, "\n"); got != c.hex {
			t.Errorf("%s, hex:\n%s\nwant:\n%s", c.name, got, c.hex)
		}
		if got := strings.Join(shown, ""); got != fmt.Sprintf("%x", whole[:c.cut]) {
			t.Errorf("%s: the bytes beside: %s", c.name, got)
		}
	}
}

// A packed list of floats is written as one, inferred, declared or chosen.
func TestPackedFloats(t *testing.T) {
	const floats = "\x12\x10\xcd\xcc\x4c\x3e\x00\x00\xc0\x3f\x00\x00\xe8\xc0\xcd\xcc\x4c\x3b"
	const strange = "\x12\x0c\x01\x00\xc0\x7f\x00\x00\x80\xff\x00\x00\x00\x80"
	md := (&descriptorpb.UninterpretedOption_NamePart{}).ProtoReflect().Descriptor() // 2: bool
	for _, c := range []struct{ name, data, choice, line string }{
		{"inferred", floats, "", "2: packed float[4] 0.2 1.5 -7.25 0.003125  (p"},
		{"chosen", floats, "2:fixed32", "2: packed fixed32[4] 1045220557 "},
		{"strange", strange, "2:packed-float", "2: packed float[3] NaN -Infinity -0  (chosen)"},
		{"zigzag", "\x12\x02\x01\x02", "2:sint64", "2: packed sint64[2] -1 1  (chosen)"},
		{"impossible", "\x12\x07abcdefg", "2:float", "! cannot read as float: "},
	} {
		v := decode.View{}
		if c.choice != "" {
			choice, err := kind.ParseChoice(c.choice)
			if err != nil {
				t.Fatal(err)
			}
			v.Choices, v.Type = []kind.Choice{choice}, md
		}
		var out strings.Builder
		if err := Fields(&out, v.Each(wire.Parse([]byte(c.data), wire.Options{})), ""); err != nil {
			t.Fatal(err)
		}
		if line := strings.ReplaceAll(out.String(), "2 is_extension:", "2:"); !strings.Contains(line, c.line) {
			t.Errorf("%s: %s want %s", c.name, line, c.line)
		}
	}
}

func TestFieldNamesFromASchema(t *testing.T) {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("a.proto"), Package: proto.String("a.v1"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name:  proto.String("M"),
			Field: []*descriptorpb.FieldDescriptorProto{{Name: proto.String("x"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_SINT32.Enum()}},
		}},
	}
	b, err := proto.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Fields(&out, decode.View{Type: file.ProtoReflect().Descriptor()}.Each(wire.Parse(b, wire.Options{})), ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "0000  1 name: string \"a.proto\"\n") || !strings.Contains(out.String(), "      2 field: google.protobuf.FieldDescriptorProto, 7 bytes\n") && !strings.Contains(out.String(), "TYPE_SINT32 (17)") {
		t.Errorf("%s", out.String())
	}
}

// No bytes, whether a text or anything else, get control of a terminal.
func TestFieldsCannotControlATerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		b := append(wire.AppendVarint([]byte{0x0a}, uint64(len(s))), s...)
		b = append(b, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...)
		var out strings.Builder
		if err := Fields(&out, decode.View{}.Each(wire.Parse(b, wire.Options{})), ""); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("%q", out.String())
			}
		}
	})
}

// What is allocated to print the fields of a message does not grow with their number.
func TestFieldsAllocateLittle(t *testing.T) {
	printed := func(n int) float64 {
		tree := wire.Parse(bytes.Repeat([]byte{8, 1, 16, 5}, n), wire.Options{})
		return testing.AllocsPerRun(5, func() {
			if err := Fields(io.Discard, decode.View{}.Each(tree), "  "); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := printed(1000), printed(4000); many > few+10 {
		t.Errorf("%v allocations for 8,000 fields, %v for 2,000", many, few)
	}
}
