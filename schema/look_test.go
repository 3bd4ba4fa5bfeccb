package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	reconstructed "unwire/proto"
)

func setOf(s *Schema) *descriptorpb.FileDescriptorSet {
	set := &descriptorpb.FileDescriptorSet{}
	for _, f := range s.Files() {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	return set
}

func builtIn(t testing.TB) *Schema {
	t.Helper()
	s, err := LoadFS(t.Context(), reconstructed.Files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPrintedIsTheSame: what Text prints of files, from the source and from
// descriptors, compiles to the same definitions.
func TestPrintedIsTheSame(t *testing.T) {
	s := builtIn(t)
	linked, err := FromDescriptorSet(setOf(s))
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(s, linked); len(d) != 0 {
		t.Errorf("as descriptors: %v", d)
	}
	for _, from := range []*Schema{s, linked} {
		dir := t.TempDir()
		for _, f := range from.Files() {
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
		again, err := LoadSource(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := Diff(s, again); len(d) != 0 {
			t.Errorf("printed and compiled: %v", d)
		}
	}
}

// TestTextOfEveryType: each type's text stands in its file, line by line.
func TestTextOfEveryType(t *testing.T) {
	s := builtIn(t)
	n := 0
	for m := range s.Messages() {
		text, err := s.Text(m)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, "message "+string(m.Name())) || !strings.HasSuffix(text, "}\n") {
			t.Errorf("%s: %q", m.FullName(), text)
		}
		file := s.sources[m.ParentFile().Path()]
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
	s, err := LoadSource(t.Context(), one) // two folders below its import root
	if err != nil {
		t.Fatal(err)
	}
	if s.Message("a.c.U") == nil || len(s.Files()) != 1 {
		t.Errorf("one file: %v", s.Files())
	}
	all, err := LoadSource(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := proto.Marshal(setOf(all)) // without any.proto, which it imports
	if err != nil {
		t.Fatal(err)
	}
	file := write("set.binpb", string(set))
	linked, err := LoadSource(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(all, linked); len(d) != 0 {
		t.Errorf("a set of the folder differs: %v", d)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "nothing"): "no such file", write("x.bin", "\x00\x01what"): "neither", write("empty.bin", ""): "neither",
		write("lost.proto", "syntax = \"proto3\"; import \"not/there.proto\";"): "not/there.proto",
	} {
		if _, err := LoadSource(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	s := schemaOf(t, `
		// Carries a growing answer.
		message TextDeltaUpdate { string text = 1; }
		message ThinkingDeltaUpdate { string text = 1; ThinkingStyle thinking_style = 2; }
		enum ThinkingStyle { THINKING_STYLE_NONE = 0; THINKING_STYLE_LOUD = 1; }
		message Delta {}
		service Chat { rpc StreamText(Delta) returns (stream TextDeltaUpdate); }`)
	for query, want := range map[string]string{
		"delta": "p.Delta", "text delta": "p.TextDeltaUpdate", "TextDeltaUpdate": "p.TextDeltaUpdate", "p.TextDeltaUpdate": "p.TextDeltaUpdate",
		"think style": "p.ThinkingStyle", "loud": "p.ThinkingStyle.THINKING_STYLE_LOUD", "growing": "p.TextDeltaUpdate", "strem": "p.Chat.StreamText",
		"updaet thinking": "p.ThinkingDeltaUpdate", "zebra": "",
	} {
		got := ""
		if hits := s.Find(query, 1); len(hits) > 0 {
			got = hits[0].Element
		}
		if got != want {
			t.Errorf("%q finds %q, want %q: %v", query, got, want, s.Find(query, 5))
		}
	}
}

// large makes n messages of eight fields.
func large(t testing.TB, n int) *Schema {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	h := newHistory(9)
	var types []string
	for i := range n / 100 {
		f := &descriptorpb.FileDescriptorProto{Name: proto.String(fmt.Sprintf("f%d.proto", i)), Package: proto.String(fmt.Sprintf("pkg%d", i)), Syntax: proto.String("proto3")}
		for j := range i {
			f.Dependency = append(f.Dependency, fmt.Sprintf("f%d.proto", j))
		}
		e := &descriptorpb.EnumDescriptorProto{Name: proto.String(h.typeName())}
		for v := range 6 {
			e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(strings.ToUpper(h.word())), Number: proto.Int32(int32(v))})
		}
		f.EnumType = append(f.EnumType, e)
		for range 100 {
			m := h.message(types, []string{"." + f.GetPackage() + "." + e.GetName()})
			f.MessageType = append(f.MessageType, m)
			types = append(types, "."+f.GetPackage()+"."+m.GetName())
		}
		set.File = append(set.File, f)
	}
	s, err := FromDescriptorSet(set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLargeSchema: 3,000 messages of which a third lost their names are paired,
// searched and listed at once.
func TestLargeSchema(t *testing.T) {
	s := large(t, 3000)
	set := setOf(s)
	n := 0
	for _, f := range set.File {
		for i, m := range f.MessageType {
			if i%3 == 0 && len(m.Field) > 3 {
				m.Name = proto.String("Renamed" + m.GetName())
				n++
			}
		}
	}
	renamed := map[string]string{}
	for i, f := range s.Files() {
		for j := range f.Messages().Len() {
			for _, g := range set.File {
				if g.GetName() == f.Path() {
					renamed["."+name(f.Messages().Get(j))] = "." + g.GetPackage() + "." + g.MessageType[j].GetName()
				}
			}
		}
		_ = i
	}
	for _, f := range set.File {
		for _, m := range f.MessageType {
			for _, fd := range m.Field {
				if now, ok := renamed[fd.GetTypeName()]; ok {
					fd.TypeName = proto.String(now)
				}
			}
		}
	}
	now, err := FromDescriptorSet(set)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	changes := Diff(s, now)
	took := time.Since(start)
	t.Logf("%d of 3000 messages renamed: %d changes in %v", n, len(changes), took)
	if len(changes) != n {
		t.Errorf("%d changes for %d renames: %v …", len(changes), n, changes[:min(3, len(changes))])
	}
	if took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func BenchmarkFind(b *testing.B) {
	s := large(b, 3000)
	for b.Loop() {
		s.Find("order price", 20)
	}
}

func BenchmarkRefs(b *testing.B) {
	s := large(b, 3000)
	for b.Loop() {
		s.RefsOfNumber(7)
	}
}

func BenchmarkDiff(b *testing.B) {
	s, other := large(b, 3000), large(b, 3000)
	for b.Loop() {
		if n := len(Diff(s, other)); n != 0 {
			b.Fatalf("%d changes", n)
		}
	}
}

func BenchmarkLoadBuiltIn(b *testing.B) {
	for b.Loop() {
		builtIn(b)
	}
}

func FuzzDescriptorSet(f *testing.F) {
	h := newHistory(1)
	for _, set := range []*descriptorpb.FileDescriptorSet{h.old, {}} {
		data, err := proto.Marshal(set)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	known, err := FromDescriptorSet(h.old)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseDescriptorSet(data)
		if err != nil {
			return
		}
		if d := Diff(s, s); len(d) != 0 {
			t.Fatalf("differs from itself: %v", d)
		}
		Diff(s, known)
		Diff(known, s)
		s.Find("order", 3)
		for _, l := range s.Contents() {
			s.Refs(l.Element)
			if d := s.Descriptor(l.Element); d != nil {
				s.Needs(d)
			}
		}
	})
}
