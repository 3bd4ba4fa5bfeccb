package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/protocolbuffers/protoscope"
	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"
)

// assemble runs Protoscope's own assembler.
func assemble(src string) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return protoscope.NewScanner(src).Exec()
}

// sameAsProtoscope holds that what Protoscope accepts means the same here.
func sameAsProtoscope(t failer, src string) (accepted bool) {
	t.Helper()
	want, err := assemble(src)
	if err != nil {
		return false
	}
	got, err := Parse([]byte(src))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%.300q: %x, %v; Protoscope: %x", src, got, err, want)
	}
	return true
}

func TestProtoscopeSnippets(t *testing.T) {
	snippets := []string{
		"", "# nothing\n", "7 -7 0x7F -0x7f 7z -7z 007", "18446744073709551615 -9223372036854775808 9223372036854775808z",
		"1i32 -1i32 4294967295i32 -2147483648i32 1i64 -1i64 0xffffffffffffffffi64 0x10i32",
		"0.5 -0.5 2.5i32 2.5i64 1.25e3 1.25e-3 0x1.8p1 -0x1.8p-1 0xa.8 0xa.8i32 inf32 -inf32 inf64 -inf64",
		"true false 1: true 2: false",
		"long-form:1 7 long-form:0 7 long-form:12 300 long-form:2 1: long-form:3 5", "long-form:20 -1",
		"1: 2 3:VARINT 4 5:I32 6:I64 7:LEN 8:SGROUP 9:EGROUP 10:0 11:7 12:6 0:0",
		"0x11: 3 -3: 4 3z: 5 -3z:5 3z:LEN long-form:1 3z: {}", "2305843009213693951: 1 -2305843009213693952: 1",
		"1: 2.5 2: 2.5i32 3: 7i64 4: -7i32 5: inf64 6: inf32 7: 7z", "1: \"text\" 2: `0a`", "1: 2: 3", "1:", "1: {2:}", "1: {2: }",
		"1:\n# between\n{2: 3}", "1:{2:!{3:LEN}}", "1: !{2: !{}3: 4}", "1: !{2: 3 long-form:2}", "1: !{2: {long-form:1 3}long-form:1 }",
		"4: # a group\n !{}", "1: long-form:2 {1: long-form:1 {}}", "{} {1 2 3} {{}{}}", "{1: 5} {1: 6} `ff`",
		"\"\"", "\"a\\\\b\\\"c\\n\\x00\\xfF\\0\\12\\377\\018\" \"two\nlines\" \"# none\" \"}\"", "`` `00FF`", "\"a\"\"b\"`63`1\"d\"",
		"1:LEN 3 \"abc\" 1:LEN 9 \"abc\"", "5:I64 \"short\"", "3: {\"日本語\" \"\x7f\"}",
	}
	for _, s := range snippets {
		if !sameAsProtoscope(t, s) {
			t.Errorf("Protoscope does not accept %q", s)
		}
	}
	if !sameAsProtoscope(t, protoscope.LanguageTxt) {
		t.Error("Protoscope does not accept its own specification")
	}
}

// What Protoscope accepts, we do, and with the same result.
func TestProtoscopeTokens(t *testing.T) {
	pieces := []string{
		"1:", "2:", "3z:", "-4:", "0x5:", "1:LEN", "2:I32", "3:7", "5", "-5", "5z", "5i32", "5i64", "2.5", "2.5i32", "0x1.8", "inf32", "-inf64", "true",
		"{", "}", "{", "}", "!{", " !{", "long-form:1", "long-form:2", "long-form:0", "\"a\"", "`0b`", "\"\\x41\"", "#c\n", "long-form:1 {", "1: !{", "2: {", "99999999999999999999", "x",
	}
	accepted, tried := 0, 0 // rapid tries fewer texts in short mode
	rapid.Check(t, func(t *rapid.T) {
		tried++
		var b strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "tokens") {
			b.WriteString(rapid.SampledFrom(pieces).Draw(t, "token"))
			b.WriteString(rapid.SampledFrom([]string{" ", " ", "\n", ""}).Draw(t, "space"))
		}
		if sameAsProtoscope(t, b.String()) {
			accepted++
		}
	})
	if 10*accepted < tried {
		t.Errorf("only %d of %d texts were compared", accepted, tried)
	}
}

// Our default text is Protoscope, and gives the same bytes there.
func TestProtoscopeReadsOurText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := message(t, 0)
		if rapid.Bool().Draw(t, "broken") {
			in = append(in, rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
		}
		o := Options{In: "raw", As: "message"}
		if rapid.Bool().Draw(t, "delimited") {
			o.As = "delimited"
		}
		d, err := Decode(in, o)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := d.Text(&out); err != nil {
			t.Fatal(err)
		}
		got, err := assemble(out.String())
		if err != nil || !bytes.Equal(got, in) {
			t.Fatalf("%x:\n%s\nProtoscope: %x, %v", in, out.String(), got, err)
		}
	})
}

// And what its disassembler writes, in any of its forms, we read.
func TestWeReadProtoscopesText(t *testing.T) {
	md := (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
	rapid.Check(t, func(t *rapid.T) {
		in := message(t, 0)
		if rapid.Bool().Draw(t, "broken") {
			in = append(in, rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
		}
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		o := protoscope.WriterOptions{
			NoQuotedStrings: flag("no strings"), AllFieldsAreMessages: flag("all messages"), NoGroups: flag("no groups"),
			ExplicitWireTypes: flag("types"), ExplicitLengthPrefixes: flag("lengths"),
		}
		if flag("schema") {
			o.Schema, o.PrintFieldNames, o.PrintEnumNames = md, true, true
		}
		src, ok := disassemble(in, o)
		if !ok {
			return
		}
		back, err := assemble(src)
		if err != nil || !bytes.Equal(back, in) {
			return // it does not read that back itself
		}
		got, err := Parse([]byte(src))
		if err != nil || !bytes.Equal(got, in) {
			t.Fatalf("%x:\n%s\ngives %x, %v", in, src, got, err)
		}
	})
}

func disassemble(in []byte, o protoscope.WriterOptions) (s string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return protoscope.Write(in, o), true
}
