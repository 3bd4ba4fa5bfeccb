package query

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures/store"
	"unwire/decode/diff"
	"unwire/schema"
)

// diffOptions open captures and read files as they are.
func diffOptions() DiffOptions {
	return DiffOptions{
		Open: func(path string) (*Capture, error) { return Open(path, store.ReadOptions{}) },
		Read: os.ReadFile,
	}
}

func writeFile(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func fieldOne(s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s)
}

// TestDiff: frames, files, exchanges and captures of the same content differ nowhere,
// and of other content at the same path.
func TestDiff(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.uwc"), filepath.Join(dir, "b.uwc")
	record(t, a, "The first of the texts", "The second of the texts")
	record(t, b, "The first of the texts", "The other of the texts")
	second := writeFile(t, fieldOne("The second of the texts"))
	for _, c := range []struct {
		left, right string
		paths       string // of the differences
	}{
		{a, a, ""},
		{a, b, "a.B/C[1] @up/0 1"},
		{a + "#1", b + "#1", ""},
		{a + "#2", b + "#2", "@up/0 1"},
		{a + "#2/up/0", b + "#2/up/0", "1"},
		{a + "#2/up/0", second, ""},
		{second, b + "#2/up/0", "1"},
		{second, second, ""},
	} {
		list, err := Diff(t.Context(), c.left, c.right, diffOptions())
		if err != nil {
			t.Errorf("%s %s: %v", c.left, c.right, err)
			continue
		}
		var paths []string
		for _, pair := range list {
			for _, ch := range pair.Changes {
				paths = append(paths, strings.TrimSpace(pair.Call+" "+ch.Path))
			}
		}
		if got := strings.Join(paths, ","); got != c.paths {
			t.Errorf("%s %s: differences at %q, want %q", c.left, c.right, got, c.paths)
		}
		if found, ignored := CountChanges(list); found+ignored != len(paths) {
			t.Errorf("%s %s: %d and %d ignored, want %d", c.left, c.right, found, ignored, len(paths))
		}
	}
}

// TestDiffErrors: what cannot be compared is told by its problem.
func TestDiffErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "The first of the texts")
	file := writeFile(t, fieldOne("The first of the texts"))
	unknown := diffOptions()
	unknown.Type = "no.such.Message"
	for _, c := range []struct {
		left, right string
		o           DiffOptions
		want        DiffProblem
	}{
		{path, file, diffOptions(), Unlike},
		{path + "#1", file, diffOptions(), Unlike},
		{path + "#1", path + "#1/up/0", diffOptions(), Unlike},
		{path + "#1/up/7", file, diffOptions(), NoFrame},
		{file, file, unknown, UnknownType},
	} {
		_, err := Diff(t.Context(), c.left, c.right, c.o)
		if e, ok := errors.AsType[*DiffError](err); !ok || e.Problem != c.want {
			t.Errorf("%s %s: %v, want problem %d", c.left, c.right, err, c.want)
		}
	}
}

// TestDescribe: the path of a change is named by the type that was given.
func TestDescribe(t *testing.T) {
	defs, err := schema.Load(t.Context(), fstest.MapFS{"a.proto": {Data: []byte(`syntax = "proto3";
package a;
message Order { repeated Item items = 1; }
message Item { string title = 1; }`)}})
	if err != nil {
		t.Fatal(err)
	}
	item := func(title string) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), fieldOne(title))
	}
	o := diffOptions()
	o.Definitions, o.Type = defs, "a.Order"
	list, err := Diff(t.Context(), writeFile(t, item("A book")), writeFile(t, item("A pen")), o)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d comparisons, %v", len(list), err)
	}
	for path, want := range map[string]string{
		"1": "items", "1[2].1": "items[2].title",
		"": "", "1.2": "", "2": "", "1.1.1": "", "status": "", "@up/0 2": "",
	} {
		_, fd, name := list[0].Describe(diff.Change{Path: path})
		if name != want || (fd == nil) != (want == "") {
			t.Errorf("%q is %v, %q; want %q", path, fd, name, want)
		}
	}
	for path, want := range map[string]protoreflect.FullName{"@up/0": "a.Order", "": "a.Order", "1[2]": "a.Item", "1.1": "", "9": ""} {
		var got protoreflect.FullName
		if md := list[0].Message(&diff.Change{Path: path}); md != nil {
			got = md.FullName()
		}
		if got != want {
			t.Errorf("%q is of the type %q, want %q", path, got, want)
		}
	}
}
