package schema

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestLoadVersionOfFilesThatDeclareTheSame: the first counts, and what imports
// the other is left out with it.
func TestLoadVersionOfFilesThatDeclareTheSame(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.proto":      "syntax = \"proto3\"; package p; message A { string s = 1; }",
		"b.proto":      "syntax = \"proto3\"; package p; message A { string s = 1; int32 n = 2; }",
		"c.proto":      "syntax = \"proto3\"; package p; import \"b.proto\"; message C { A a = 1; }",
		"d.proto":      "syntax = \"proto3\"; package p; import \"c.proto\"; message D { C c = 1; }",
		"e/free.proto": "syntax = \"proto3\"; package q; message A { string s = 1; }",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadSource(t.Context(), dir); err == nil {
		t.Error("LoadSource takes them")
	}
	s, err := LoadVersion(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []OmittedFile{{"b.proto", "p.A", "a.proto"}, {"c.proto", "", "b.proto"}, {"d.proto", "", "c.proto"}}
	if got := s.Omitted; !reflect.DeepEqual(got, want) {
		t.Errorf("left out: %v, want %v", got, want)
	}
	if md := s.Message("p.A"); md == nil || md.Fields().Len() != 1 || s.Message("q.A") == nil || s.Message("p.C") != nil {
		t.Error("not the first of each is there")
	}
	// What is wrong in another way is told as it is.
	if err := os.WriteFile(filepath.Join(dir, "e/free.proto"), []byte("message {"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadVersion(t.Context(), dir, nil); err == nil {
		t.Error("a broken file is no error")
	}
}
