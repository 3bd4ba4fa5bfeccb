package schema_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	reconstructed "unwire/proto"
	"unwire/schema"
	"unwire/schema/compare"
	"unwire/schema/internal/schematest"
)

// TestPrintedIsTheSame: what Text prints of files, from the source and from
// descriptors, compiles to the same definitions.
func TestPrintedIsTheSame(t *testing.T) {
	s := schematest.BuiltIn(t)
	linked, err := schema.FromDescriptorSet(schematest.SetOf(s))
	if err != nil {
		t.Fatal(err)
	}
	if d := compare.Diff(s, linked); len(d) != 0 {
		t.Errorf("as descriptors: %v", d)
	}
	for _, from := range []*schema.Schema{s, linked} {
		dir := t.TempDir()
		for _, f := range from.Files {
			text, err := from.Text(f)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, filepath.FromSlash(f.Path()))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, err := schema.LoadSource(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := compare.Diff(s, again); len(d) != 0 {
			t.Errorf("printed and compiled: %v", d)
		}
	}
}

// TestTextOfEveryType: each type's text stands in its file, line by line.
func TestTextOfEveryType(t *testing.T) {
	s := schematest.BuiltIn(t)
	n := 0
	for m := range s.Messages() {
		text, err := s.Text(m)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, "message "+string(m.Name())) || !strings.HasSuffix(text, "}\n") {
			t.Errorf("%s: %q", m.FullName(), text)
		}
		data, err := fs.ReadFile(reconstructed.Files, m.ParentFile().Path())
		if err != nil {
			t.Fatal(err)
		}
		file := string(data)
		for line := range strings.Lines(text) {
			if !strings.Contains(file, strings.TrimSpace(line)) {
				t.Errorf("%s: %q is not in its file", m.FullName(), line)
			}
		}
		n++
	}
	if n < 500 {
		t.Errorf("only %d messages", n)
	}
}

func TestLoadSource(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("a/b/types.proto", "syntax = \"proto3\"; package a.b; message T { google.protobuf.Any any = 1; } import \"google/protobuf/any.proto\";")
	one := write("a/c/use.proto", "syntax = \"proto3\"; package a.c; import \"a/b/types.proto\"; message U { a.b.T t = 1; }")
	s, err := schema.LoadSource(t.Context(), one) // two folders below its import root
	if err != nil {
		t.Fatal(err)
	}
	if s.Message("a.c.U") == nil || len(s.Files) != 1 {
		t.Errorf("one file: %v", s.Files)
	}
	all, err := schema.LoadSource(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := proto.Marshal(schematest.SetOf(all)) // without any.proto, which it imports
	if err != nil {
		t.Fatal(err)
	}
	file := write("set.binpb", string(set))
	linked, err := schema.LoadSource(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if d := compare.Diff(all, linked); len(d) != 0 {
		t.Errorf("a set of the folder differs: %v", d)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "nothing"): "no such file", write("x.bin", "\x00\x01what"): "neither", write("empty.bin", ""): "neither",
		write("lost.proto", "syntax = \"proto3\"; import \"not/there.proto\";"): "not/there.proto",
	} {
		if _, err := schema.LoadSource(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func BenchmarkLoadBuiltIn(b *testing.B) {
	for b.Loop() {
		schematest.BuiltIn(b)
	}
}
