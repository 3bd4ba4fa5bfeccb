package text

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"

	"unwire/decode/envelope"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// roundTrip holds an input to come back from both formats.
func roundTrip(t failer, in []byte, o Options) {
	t.Helper()
	d, err := Decode(in, o)
	if err != nil {
		if o.In == "hex" || o.In == "base64" {
			return // it is none
		}
		t.Fatalf("%v", err)
	}
	for _, d.o.Plain = range []bool{true, false} {
		var text bytes.Buffer
		if err := d.Text(&text); err != nil {
			t.Fatalf("%v", err)
		}
		got, err := Parse(text.Bytes())
		if err != nil || !bytes.Equal(got, in) {
			t.Fatalf("%+v %.200x:\n%.2000s\ngives %.200x, %v", d.o, in, text.String(), got, err)
		}
	}
	var js bytes.Buffer
	if err := d.JSON(&js); err != nil {
		t.Fatalf("%v", err)
	}
	if !json.Valid(js.Bytes()) {
		t.Fatalf("no JSON: %.2000s", js.String())
	}
	got, err := ParseJSON(js.Bytes())
	if err != nil || !bytes.Equal(got, in) {
		t.Fatalf("%+v %.200x:\n%.2000s\ngives %.200x, %v", o, in, js.String(), got, err)
	}
}

func gz(t testing.TB, s string) []byte {
	t.Helper()
	b, err := envelope.Compress("gzip", []byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestText(t *testing.T) {
	stdGzip := unhex(t, "1f8b08000000000000ffcb48cdc9c907008c37f00c05000000") // no valid checksum
	for _, c := range []struct {
		name string
		in   []byte
		o    Options
		want string
	}{
		{"empty", nil, Options{}, ""},
		{"delta", unhex(t, "0a060a040a024869"), Options{}, "1: {\n  1: {\n    1: {\"Hi\"}\n  }\n}\n"},
		{"scalars", unhex(t, "089601 11000000000000f83f 1d00002040 20ffffffffffffffffff01 2d07000000 310500000000000000 00"), Options{As: "message"}, "1: 150\n2: 1.5\n3: 2.5i32\n4: -1\n5: 7i32\n6: 5i64\n# field 0 at 0x2a: the value needs 1 bytes or more, but only 0 are left\n`00`\n"},
		{"overlong", unhex(t, "8800 818000 0a8100 41"), Options{As: "message"}, "long-form:1 1: long-form:2 1\n1: long-form:1 {\"A\"}\n"},
		{"group", unhex(t, "0b 1001 8c00 0b 1001"), Options{As: "message"}, "1: !{\n  2: 1\nlong-form:1 }\n1:SGROUP\n2: 1\n"},
		{"numbers out of range", unhex(t, "0001 f8ffffffffffffffff01 01"), Options{As: "message"}, "0: 1\n2305843009213693951: 1\n"},
		{"packed", unhex(t, "1206 03 8e02 9ea705"), Options{}, "2: {3 270 86942}\n"},
		{"text of lines", append([]byte{0x0a, 9}, "one\ntwo\n\t"...), Options{}, "1: {\n  \"one\\n\"\n  \"two\\n\"\n  \"\\x09\"\n}\n"},
		{"plain text", []byte("{\"a\": \"b\"}\n"), Options{}, "\"{\\\"a\\\": \\\"b\\\"}\\n\"\n"},
		{"frames", unhex(t, "00 00000002 3a00 02 00000002 7b7d 00 00000000"), Options{}, "frame 0x00 {\n  7: {}\n}\nframe 0x02 {\n  \"{}\"\n}\nframe 0x00 {}\n"},
		{"frame cut", unhex(t, "00 00000009 0801 "), Options{As: "frames"}, "frame 0x00 len:9 {\n  1: 1\n}\n"},
		{"header cut", unhex(t, "0000"), Options{As: "frames"}, "# the header of a gRPC frame is truncated: it has 5 bytes, and 2 are there\n`0000`\n"},
		{"4 GiB", unhex(t, "00 ffffffff"), Options{As: "frames"}, "frame 0x00 len:4294967295 {}\n"},
		{"own gzip", envelope.Append(nil, 1, gz(t, "\x0a\x05hello")), Options{}, "frame 0x01 gzip {\n  1: {\"hello\"}\n}\n"},
		{"broken gzip", envelope.Append(nil, 1, stdGzip), Options{}, "frame 0x01 {\n  `1f8b08000000000000ffcb48cdc9c907008c37f00c05000000`\n}\n"},
		{"hex", []byte("0a060a040a024869\n"), Options{}, "# unwire: hex end:0a\n1: {\n  1: {\n    1: {\"Hi\"}\n  }\n}\n"},
		{"hex in groups", []byte("0A 02 48 69\r\n"), Options{}, "# unwire: hex upper group:1 end:0d0a\n1: {\"Hi\"}\n"},
		{"hex in lines", []byte("0a06\n0a04\n0a02\n4869"), Options{}, "# unwire: hex cols:4 nl:0a\n1: {\n  1: {\n    1: {\"Hi\"}\n  }\n}\n"},
		{"base64", []byte("CgYKBAoCSGk="), Options{}, "# unwire: base64\n1: {\n  1: {\n    1: {\"Hi\"}\n  }\n}\n"},
		{"nan and infinity", unhex(t, "09 000000000000f87f 15 0000807f"), Options{As: "message"}, "1: 9221120237041090560i64\n2: inf32\n"},
		{"minus zero", unhex(t, "09 0000000000000080 15 00000080"), Options{As: "message"}, ""},
		{"terminal", append([]byte{0x0a, 20}, "\x1b[2Jcleared screen\u009b"...), Options{As: "message"}, "1: {\"\\x1b[2Jcleared screen\\xc2\\x9b\"}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Decode(c.in, c.o)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := d.Text(&out); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if i := strings.Index(got, "  # "); i >= 0 && !strings.Contains(c.want, "  # ") {
				got = withoutRemarks(got)
			}
			if got != c.want && c.want != "" {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			roundTrip(t, c.in, c.o)
		})
	}
}

func withoutRemarks(s string) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		line, _, _ = strings.Cut(line, "  # ")
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func TestSourcesComeBack(t *testing.T) {
	message := unhex(t, "0a060a040a02486912141a1268656c6c6f20776f726c642c20616761696e")
	std := base64.StdEncoding.EncodeToString(message)
	for _, in := range []string{
		"00 00000008 0a060a040a024869", " 0a02 4869", "0a024869\n\n", "0A024869", "0a02486A", "0a024869 ", "0a0248\n69",
		"0x0a", "", "\n", "00", "00 ", std, std + "\n", strings.TrimRight(std, "="), std[:20] + "\n" + std[20:] + "\n", std[:3] + " " + std[3:],
		base64.URLEncoding.EncodeToString([]byte("\x0a\x04\xff\xfe\xfd\xfc\x12\x04text")), "hello", "a4", "YWJj", "deadbeefdeadbeef",
		hex.Dump(message),
	} {
		for _, form := range []string{"auto", "raw", "hex", "base64"} {
			roundTrip(t, []byte(in), Options{In: form})
		}
	}
	for _, o := range []Options{{In: "octal"}, {As: "table"}} {
		if _, err := Decode(nil, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if _, err := Decode([]byte("xyz"), Options{In: "hex"}); err == nil {
		t.Error("xyz is hex")
	}
}

// An edited text keeps the style of its source.
func TestEdits(t *testing.T) {
	for _, c := range []struct{ in, from, to, want string }{
		{"0a 02 48 69\n", `"Hi"`, `"Hello"`, "0a 05 48 65 6c 6c 6f\n"},
		{"0A0248\n690801\n", "1: 1", "1: 2", "0A0248\n690802\n"},
		{"00 00000004 0a024869", `"Hi"`, `"Ha"`, "00 000000 04 0a 02 48 61"},
		{"CgYKBAoCSGk=\n", `"Hi"`, `"H"`, "CgUKAwoBSA==\n"},
	} {
		d, err := Decode([]byte(c.in), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := d.Text(&out); err != nil {
			t.Fatal(err)
		}
		got, err := Parse([]byte(strings.Replace(out.String(), c.from, c.to, 1)))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if c.in[0] == '0' && strings.Contains(c.in, " 0000") {
			// An irregular layout cannot be continued; the bytes are right.
			if clean := strings.Join(strings.Fields(string(got)), ""); clean != "00000000040a024861" {
				t.Errorf("%q: %q", c.in, got)
			}
			continue
		}
		if string(got) != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
	// A compressed frame of another compressor: its payload stays until the data changes.
	raw := unhex(t, "1f8b0800000000000003e3 62cd48cdc9c907 00")
	raw = append(raw, 0xff)
	foreign := foreignGzip(t, "\x0a\x05hello")
	frame := envelope.Append(nil, 1, foreign)
	d, err := Decode(frame, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := d.Text(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "raw:`") {
		t.Fatalf("%s (%x)", out.String(), raw)
	}
	same, err := Parse([]byte(out.String()))
	if err != nil || !bytes.Equal(same, frame) {
		t.Errorf("%x, %v", same, err)
	}
	other, err := Parse([]byte(strings.Replace(out.String(), "hello", "world!", 1)))
	if err != nil {
		t.Fatal(err)
	}
	frames, ok := envelope.Split(other)
	if !ok || len(frames) != 1 {
		t.Fatalf("%x", other)
	}
	if data, err := envelope.Decompress("gzip", frames[0].Raw, 0); string(data) != "\x0a\x06world!" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// foreignGzip compresses as our own compressor does not: stored.
func foreignGzip(t testing.TB, s string) []byte {
	b := gz(t, s)
	sum := b[len(b)-8:]
	out := append([]byte{0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 0, 3, 1, byte(len(s)), 0, ^byte(len(s)), 0xff}, s...)
	return append(out, sum...)
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"1: 5z 2: -3z", "080a 1005"},
		{"1: true 2: false 3: 0x10", "0801 1000 1810"},
		{"1: 1.5 2: 1e3i32 3: inf64 4: -inf32 5: -1i32 6: 0xffi64", "09000000000000f83f 1500007a44 19000000000000f07f 25000080ff 2dffffffff 31ff00000000000000"},
		{"1: {'a' \"\\x62\\143\\n\" `64 65`}", "0a06 616263 0a 6465"},
		{"1: {1 2 3} 2: !{3: {}}", "0a03010203 131a0014"},
		{"3:LEN 5 3:SGROUP 3:EGROUP 1:0 7", "1a05 1b 1c 0807"},
		{"1: long-form:2 {2: 1} # comment\nlong-form:1 5", "0a828000 1001 8500"},
		{"frame 1 gzip {} frame 0 len:3 {`01`}", ""},
		{"# a comment only", ""},
		{"\"a\" # unwire: hex\n", "61"},
	} {
		got, err := Parse([]byte(c.in))
		if want := unhex(t, c.want); err != nil || c.want != "" && !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v, want %x", c.in, got, err, want)
		}
	}
	for _, c := range []struct{ in, want string }{
		{"1: {", "line 1, column 4: the brace { is not closed"},
		{"1: 2\n }", "line 2, column 2: the brace } has no { before it"},
		{"1: 2\n2: \"a", "line 2, column 4: the string has no closing quote"},
		{"1:x", "is not a wire type"},
		{"long-form:5000 1", "must have a number from 0 to 4096"},
		{"1: 5\n-2305843009213693953: 1", "line 2, column 1: field number"},
		{"1i32: 1", "a field number cannot have a width suffix"},
		{"name: 1", "field number \"name\""},
		{"1: 2, 3", "line 1, column 5: unexpected ','"},
		{"1: {long-form:1 }", "must be followed by a number"},
		{"long-form:1", "the text ends after long-form"},
		{"long-form:2 \"a\"", "long-form must be followed by a number"},
		{"`0", "the closing ` is missing"},
		{"`0 `", "the number of hex digits is odd"},
		{"`0g`", "not a hex digit"},
		{"\"\\q\"", "not an escape"},
		{"18446744073709551616", "not a number of 64 bits"},
		{"4294967296i32", "not a number of 32 bits"},
		{"@", "unexpected '@'"},
		{"frame 256 {}", "flags"},
		{"frame 0 lzma {}", "compression"},
		{"1: {frame 0 {}}", "cannot be nested inside"},
		{"frame 0", "needs an opening brace"},
		{"# unwire: octal\n", "is not an encoding"},
		{"# unwire: hex what\n", "not known"},
		{"# unwire: hex text:!\n", "directive"},
	} {
		got, err := Parse([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "text: line ") {
			t.Errorf("%s: %x, %v, want %s", c.in, got, err, c.want)
		}
	}
}

func TestParseJSON(t *testing.T) {
	got, err := ParseJSON([]byte(`{"v":1,"as":"message","fields":[{"n":1,"wire":"varint","value":150},{"n":2,"wire":"len","kind":"message","fields":[{"n":1,"wire":"len","kind":"string","value":"Hi"}]},{"n":3,"wire":"varint","type":"sint64","value":-3},{"n":4,"wire":"varint","type":"bool","value":true},{"n":5,"wire":"len","kind":"packed","type":"packed sint32","value":[-1,1]}]}`))
	if want := unhex(t, "089601 1204 0a024869 1805 2001 2a020102"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	for _, c := range []struct{ in, want string }{
		{"{\"v\":1,\n\"what\":1}", "line 2"},
		{"{", "line 1"},
		{`{"v":2}`, "newer"},
		{`{"fields":[{"n":1,"wire":"len","kind":"message","fields":[{"n":1,"wire":"x"}]}]}`, "fields[0]: fields[0]: the member wire"},
		{`{"frames":[{"flags":1,"encoding":"lzma"}]}`, "frames[0]"},
		{`{"fields":[{"n":1,"wire":"i32","value":4294967296}]}`, "fits i32"},
		{`{"fields":[{"n":1,"wire":"varint","value":1,"long_value":10}]}`, "long_value"},
		{`{"in":"hex x"}`, "the member in is invalid"},
		{`{"v":1} 2`, "more text after the JSON"},
		{"{\"v\":1,\"fields\":[\n{\"n\":1,\"wire\":\"varint\",\"value\":1},\n{\"n\":1,\"wire\":\"varint\" \"value\":1}]}", "line 3, column 24: invalid character"},
		{"{\"fields\":[\n{\"n\":1,\"wire\":\"varint\",\"value\":1},\n {\"n\":1,\"wire\":\"varint\",\"value\":\"x\"}]}", "line 3, column 2: fields[1]: the value must be a number"},
		{"{\"fields\":[\n{\"n\":\"a\",\"wire\":\"varint\",\"value\":1}]}", "line 2, column "},
		{"{\"fields\":[\n{\"number\":1}]}", "line 2, column 1: json: unknown field"},
		{"{\"fields\":[\nnull]}", "line 2, column 1: fields[0] must not be null"},
		{`{"fields":5}`, "fields: found 5 where a list is expected"},
		{`[]`, "found [ where { is expected"},
		{"{\"v\":1,\"fields\":[{\"n\":1", "unexpected end"},
	} {
		if got, err := ParseJSON([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "text: line ") {
			t.Errorf("%s: %x, %v, want %s", c.in, got, err, c.want)
		}
	}
}

// input draws what people feed to decode, and what nobody should.
func input(t *rapid.T) []byte {
	var b []byte
	switch rapid.IntRange(0, 5).Draw(t, "shape") {
	case 0:
		b = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	case 1:
		b = rapid.SliceOf(rapid.OneOf(rapid.ByteRange(0, 40), rapid.Byte())).Draw(t, "tags")
	case 2:
		b = []byte(rapid.String().Draw(t, "text"))
	case 3:
		b = message(t, 0)
	case 4:
		for range rapid.IntRange(0, 4).Draw(t, "frames") {
			flags := envelope.Flags(rapid.SampledFrom([]byte{0, 1, 2, 3, 0x80, 0x44}).Draw(t, "flags"))
			payload := message(t, 2)
			if flags&1 != 0 && rapid.Bool().Draw(t, "compress") {
				payload, _ = envelope.Compress(rapid.SampledFrom([]string{"gzip", "zstd", "br"}).Draw(t, "with"), payload)
			}
			b = envelope.Append(b, flags, payload)
		}
	case 5:
		b = append(message(t, 1), rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
	}
	switch rapid.IntRange(0, 5).Draw(t, "form") {
	case 0:
		b = []byte(hex.EncodeToString(b))
	case 1:
		b = []byte(base64.StdEncoding.EncodeToString(b))
	case 2:
		s := strings.ToUpper(hex.EncodeToString(b))
		b = nil
		for _, c := range []byte(s) {
			b = append(append(b, rapid.SampledFrom([]string{"", "", "", " ", "\n"}).Draw(t, "space")...), c)
		}
	}
	return b
}

// message draws a message that nests, with overlong varints.
func message(t *rapid.T, depth int) []byte {
	var b []byte
	width := func() int { return max(rapid.IntRange(-4, 4).Draw(t, "width"), 0) }
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		number := uint64(rapid.IntRange(0, 40).Draw(t, "number"))
		tag := func(typ uint64) { b = wire.AppendVarintWidth(b, number<<3|typ, width()) }
		switch k := rapid.IntRange(0, 6).Draw(t, "kind"); {
		case k == 0:
			tag(0)
			b = wire.AppendVarintWidth(b, rapid.Uint64().Draw(t, "v"), width())
		case k == 1:
			tag(1)
			b = append(b, rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "i64")...)
		case k == 2:
			tag(5)
			b = append(b, rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "i32")...)
		case k == 3 && depth < 4:
			tag(2)
			m := message(t, depth+1)
			b = append(wire.AppendVarintWidth(b, uint64(len(m)), width()), m...)
		case k == 4 && depth < 4:
			tag(3)
			b = append(b, message(t, depth+1)...)
			tag(4)
		case k == 5 && rapid.Bool().Draw(t, "fixed"):
			tag(2)
			var m []byte
			for range rapid.IntRange(0, 5).Draw(t, "packed") {
				if rapid.Bool().Draw(t, "narrow") {
					m = append(m, packed32(rapid.SampledFrom(strange32).Draw(t, "element"))...)
				} else {
					m = append(m, packed64(rapid.SampledFrom(strange64).Draw(t, "element"))...)
				}
			}
			b = append(wire.AppendVarint(b, uint64(len(m))), m...)
		case k == 5:
			tag(2)
			var m []byte
			for range rapid.IntRange(0, 5).Draw(t, "packed") {
				m = wire.AppendVarint(m, rapid.Uint64Max(1<<20).Draw(t, "element"))
			}
			b = append(wire.AppendVarint(b, uint64(len(m))), m...)
		default:
			tag(2)
			s := rapid.StringN(0, 40, 200).Draw(t, "s")
			b = append(wire.AppendVarintWidth(b, uint64(len(s)), width()), s...)
		}
	}
	return b
}

// choices are about fields that random messages have.
var choices = []string{
	"1:string", "1:bytes", "1:message", "2:packed", "2:packed-fixed32", "3:packed-fixed64", "1.1:bytes", "1.2:string", "1[0]:packed",
	"2:sint64", "3:float", "3:double", "4:string", "1.1.1:message", "5:timestamp-s", "1:auto",
	"1:packed-float", "2:packed-double", "3:packed-sint64", "4:packed-bool", "5:packed-uint64", "6:packed-sfixed32", "7:packed-fixed64",
	"1:int64", "2:uint64", "3:sfixed64", "4:bool", "5:enum", "6:packed-int64", "8:float", "9:double",
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAnyInputComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			In: rapid.SampledFrom([]string{"", "auto", "raw", "hex", "base64"}).Draw(t, "in"),
			As: rapid.SampledFrom([]string{"", "auto", "message", "frames", "delimited"}).Draw(t, "as"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "schema") {
		case 1:
			o.Type = (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
		case 2:
			o.Type = lists()
		}
		for _, c := range rapid.SliceOfN(rapid.SampledFrom(choices), 0, 5).Draw(t, "choices") {
			o.Choices = append(o.Choices, must(kind.ParseChoice(c)))
		}
		if rapid.Bool().Draw(t, "pooled") {
			ev := kind.NewEvidence()
			for range 3 {
				_ = ev.Add("M", input(t)) // what is no message says nothing
			}
			o.Evidence = kind.NewPooled(ev.Root("M"))
		}
		o.segmentLen = rapid.SampledFrom([]int{0, 1, 10, 30}).Draw(t, "segment")
		o.Wire.MaxDepth = rapid.IntRange(0, 4).Draw(t, "depth")
		o.Wire.MaxNodes = rapid.SampledFrom([]int{0, 3, 10}).Draw(t, "nodes")
		roundTrip(t, input(t), o)
	})
}

// TestPlain: plain text has no comments but names, and decides by the bytes alone.
func TestPlain(t *testing.T) {
	in := unhex(t, "0a0568656c6c6f 1096 01 1a04 0a02 6869 2201 0a 2a03 ff00ff 3204 0a023a28 3dd0cc8c3f 4a10 65794a68624763694f694a49557a4931")
	want := `1: {"hello"}
2: 150
3: {
  1: {"hi"}
}
4: {` + "`0a`" + `}
5: {` + "`ff00ff`" + `}
6: {
  1: {":("}
}
7: 1066192080i32
9: {"eyJhbGciOiJIUzI1"}
`
	d := must(Decode(in, Options{In: "raw", As: "message", Plain: true}))
	var text bytes.Buffer
	if err := d.Text(&text); err != nil || text.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, text.String(), want)
	}
	d.o.Type = (&descriptorpb.FieldDescriptorProto{}).ProtoReflect().Descriptor()
	text.Reset()
	if err := d.Text(&text); err != nil || !strings.Contains(text.String(), `1: {"hello"}  # name: string`) {
		t.Errorf("%v\n%s\nwant the names of fields", err, text.String())
	}
}

// Packed varints that are longer than need be are not read as numbers, whoever says so.
func TestOverlongPackedComesBack(t *testing.T) {
	data := []byte{0x52, 0x03, 0x80, 0x00, 0x01} // public_dependency: repeated int32
	for _, o := range []Options{
		{In: "raw", As: "message", Choices: []kind.Choice{must(kind.ParseChoice("10:packed"))}},
		{In: "raw", As: "message", Type: (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()},
	} {
		rapid.Check(t, func(t *rapid.T) { roundTrip(t, data, o) })
	}
}

func TestNamesInComments(t *testing.T) {
	md := (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
	d, err := Decode(unhex(t, "0a01 61 22 03 0a0141 "), Options{Type: md})
	if err != nil {
		t.Fatal(err)
	}
	var out, js strings.Builder
	if err := d.Text(&out); err != nil {
		t.Fatal(err)
	}
	want := "1: {\"a\"}  # name: string\n4: {  # message_type: repeated google.protobuf.DescriptorProto\n  1: {\"A\"}  # name: string\n}\n"
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	if err := d.JSON(&js); err != nil || !strings.Contains(js.String(), `"name":"message_type"`) {
		t.Errorf("%s, %v", js.String(), err)
	}
}

func TestHostileInput(t *testing.T) {
	nested := func(depth int) (b []byte) {
		for range depth {
			b = append(wire.AppendVarint([]byte{0x0a}, uint64(len(b))), b...)
		}
		return b
	}
	for name, in := range map[string][]byte{
		"10,000 nested messages": nested(10_000),
		"groups":                 bytes.Repeat([]byte{0x0b}, 1<<14),
		"end groups":             bytes.Repeat([]byte{0x0c}, 1<<14),
		"empty frames":           make([]byte, 5*10_000),
		"zeros":                  make([]byte, 1<<14+1),
		"a's":                    bytes.Repeat([]byte("a"), 1<<17),
		"quotes":                 bytes.Repeat([]byte("\""), 1<<17),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			roundTrip(t, in, Options{})
			roundTrip(t, in, Options{As: "message", Wire: wire.Options{MaxDepth: 12_000}})
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%v for %d bytes", d, len(in))
			}
		})
	}
	// Text that nests without end must not take more than linear time either.
	start := time.Now()
	deep := []byte(strings.Repeat("1: {", 200_000) + strings.Repeat("}", 200_000))
	if _, err := Parse(deep); err != nil || time.Since(start) > time.Minute {
		t.Errorf("%v, %v", time.Since(start), err)
	}
}

// A large input is written as it is read.
func TestLargeInput(t *testing.T) {
	if testing.Short() {
		t.Skip("a large input")
	}
	var in []byte
	for i := 0; len(in) < 32<<20; i++ {
		in = envelope.Append(in, 0, append(append([]byte{0x0a, 0x80, 0x80, 0x04}, bytes.Repeat([]byte("some text. "), 5957)...), bytes.Repeat([]byte{'x'}, 65536-5957*11)...))
	}
	d, err := Decode(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	n := counter(0)
	if err := d.Text(&n); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := time.Since(start); took > time.Minute || int(n) < len(in) {
		t.Errorf("%v for %d bytes", took, n)
	}
	// All that was allocated, garbage included: a fraction of the input.
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(len(in)) {
		t.Errorf("%d bytes allocated for %d", used, len(in))
	}
}

// A message of many fields is written piece by piece, with the same result.
func TestLargeMessage(t *testing.T) {
	o := Options{segmentLen: 1000}
	var in []byte
	for i := range 200 {
		in = append(in, fmt.Sprintf("\x0a\x18\x0a\x04Hi%02d\x10\x96\x01\x1a\x0dsome more tex", i%100)...)
	}
	for name, c := range map[string]struct {
		in []byte
		as string
	}{
		"message":        {in, "message"},
		"with a bad end": {append(bytes.Clone(in), 0x0f), "message"},
		"with a group":   {append(append(bytes.Clone(in), 0x0b), in[:260]...), "message"},
		"zeros":          {make([]byte, 5000), "frames"},
		"one field":      {append(wire.AppendVarint([]byte{0x0a}, uint64(len(in))), in...), "message"},
		"text":           {[]byte(strings.Repeat("日本語 text\n", 1000)), "text"},
	} {
		roundTrip(t, c.in, o)
		if d, err := Decode(c.in, o); err != nil || d.As != c.as {
			t.Errorf("%s: %s, %v", name, d.As, err)
		}
	}
	d, err := Decode(in, o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.Text(&out); err != nil {
		t.Fatal(err)
	}
	if whole := Format(wire.Parse(in, wire.Options{}), nil); out.String() != whole {
		t.Error("in pieces it is written in another way")
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func FuzzTextRoundTrip(f *testing.F) {
	seeds(f)
	typ, choices := lists(), newMaker(1).choices
	f.Fuzz(func(t *testing.T, in []byte, mode uint8) {
		o := modeOf(mode)
		switch mode >> 4 & 3 {
		case 1:
			o.Type = typ
		case 2:
			o.Choices = choices
		}
		roundTrip(t, in, o)
	})
}

func FuzzJSONRoundTrip(f *testing.F) {
	f.Add([]byte(`{"v":1,"fields":[{"n":1,"wire":"varint","value":150},{"n":2,"wire":"len","kind":"message","fields":[]}]}`))
	f.Add([]byte(`{"v":1,"in":"hex group:1","frames":[{"flags":1,"encoding":"gzip","text":"a"},{"rest":"AA=="}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := ParseJSON(in)
		if err == nil {
			roundTrip(t, out, Options{})
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("1: {2: !{3: 1.5i32 long-form:1 }} `ff` \"a\\x00\" frame 1 gzip {1: {1 2 3}}"))
	f.Add([]byte("1: {2: {\"0a0568656c6c6f1001\"}\n#| hex of a message, 25517452:\n#|   1: {\"hallo\"}\n#|  2: 1\n3: 1}"))
	f.Add([]byte("1: {\"{\\\"a\\\":1}\"}\n#| JSON, 00000000:\n#| {\"a\": 2}\n2: 1"))
	f.Add([]byte("# unwire: hex upper group:1 cols:20 nl:0a end:0a\n1: long-form:2 {true -5 5z}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := Parse(in)
		if err != nil && !strings.HasPrefix(err.Error(), "text: line ") {
			t.Fatalf("an error without its place: %v", err)
		}
		if err == nil {
			roundTrip(t, out, Options{})
		}
	})
}

func modeOf(mode uint8) Options {
	return Options{In: []string{"", "raw", "hex", "base64"}[mode&3], As: []string{"", "message", "frames", "delimited"}[mode>>2&3]}
}

func seeds(f *testing.F) {
	for i, s := range []string{"0a060a040a024869", "CgYKBAoCSGk=", "\x0a\x02Hi", "\x00\x00\x00\x00\x02\x3a\x00\x02\x00\x00\x00\x02{}", "\x0b\x10\x01\x8c\x00\x0b", "\x12\x06\x03\x8e\x02\x9e\xa7\x05"} {
		f.Add([]byte(s), uint8(i))
	}
	f.Add(envelope.Append(nil, 1, gz(f, "\x0a\x05hello")), uint8(0))
	f.Add([]byte("00000000  0a 05 68 65 6c 6c 6f 10  96 01 1a 00 00 00 00 00  |..hello.........|\n*\n00000030  1a 00    |..|\n00000032\n"), uint8(0))
	f.Add([]byte("00000000: 0a05 6865 6c6c 6f10 9601  ..hello...\n"), uint8(0))
	f.Add([]byte("data:a/b;base64,CgVoZWxsbxCWAQ=="), uint8(0))
	f.Add([]byte("0x0a, 0x05, \"\\x68\""), uint8(0))
	f.Add([]byte("\x07\x0a\x05hello\x02\x08\x01"), uint8(0))
	f.Add([]byte("\x0a\x140a0568656c6c6f109601\x12\x20\x0a\x04text\x1a\x09la"), uint8(0))
	f.Add([]byte("0000000 050a 6568 6c6c 106f 0196\n000000a\n"), uint8(0))
	f.Add([]byte("char m[] = {0x0a, 5, 'h'}; b'\\n\\x05hello'"), uint8(0))
	f.Add(gz(f, "\x0a\x05hello"), uint8(0))
	f.Add([]byte("\x0a\x14"+hex.EncodeToString([]byte("\x0a\x05hello\x10\x96\x01"))), uint8(1))
}

// TestFramesAreIndependent: a frame is printed as it is alone, whatever the printer's memory contains of earlier frames.
func TestFramesAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	texts := []string{"", "ok", "a\nb", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "0a0568656c6c6f109601", `{"a":[1,2]}`, "\xff\xfe\x00\x01", "\x08\x01\x10\x02", "1234567890123456"}
	var message func(depth int) []byte
	message = func(depth int) (b []byte) {
		for n := range uint64(r.IntN(5)) {
			number := n + 1 + r.Uint64N(2)
			switch r.IntN(5) {
			case 0:
				b = wire.AppendVarint(wire.AppendVarint(b, number<<3), r.Uint64N(1<<r.IntN(64)))
			case 1:
				b = append(wire.AppendVarint(b, number<<3|5), byte(r.Uint32()), 0, byte(r.Uint32()), 0x40)
			case 2, 3:
				text := texts[r.IntN(len(texts))]
				b = append(wire.AppendVarint(wire.AppendVarint(b, number<<3|2), uint64(len(text))), text...)
			default:
				if depth < 3 {
					inner := message(depth + 1)
					b = append(wire.AppendVarint(wire.AppendVarint(b, number<<3|2), uint64(len(inner))), inner...)
				}
			}
		}
		return b
	}

	var all []byte
	var want strings.Builder
	text := func(data []byte, w io.Writer) {
		d, err := Decode(data, Options{In: "raw", As: "frames"})
		if err == nil {
			err = d.Text(w)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 400 {
		m := message(0)
		if i%20 == 19 {
			m = m[:r.IntN(len(m)+1)]
		}
		frame := envelope.Append(nil, 0, m)
		all = append(all, frame...)
		text(frame, &want)
	}
	var got strings.Builder
	if text(all, &got); got.String() != want.String() {
		t.Error("the frames are printed differently when they are alone")
	}
}

// BenchmarkText prints and parses small frames: one that repeats, and those of a stream of text, which all differ.
func BenchmarkText(b *testing.B) {
	words := strings.Fields("the stream of words that a model writes and what it says of files, tests and func main()")
	for name, frame := range map[string]func(i int) []byte{
		"repeated": func(i int) []byte {
			return fmt.Appendf(nil, "\x0a\x18\x0a\x04Hi%02d\x10\x96\x01\x1a\x0dsome more tex\x20\x05", i%100)
		},
		"stream": func(i int) []byte {
			text := words[i%len(words)] + " " + words[i/7%len(words)]
			inner := fmt.Appendf([]byte{0x12, byte(len(text))}, "%s\x18%c", text, i%4)
			inner = wire.AppendVarint(append(inner, 8), uint64(i))
			return append([]byte{0x0a, byte(len(inner))}, inner...)
		},
	} {
		var in []byte
		for i := range 2000 {
			in = envelope.Append(in, 0, frame(i))
		}
		d, err := Decode(in, Options{})
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		b.Run(name+"/write", func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := d.Text(&out); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/read", func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if _, err := Parse(out.Bytes()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What is written while it is read is what Parse gives.
func TestEncodeInPieces(t *testing.T) {
	line := "1: {\"some text\" 2: !{3: 1.5}} # a comment\n2: long-form:2 7\n"
	for _, src := range []string{"", line, strings.Repeat(line, 25_000), "# unwire: hex end:0a\n" + strings.Repeat(line, 10_000), strings.Repeat("frame 0 {1: 5}\n", 80_000)} {
		want, err := Parse([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		last := 0
		err = Encode(&out, []byte(src), func(off int) {
			if off < last {
				t.Errorf("%d behind %d", off, last)
			}
			last = off
		})
		if err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%.40q: %d bytes, %v, want %d", src, out.Len(), err, len(want))
		}
		if len(want) > 2*pieceLen && src[0] != '#' && last == 0 {
			t.Errorf("%.40q: nothing is released", src)
		}
	}
	d, err := Decode(bytes.Repeat([]byte("\x0a\x0asome words\x10\x96\x01"), 30_000), Options{In: "raw", As: "message"})
	if err != nil {
		t.Fatal(err)
	}
	var js, back bytes.Buffer
	if err := d.JSON(&js); err != nil {
		t.Fatal(err)
	}
	released := 0
	if err := EncodeJSON(&back, js.Bytes(), func(off int) { released = off }); err != nil || !bytes.Equal(back.Bytes(), d.Data) || released == 0 {
		t.Errorf("JSON: %d bytes, %v, released %d", back.Len(), err, released)
	}
	var out bytes.Buffer
	if err := Encode(&out, []byte(strings.Repeat(line, 25_000)+"}"), nil); err == nil || !strings.Contains(err.Error(), "line 50001, column 1") {
		t.Error(err)
	}
}

func TestHints(t *testing.T) {
	for src, want := range map[string]string{
		"1: {\n2: 3": "add as many }", "1: nan": "write its bits", "text: 5": "write a field as its number", "1: 2; 3: 4": "separate values and fields by white space",
		"1: [1 2]": "2: {1 2 3}", "1: \"a": "end the string with the quote", "1: null": "leave out a field", "1:LENGTH {}": "VARINT, I64", "1: True": "in lower case",
	} {
		_, err := Parse([]byte(src))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%q: %v, hint %q, want %q", src, err, e.Hint, want)
		}
	}
}

func TestDelimited(t *testing.T) {
	one := []byte("\x0a\x05hello\x10\x96\x01")
	var many []byte
	for range 5 {
		many = append(wire.AppendVarint(many, uint64(len(one))), one...)
	}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"several":         {many, "delimited"},
		"one":             {append([]byte{byte(len(one))}, one...), "delimited"},
		"a message":       {one, "message"},
		"a small message": {[]byte("\x02\x08\x01"), "message"},
		"with a rest":     {append(bytes.Clone(many), 9), "message"},
		"text":            {[]byte("\nhello world"), "text"},
		"words":           {[]byte("some words of a text"), "text"},
		"zeros":           {make([]byte, 7), "message"},
	} {
		d, err := Decode(c.in, Options{In: "raw"})
		if err != nil || d.As != c.want {
			t.Errorf("%s: %s, want %s, %v", name, d.As, c.want, err)
		}
		roundTrip(t, c.in, Options{As: "delimited"})
	}
}
