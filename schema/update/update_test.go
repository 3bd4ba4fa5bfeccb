package update_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/schema"
	"unwire/schema/compare"
	"unwire/schema/update"
)

// later is a source with every file mutated.
func later(t testing.TB, r *rand.Rand, texts map[string]string) update.Source {
	t.Helper()
	s, err := schema.FromTexts(texts)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, f := range s.Files {
		set.File = append(set.File, mutate(r, protodesc.ToFileDescriptorProto(f)))
	}
	want, err := schema.FromDescriptorSet(set)
	if err != nil {
		t.Fatalf("the mutated files do not link: %v", err)
	}
	return update.Source{Name: "test", Certainty: "reported", Version: "2", Date: "2026-01-02", Schema: want, Complete: true}
}

// checkUpdate holds an update to all that it promises.
func checkUpdate(t testing.TB, texts map[string]string, src update.Source) {
	t.Helper()
	r, err := update.Run(texts, "", []update.Source{src}, update.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, dump(texts))
	}
	if c := r.Conflicts(); len(c) > 0 {
		t.Fatalf("conflict: %+v\n%s", c[0], dump(texts))
	}
	after := maps.Clone(texts)
	for _, f := range r.Files {
		after[f.Name] = f.After
		if !keeps(f.Before, f.After) {
			t.Fatalf("%s lost bytes:\n%s\n----\n%s", f.Name, f.Before, f.After)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if texts[name] != after[name] {
			sameComments(t, name, texts, after)
		}
	}
	now, err := schema.FromTexts(after)
	if err != nil {
		t.Fatalf("%v\n%s", err, dump(after))
	}
	for _, c := range compare.Diff(now, src.Schema) {
		t.Fatalf("after the update: %v\n%s\n---- was\n%s", c, dump(after), dump(texts))
	}
	again, err := update.Run(after, r.Evidence, []update.Source{src}, update.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Files) > 0 || again.Evidence != r.Evidence || len(again.Changes) > 0 {
		t.Fatalf("the second time %d files change: %+v", len(again.Files), again.Changes)
	}
	old, err := schema.FromTexts(texts)
	if err != nil {
		t.Fatal(err)
	}
	decodes(t, old, now)
	decodes(t, src.Schema, now)
}

// keeps reports whether before is what after is without some pieces, but for
// blanks between the braces of an empty block.
func keeps(before, after string) bool {
	i := 0
	for j := 0; j < len(after) && i < len(before); j++ {
		if before[i] == after[j] {
			i++
		} else if before[i] == ' ' && strings.HasPrefix(strings.TrimLeft(before[i:], " "), "}") {
			i++
			j--
		}
	}
	return i == len(before)
}

func dump(texts map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, texts[name])
		if b.Len() > 6000 {
			return b.String()[:6000]
		}
	}
	return b.String()
}

// sameComments checks that every element has the comments that it had.
func sameComments(t testing.TB, name string, before, after map[string]string) {
	t.Helper()
	was, is := comments(t, name, before), comments(t, name, after)
	for element, c := range was {
		// A comment within empty braces was nobody's; with something below it is the message's.
		if is[element] != c && is[element] != c+" nothing " {
			t.Fatalf("the comments of %s: %q, were %q\n%s\n---- was\n%s", element, is[element], c, after[name], before[name])
		}
	}
}

func comments(t testing.TB, name string, texts map[string]string) map[string]string {
	t.Helper()
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(texts)}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(context.Background(), name)
	if err != nil {
		t.Fatalf("%v\n%s", err, texts[name])
	}
	all := map[string]string{}
	var walk func(d protoreflect.Descriptor)
	walk = func(d protoreflect.Descriptor) {
		l := files[0].SourceLocations().ByDescriptor(d)
		all[string(d.FullName())] = strings.Join(append(l.LeadingDetachedComments, "L:"+l.LeadingComments, "T:"+l.TrailingComments), "|")
		switch d := d.(type) {
		case protoreflect.MessageDescriptor:
			each(d.Fields().Len(), func(i int) { walk(d.Fields().Get(i)) })
			each(d.Oneofs().Len(), func(i int) { walk(d.Oneofs().Get(i)) })
			each(d.Messages().Len(), func(i int) { walk(d.Messages().Get(i)) })
			each(d.Enums().Len(), func(i int) { walk(d.Enums().Get(i)) })
		case protoreflect.EnumDescriptor:
			each(d.Values().Len(), func(i int) { walk(d.Values().Get(i)) })
		case protoreflect.ServiceDescriptor:
			each(d.Methods().Len(), func(i int) { walk(d.Methods().Get(i)) })
		}
	}
	f := files[0]
	each(f.Messages().Len(), func(i int) { walk(f.Messages().Get(i)) })
	each(f.Enums().Len(), func(i int) { walk(f.Enums().Get(i)) })
	each(f.Services().Len(), func(i int) { walk(f.Services().Get(i)) })
	return all
}

func each(n int, do func(int)) {
	for i := range n {
		do(i)
	}
}

// decodes checks that messages of one schema have no unknown field in another.
func decodes(t testing.TB, from, to *schema.Schema) {
	t.Helper()
	r := rand.New(rand.NewSource(1))
	for md := range from.Messages() {
		if md.RequiredNumbers().Len() > 0 {
			continue
		}
		m := dynamicpb.NewMessage(md)
		fill(r, m, 2)
		data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
		if err != nil {
			continue // invalid UTF-8 is not made here: a required field is missing
		}
		target := to.Message(string(md.FullName()))
		if target == nil {
			t.Fatalf("%s is lost", md.FullName())
		}
		got := dynamicpb.NewMessage(target)
		if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(data, got); err != nil {
			t.Fatalf("%s: %v", md.FullName(), err)
		}
		if hasUnknown(got) {
			t.Fatalf("%s has unknown fields: %v", md.FullName(), got)
		}
	}
}

func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.IsMap() || fd.Message() != nil && depth == 0 {
			continue
		}
		var v protoreflect.Value
		switch {
		case fd.Message() != nil:
			if fd.IsList() {
				v = m.Mutable(fd).List().NewElement()
			} else {
				v = m.NewField(fd)
			}
			fill(r, v.Message(), depth-1)
		case fd.Kind() == protoreflect.StringKind:
			v = protoreflect.ValueOfString("x")
		case fd.Kind() == protoreflect.BytesKind:
			v = protoreflect.ValueOfBytes([]byte{1})
		case fd.Kind() == protoreflect.EnumKind:
			v = protoreflect.ValueOfEnum(fd.Enum().Values().Get(r.Intn(fd.Enum().Values().Len())).Number())
		default:
			if v = fd.Default(); fd.IsList() {
				v = m.NewField(fd).List().NewElement()
			}
		}
		if fd.IsList() {
			m.Mutable(fd).List().Append(v)
		} else {
			m.Set(fd, v)
		}
	}
}

func hasUnknown(m protoreflect.Message) bool {
	found := len(m.GetUnknown()) > 0
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			each(v.List().Len(), func(i int) { found = found || hasUnknown(v.List().Get(i).Message()) })
		default:
			found = found || hasUnknown(v.Message())
		}
		return !found
	})
	return found
}

func TestStyles(t *testing.T) {
	files := 0
	for seed := range int64(150) {
		texts := map[string]string{"test/v1/a.proto": newWriter(seed).file("test.v1")}
		if _, err := schema.FromTexts(texts); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, dump(texts))
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			checkUpdate(t, texts, later(t, rand.New(rand.NewSource(seed)), texts))
		})
		files++
	}
	if files < 100 {
		t.Fatalf("only %d files", files)
	}
}

// corpora are trees of .proto files in Go modules that the project uses.
var corpora = []struct{ module, dir string }{
	{"google.golang.org/protobuf", "internal/testprotos"},
	{"google.golang.org/grpc", "interop"},
	{"github.com/bufbuild/protocompile", "internal/testdata"},
	{"connectrpc.com/connect", "internal/proto"},
}

// TestModules updates files that others wrote, each by itself.
func TestModules(t *testing.T) {
	files := 0
	for _, c := range corpora {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", c.module).Output()
		if err != nil {
			t.Fatalf("%s: %v", c.module, err)
		}
		root := filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(c.dir))
		paths, err := filepath.Glob(filepath.Join(root, "*.proto"))
		if err != nil {
			t.Fatal(err)
		}
		for _, glob := range []string{"*/*.proto", "*/*/*.proto", "*/*/*/*.proto"} {
			more, err := filepath.Glob(filepath.Join(root, glob))
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, more...)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[string]string{"a.proto": string(text)}
			if _, err := schema.FromTexts(texts); err != nil || len(text) > 200_000 || strings.Contains(string(text), "message_set_wire_format") {
				continue // it imports others, or is meant to be broken
			}
			files++
			t.Run(strings.TrimPrefix(path, root), func(t *testing.T) {
				checkUpdate(t, texts, later(t, rand.New(rand.NewSource(int64(len(text)))), texts))
			})
		}
	}
	if files < 20 {
		t.Fatalf("only %d files of modules were updated", files)
	}
}

// TestIntoOneof: what was a field of its own is not moved by an update, which says so.
func TestIntoOneof(t *testing.T) {
	const head = "syntax = \"proto3\";\npackage x;\n"
	want, err := schema.FromTexts(map[string]string{"b.proto": head + "message M { oneof pick { string a = 1; string b = 2; } }"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := update.Run(map[string]string{"a.proto": head + "message M { string a = 1; }\n"}, "", []update.Source{{Name: "test", Schema: want}}, update.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Conflicts(); len(c) != 1 || c[0].Element != "x.M.a" || c[0].New != "oneof pick" {
		t.Errorf("conflicts: %+v", c)
	}
	if len(r.Files) != 1 || !strings.Contains(r.Files[0].After, "string b = 2;") {
		t.Errorf("files: %+v", r.Files)
	}
}

// TestListInOneof: a list is no member of a oneof; nothing is changed, and that is said.
func TestListInOneof(t *testing.T) {
	const head = "syntax = \"proto3\";\npackage x;\n"
	want, err := schema.FromTexts(map[string]string{"b.proto": head + "message M { repeated string names = 1; }"})
	if err != nil {
		t.Fatal(err)
	}
	for _, guessed := range []bool{false, true} {
		texts := map[string]string{"a.proto": head + "message M {\n  oneof pick {\n    // Seen in 1 of 4.\n    string names = 1;\n  }\n}\n"}
		r, err := update.Run(texts, "", []update.Source{{Name: "test", Schema: want, Guessed: guessed}}, update.Options{TakeTypes: true})
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Conflicts(); len(c) != 1 || len(r.Changes) != 1 || c[0].Note != "a oneof cannot contain repeated fields" || len(r.Files) != 0 {
			t.Errorf("guessed %t: %+v", guessed, r)
		}
	}
}
