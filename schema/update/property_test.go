package update_test

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"unwire/schema"
	"unwire/schema/update"
)

// TestUpdateProperty looks for a style and an update that do not go together.
func TestUpdateProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := map[string]string{"a.proto": newWriter(rapid.Int64().Draw(rt, "style")).file("test.v1")}
		checkUpdate(t, texts, later(t, rand.New(rand.NewSource(rapid.Int64().Draw(rt, "change"))), texts))
	})
}

// TestTree updates a tree of files that import each other: imports are added
// where a new field needs them.
func TestTree(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/bufbuild/protocompile").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "internal", "testdata")
	texts := map[string]string{}
	for _, name := range []string{"desc_test1.proto", "desc_test2.proto", "pkg/desc_test_pkg.proto", "nopkg/desc_test_nopkg.proto", "nopkg/desc_test_nopkg_new.proto"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for seed := range int64(20) {
		checkUpdate(t, texts, later(t, rand.New(rand.NewSource(seed)), texts))
	}
}

// TestImports adds fields whose types stand in files that are not imported yet.
func TestImports(t *testing.T) {
	texts := map[string]string{
		"a.proto":   "syntax = \"proto3\";\n// The package.\npackage a; // here\n\nmessage A {}\n",
		"b.proto":   "syntax = \"proto3\";\npackage b;\nimport \"c.proto\";\nimport \"e.proto\";\nmessage B { C c = 1; message C {} .b.B.C d = 2; c.C f = 3; e.E g = 4; }\n",
		"c.proto":   "syntax = \"proto3\";\npackage c;\nmessage C {}\n",
		"d/d.proto": "syntax = \"proto3\";\npackage d;\nmessage D {}\n",
		"e.proto":   "syntax = \"proto3\";\npackage e;\nmessage E {}\n",
	}
	later := map[string]string{}
	for name, text := range texts {
		later[name] = text
	}
	later["a.proto"] = "syntax = \"proto3\";\npackage a;\nimport \"b.proto\"; import \"google/protobuf/any.proto\";\nmessage A { b.B.C c = 1; google.protobuf.Any any = 2; }\n"
	later["b.proto"] = strings.Replace(texts["b.proto"], "import \"e.proto\";", "import \"e.proto\"; import \"d/d.proto\";", 1)
	later["b.proto"] = strings.Replace(later["b.proto"], "e.E g = 4;", "e.E g = 4; d.D h = 5;", 1)
	want, err := schema.FromTexts(later)
	if err != nil {
		t.Fatal(err)
	}
	src := update.Source{Name: "test", Certainty: "reported", Schema: want}
	checkUpdate(t, texts, src)
	r, err := update.Run(texts, "", []update.Source{src}, update.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Files[0].After; !strings.Contains(got, "package a; // here\n\nimport \"b.proto\";\nimport \"google/protobuf/any.proto\";\n\nmessage A {\n  b.B.C c = 1;\n  google.protobuf.Any any = 2;\n}\n") {
		t.Errorf("imports of a.proto:\n%s", got)
	}
	if got := r.Files[1].After; !strings.Contains(got, "import \"c.proto\";\nimport \"d/d.proto\";\nimport \"e.proto\";\n") {
		t.Errorf("imports of b.proto:\n%s", got)
	}
}

// TestNewPackage: a new package hides the one that is called like its last part.
func TestNewPackage(t *testing.T) {
	texts := map[string]string{"a.proto": "syntax = \"proto3\";\npackage x.v1;\nmessage A {}\n"}
	want, err := schema.FromTexts(map[string]string{
		"a.proto": texts["a.proto"],
		"b.proto": "syntax = \"proto3\";\npackage x.more.v1;\nimport \"a.proto\";\nmessage B { x.v1.A a = 1; B b = 2; }\nservice S { rpc Get(B) returns (.x.v1.A); }\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	checkUpdate(t, texts, update.Source{Name: "test", Certainty: "reported", Schema: want})
}

// TestNewFile: a file that the source has beside those of the same paths is new
// here, too, and one of another layout is none.
func TestNewFile(t *testing.T) {
	texts := map[string]string{"x/a.proto": "syntax = \"proto3\";\npackage x;\nmessage A {}\n", "x/z.proto": "syntax = \"proto3\";\npackage x;\nmessage Z {}\n"}
	added := "syntax = \"proto3\";\npackage x;\nimport \"x/z.proto\";\nmessage B { Z z = 1; }\n"
	for name, files := range map[string]map[string]string{
		"x/b.proto": {"x/a.proto": texts["x/a.proto"], "x/z.proto": texts["x/z.proto"], "x/b.proto": added},
		"x/a.proto": {"all.proto": "syntax = \"proto3\";\npackage x;\nmessage A {} message Z {} message B { Z z = 1; }\n"},
	} {
		want, err := schema.FromTexts(files)
		if err != nil {
			t.Fatal(err)
		}
		src := update.Source{Name: "test", Certainty: "reported", Schema: want}
		checkUpdate(t, texts, src)
		r, err := update.Run(texts, "", []update.Source{src}, update.Options{})
		if err != nil || len(r.Files) != 1 || r.Files[0].Name != name {
			t.Errorf("want a change of %s: %+v, %v", name, r, err)
		}
	}
}

// TestCycle: a field that would need files to import each other is a conflict.
func TestCycle(t *testing.T) {
	texts := map[string]string{
		"a.proto": "syntax = \"proto3\";\npackage x;\nmessage A {}\n",
		"b.proto": "syntax = \"proto3\";\npackage x;\nimport \"a.proto\";\nmessage B { A a = 1; }\n",
	}
	want, err := schema.FromTexts(map[string]string{"all.proto": "syntax = \"proto3\";\npackage x;\nmessage A { B b = 1; int32 ok = 2; }\nmessage B { A a = 1; }\n"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := update.Run(texts, "", []update.Source{{Name: "test", Schema: want}}, update.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Conflicts(); len(c) != 1 || c[0].Element != "x.A.b" || !strings.Contains(c[0].Note, "which imports this file") {
		t.Errorf("conflicts: %+v", c)
	}
	if len(r.Files) != 1 || !strings.Contains(r.Files[0].After, "int32 ok = 2;") {
		t.Errorf("files: %+v", r.Files)
	}
}

// FuzzUpdate: whatever compiles is updated, or a conflict says why not.
func FuzzUpdate(f *testing.F) {
	for seed := range int64(8) {
		f.Add(newWriter(seed).file("test.v1"), newWriter(seed+100).file("test.v1"), seed%2 == 0)
	}
	f.Add("message A{}", "message A{optional A a=1;}", true)
	f.Fuzz(func(t *testing.T, before, after string, guessed bool) {
		texts := map[string]string{"a.proto": before}
		if _, err := schema.FromTexts(texts); err != nil {
			return
		}
		want, err := schema.FromTexts(map[string]string{"a.proto": after})
		if err != nil {
			return
		}
		src := []update.Source{{Name: "test", Certainty: "reported", Schema: want, Guessed: guessed, Complete: !guessed}}
		r, err := update.Run(texts, "", src, update.Options{})
		if err != nil {
			return // refused whole: nothing is written
		}
		for _, file := range r.Files {
			texts[file.Name] = file.After
		}
		if _, err := schema.FromTexts(texts); err != nil {
			t.Fatalf("%v\n%s", err, texts["a.proto"])
		}
	})
}

func FuzzParseFindings(f *testing.F) {
	f.Add([]byte(`{"v":1,"runtime":"x","request_type":"a.B","fields":[{"path":"","number":1,"class":"message"},{"path":"1","number":2,"class":"varint","label":"repeated"}]}`))
	f.Add([]byte(`{"v":1,"fields":[{"message":"a.B","number":1,"kind":"string","type":"string","label":"singular"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		src, err := update.ParseFindings(t.Context(), data, nil)
		if err == nil && src.Schema == nil {
			t.Fatal("no definitions")
		}
	})
}

// BenchmarkRun updates a tree of 3,000 messages by a version in which each has
// a field more.
func BenchmarkRun(b *testing.B) {
	texts, later := map[string]string{}, map[string]string{}
	size := 0
	for i := range 30 {
		var old, now strings.Builder
		for _, s := range []*strings.Builder{&old, &now} {
			fmt.Fprintf(s, "syntax = \"proto3\";\n\npackage big.p%d;\n", i)
		}
		for j := range 100 {
			fields := ""
			for k := range 10 {
				fields += fmt.Sprintf("  // What it says.\n  string name_of_field_%d = %d;  // seed: reported\n", k, k+1)
			}
			fmt.Fprintf(&old, "\n// A message.\nmessage Message%d {\n%s}\n", j, fields)
			fmt.Fprintf(&now, "\nmessage Message%d {\n%s  Message%d added = 11;\n}\n", j, fields, (j+1)%100)
		}
		name := fmt.Sprintf("big/p%d.proto", i)
		texts[name], later[name] = old.String(), now.String()
		size += old.Len()
	}
	want, err := schema.FromTexts(later)
	if err != nil {
		b.Fatal(err)
	}
	src := []update.Source{{Name: "bench", Certainty: "reported", Schema: want, Complete: true}}
	b.SetBytes(int64(size))
	for b.Loop() {
		r, err := update.Run(texts, "", src, update.Options{})
		if err != nil || len(r.Changes) != 3000 {
			b.Fatal(len(r.Changes), err)
		}
	}
}
