package infer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/internal/schematest"
)

// explains fails the test unless the definitions read all samples without unknown fields and, if same is set, write
// them again byte for byte.
func explains(t *testing.T, in *Inferred, samples [][]byte, same bool) {
	t.Helper()
	for i, s := range samples {
		m := dynamicpb.NewMessage(in.Schema.Message("p.Root"))
		if err := proto.Unmarshal(s, m); err != nil {
			t.Fatal(err)
		}
		if path := schema.TypeWithUnknownFields(m); path != "" {
			t.Fatalf("sample %d: unknown fields in %s\n%s", i, path, must(in.Text()))
		}
		back, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if same && !bytes.Equal(back, s) {
			t.Fatalf("sample %d:\n%x\n%x\n%s", i, s, back, must(in.Text()))
		}
	}
}

// TestExplainsItsInput: messages of more than one type under one field, groups, reserved numbers, lists whose order a
// map would lose, lists that are written twice, and members of oneofs that are written last.
func TestExplainsItsInput(t *testing.T) {
	t.Parallel()
	tags := func() schematest.Tags { return nil }
	for _, c := range []struct {
		name   string
		sample func(i int) []byte
		want   string
		same   bool
	}{
		{"two types under one field", func(i int) []byte {
			inner := tags().Varint(1, uint64(i)+1).Text(2, "words of a text")
			if i%2 > 0 {
				inner = tags().Text(1, "a name").Varint(3, 7)
			}
			return tags().Text(1, string(tags().Text(2, string(inner)).Varint(3, 9)))
		}, "messages of more than one type: their field 1 has two wire types", true},
		{"a group inside", func(i int) []byte {
			return tags().Text(1, string(append(tags().Varint(1, uint64(i)), 0x13, 0x08, 0x01, 0x14)))
		}, "a group, field 2", true},
		{"a reserved number", func(i int) []byte {
			return tags().Text(1, string(tags().Varint(1, uint64(i)+1).Varint(19_001, 5)))
		}, "reserved to protobuf itself", true},
		{"a list of named things", func(i int) []byte {
			return tags().Text(1, string(tags().Text(1, "width").Text(2, fmt.Sprint(i)))).
				Text(1, string(tags().Text(1, "height").Text(2, "9"))).Text(1, string(tags().Text(1, "depth").Text(2, "3")))
		}, "Could be a map", true},
		{"a sorted map", func(i int) []byte {
			return tags().Text(1, string(tags().Text(1, "a").Text(2, fmt.Sprint(i)))).
				Text(1, string(tags().Text(1, "b").Text(2, "9"))).Text(1, string(tags().Text(1, "c").Text(2, "3")))
		}, "map<string, string>", true},
		{"a map in the order of a hash table", func(i int) []byte {
			a, b := string(tags().Text(1, "width").Text(2, fmt.Sprint(i))), string(tags().Text(1, "height").Text(2, "9"))
			if i%3 == 0 {
				a, b = b, a
			}
			return tags().Text(1, a).Text(1, b)
		}, "map<string, string>", false},
		{"numbers that are no packed list", func(i int) []byte {
			return tags().Text(1, string([]byte{byte(i%7) + 1, 2, 3})).Text(1, string([]byte{4, byte(i%5) + 1}))
		}, "repeated bytes field_1", true},
		{"a member of a oneof", func(i int) []byte {
			return tags().Text(1, fmt.Sprintf("text %d", i)).Varint(7, uint64(i)+2).Text(3, "written last")
		}, "oneof choice_3", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var samples [][]byte
			for i := range 24 {
				samples = append(samples, c.sample(i))
			}
			in := inferAllOdd(t, samples)
			// Comments are broken into lines.
			if text := strings.Join(strings.Fields(strings.ReplaceAll(must(in.Text()), "//", "")), " "); !strings.Contains(text, c.want) {
				t.Errorf("no %q in\n%s", c.want, must(in.Text()))
			}
			explains(t, in, samples, c.same)
		})
	}
}

// TestRandomSchemasExplainThemselves: what is inferred from samples in canonical form writes them again byte for byte,
// also where oneofs are written last.
func TestRandomSchemasExplainThemselves(t *testing.T) {
	t.Parallel()
	same, all := 0, 0
	for seed := range uint64(40) {
		c := schematest.RandomCorpus(t, 70_000+seed, 0)
		g := schematest.NewGenerator(schematest.NewRand(seed))
		for range 12 {
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Message(c.Truth, 0))
			if err != nil {
				t.Fatal(err)
			}
			c.Samples = append(c.Samples, b)
		}
		in := inferCorpus(t, c)
		explains(t, in, c.Samples, false)
		for _, s := range c.Samples {
			m := dynamicpb.NewMessage(in.Schema.Message("p.Root"))
			if err := proto.Unmarshal(s, m); err != nil {
				t.Fatal(err)
			}
			back, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if all++; bytes.Equal(back, s) {
				same++
			}
		}
	}
	if all < 400 || same < all*99/100 {
		t.Errorf("%d of %d samples are the same again", same, all)
	}
}

// TestConfidenceAgreesWithItsDoubt: no field is certain to be of a kind while the observation that would settle the
// doubt has been made already.
func TestConfidenceAgreesWithItsDoubt(t *testing.T) {
	t.Parallel()
	texts := []func(i int) string{
		func(i int) string { return fmt.Sprintf("^[a-z]+\\.%d$", i) }, func(i int) string { return []string{"[]", "[[]]", "{}", "[{}]"}[i%4] },
		func(i int) string { return fmt.Sprintf("%010d", i*7919*7919) }, func(i int) string { return strings.Repeat("=", 3+i%30) },
		func(i int) string { return []string{"==", "!=", "<=", "->", "&&"}[i%5] }, func(i int) string { return []string{"\\", "/", "|", "~"}[i%4] },
		func(i int) string { return fmt.Sprintf("{{ .Value%d }}", i) }, func(i int) string { return fmt.Sprintf("|%d|%d|\n", i, i*i) },
		func(i int) string { return "0123456789"[i%8 : i%8+2] },
	}
	for n := 1; n <= 64; n *= 4 {
		var samples [][]byte
		for i := range n {
			var b schematest.Tags
			for k, text := range texts {
				b = b.Text(protowire.Number(20+k), text(i))
			}
			samples = append(samples, b)
		}
		in := inferAll(t, samples...)
		for _, f := range in.Fields {
			if n >= 4 && f.Kind != wire.KindString {
				t.Errorf("%d samples, field %d: clean text is %s %.2f (%s)", n, f.Number, f.Kind, f.P, f.Settle)
			}
			if f.Kind == wire.KindBytes && f.P >= doubtfulKind {
				t.Errorf("%d samples, field %d is bytes with %.4f although nothing refutes text", n, f.Number, f.P)
			}
		}
	}
}

// TestTextIsForReaders: lines are short, names are short, protoc accepts the file, and certain fields have no long
// comments.
func TestTextIsForReaders(t *testing.T) {
	t.Parallel()
	var samples [][]byte
	for i := range 60 {
		var b schematest.Tags = schematest.Tags(nil).Text(1, strings.Repeat("x", 39)).Varint(2, uint64(1+i%3)).Varint(3, uint64(i*i))
		for depth := range 9 {
			b = schematest.Tags(nil).Varint(1, uint64(i*7)).Text(2, string(b)).Text(protowire.Number(3+depth), "more of it")
		}
		samples = append(samples, b)
	}
	in := inferAll(t, samples...)
	text := must(in.Text())
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(text, "enum Field2 {\n    FIELD2_UNSPECIFIED = 0;\n    FIELD2_VALUE_1 = 1;") {
		t.Errorf("no enum\n%s", text)
	}
	for _, f := range in.Fields {
		if name := f.Message[strings.LastIndexByte(f.Message, '.')+1:]; len(name) > maxTypeName {
			t.Errorf("%s has %d characters", name, len(name))
		}
	}
	verbose, err := Infer(in.evidence, Options{Package: "p", Verbose: true})
	if err != nil {
		t.Fatal(err)
	}
	if long := must(verbose.Text()); 4*len(long) < 5*len(text) || !strings.Contains(long, "varint with probability 1.00") {
		t.Errorf("verbose\n%s\nis hardly longer than\n%s", long, text)
	}
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is not installed")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.proto"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(context.Background(), "protoc", "-I", dir, "--descriptor_set_out="+filepath.Join(dir, "p.binpb"), "p.proto").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
