package extract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/need"
)

// TestCodegens generates code of the definitions in testdata/proto with every
// codegen, bundles it in several forms, and wants back what protoc says.
func TestCodegens(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("UNWIRE_BUNDLES")
	if dir == "" {
		dir = builtBundles(t)
	}
	truth := facts(protocSet(t, "testdata/proto", "acme/base/v1/base.proto", "acme/kitchen/v1/kitchen.proto", "acme/legacy/legacy.proto").File)
	for _, codegen := range []string{"es1", "es1ts", "es2", "pbts", "pbjsjson", "pbjs", "tsproto", "tsgeneric"} {
		bundles, err := filepath.Glob(filepath.Join(dir, codegen, "*.js"))
		if err != nil || len(bundles) == 0 {
			t.Errorf("%s: no bundles", codegen)
		}
		for _, file := range bundles {
			t.Run(codegen+"/"+strings.TrimSuffix(filepath.Base(file), ".js"), func(t *testing.T) {
				set := extracted(t, file)
				same := compare(t, truth, facts(set.Files), losses[codegen])
				t.Logf("%d of %d facts", same, len(truth))
				wantCompiles(t, set)
			})
		}
	}
}

// losses are what a codegen's output does not tell.
var losses = map[string]func(fact, want, got string) bool{
	// A default is a number of JavaScript, or null.
	"pbjsjson": func(fact, want, got string) bool {
		return slices.Contains([]string{"field acme.legacy.Old.big", "field acme.legacy.Old.inf", "field acme.legacy.Old.ubig"}, fact)
	},
	// No JSON names, no idempotency; a default is a number of JavaScript.
	"pbjs": func(fact, want, got string) bool {
		if kindOf(fact) == "method" {
			return strings.HasPrefix(want, strings.TrimSuffix(got, "IDEMPOTENCY_UNKNOWN"))
		}
		return fact == "field acme.legacy.Old.big" || fact == "field acme.kitchen.v1.Outer.renamed"
	},
	"tsproto": lossesOfTSProto,
	"tsgeneric": func(fact, want, got string) bool { // with oneofs as unions
		oneof := regexp.MustCompile(` oneof=[a-z]\w*`)
		return lossesOfTSProto(fact, want, got) && oneof.FindString(want) == oneof.FindString(got)
	},
	// No syntax, no defaults, no groups, no extensions, no order.
	"pbts": func(fact, want, got string) bool {
		return strings.Contains(fact, "acme.legacy.") || fact == "field acme.kitchen.v1.Optionals.scalars"
	},
}

// lossesOfTSProto: its output tells neither syntax nor oneofs, JSON names,
// defaults, extensions, groups, or options.
func lossesOfTSProto(fact, want, got string) bool {
	switch kindOf(fact) {
	case "method":
		return strings.HasPrefix(want, strings.TrimSuffix(got, "IDEMPOTENCY_UNKNOWN"))
	case "extension", "service": // of services those without methods
		return got == "nothing"
	case "message":
		return want == "syntax=" && got == "syntax=proto3"
	}
	if fact == "value acme.legacy.Mode.MODE_C" { // as -1 is UNRECOGNIZED too, Terser joins the two
		return true
	}
	if strings.Contains(fact, ".snake_case") {
		return strings.HasSuffix(fact, ".snake_case_1_name") || strings.HasSuffix(fact, ".snake_case1_name")
	}
	less := func(s string) string {
		s = strings.NewReplacer("LABEL_REQUIRED", "LABEL_OPTIONAL", "TYPE_GROUP", "TYPE_MESSAGE", " optional", "", " packed=false", "").Replace(withoutDefault(s))
		s, _, _ = strings.Cut(s, " oneof=")
		s, _, _ = strings.Cut(s, " json=")
		return s
	}
	return less(want) == less(got)
}

func withoutDefault(fact string) string {
	fact, _, _ = strings.Cut(fact, " default=")
	return fact
}

// builtBundles returns a folder with the bundles. They are kept in the user's
// cache by what they are made of, as bundlers take longer than all tests.
func builtBundles(t *testing.T) string {
	t.Helper()
	node := need.Node(t, "testdata/node")
	need.Program(t, "npm", "npm")
	need.Protoc(t)
	sum := sha256.New()
	inputs := []string{"testdata/node/build.mjs", "testdata/node/package-lock.json"}
	for _, pattern := range []string{"testdata/proto/acme/*.proto", "testdata/proto/acme/*/*.proto", "testdata/proto/acme/*/*/*.proto"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, more...)
	}
	for _, name := range inputs {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
	}
	made := t.TempDir()
	kept := ""
	if cache, err := os.UserCacheDir(); err == nil {
		kept = filepath.Join(cache, "unwire-test-bundles", hex.EncodeToString(sum.Sum(nil)[:8]))
		if _, err := os.Stat(kept); err == nil {
			return kept
		}
		if err := os.MkdirAll(filepath.Dir(kept), 0o777); err == nil {
			if beside, err := os.MkdirTemp(filepath.Dir(kept), "making"); err == nil {
				t.Cleanup(func() { os.RemoveAll(beside) })
				made = beside
			}
		}
	}
	if out, err := exec.Command(node, "testdata/node/build.mjs", made).CombinedOutput(); err != nil {
		t.Fatalf("build.mjs: %v\n%s", err, out)
	}
	if strings.HasPrefix(made, filepath.Dir(kept)) && kept != "" {
		if err := os.Rename(made, kept); err == nil || isDir(kept) { // or another test was faster
			return kept
		}
	}
	return made
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func protocSet(t *testing.T, dir string, files ...string) *descriptorpb.FileDescriptorSet {
	t.Helper()
	protoc := need.Program(t, "protoc", "protobuf-compiler")
	out := filepath.Join(t.TempDir(), "set.binpb")
	args := append([]string{"-I" + dir, "--include_imports", "-o", out}, files...)
	if msg, err := exec.Command(protoc, args...).CombinedOutput(); err != nil {
		need.Protoc(t) // it may lack protobuf's own files, which some of these import
		t.Fatalf("protoc: %v\n%s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		t.Fatal(err)
	}
	return set
}

func extracted(t *testing.T, paths ...string) *Set {
	t.Helper()
	c := newCollector(paths[0], formats())
	for _, p := range paths {
		if err := c.addPath(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	src := found(t, c)
	for _, u := range src.Unresolved {
		t.Logf("%s: %s: %s", u.Place, u.Element, u.Reason)
	}
	set, err := Merge(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range set.Unresolved {
		t.Logf("merge: %s: %s", u.Element, u.Reason)
	}
	return set
}

// wantCompiles compiles the set's text with protoc and wants the set back.
func wantCompiles(t *testing.T, set *Set) {
	t.Helper()
	text := set.Print()
	dir := t.TempDir()
	var names []string
	for name, body := range text {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o666); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	compiled := protocSet(t, dir, names...)
	by := map[string]*descriptorpb.FileDescriptorProto{}
	for _, f := range compiled.File {
		by[f.GetName()] = f
	}
	for _, want := range set.Files {
		got := by[want.GetName()]
		if got == nil {
			t.Fatalf("protoc did not compile %s", want.GetName())
		}
		want = proto.Clone(want).(*descriptorpb.FileDescriptorProto)
		if want.GetSyntax() == "proto2" {
			want.Syntax = nil // as protoc leaves it out
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: the text's descriptor is not the one that was extracted", want.GetName())
		}
	}
}
