package extract

import (
	"os/exec"
	"path/filepath"
	"testing"

	"unwire/captures/need"
)

// TestTreeShaking bundles code that uses only a nested message. Esbuild drops its parent
// from the code of protobuf-es 1; the message stays nested, and merges with the parent
// where another source has it.
func TestTreeShaking(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "testdata/node")
	need.Program(t, "npm", "npm")
	need.Protoc(t)
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), node, "testdata/node/shaken.mjs", dir).CombinedOutput(); err != nil {
		t.Fatalf("shaken.mjs: %v\n%s", err, out)
	}
	whole := protocSet(t, "testdata/proto/shaken", "shaken.proto")
	truth := facts(whole.File)
	const line = "shop.orders.v1.Order.Line"
	for _, c := range []struct {
		codegen string
		dropped bool // the parent is not in the bundle
	}{{"es1", true}, {"es1ts", false}, {"es2", false}, {"pbjs", false}} {
		t.Run(c.codegen, func(t *testing.T) {
			set := extracted(t, filepath.Join(dir, c.codegen+".js"))
			got := facts(set.Files)
			for fact, want := range truth {
				if kindOf(fact) == "field" && len(fact) > len("field "+line) && fact[6:6+len(line)] == line && got[fact] != want {
					t.Errorf("%s: %q, want %q", fact, got[fact], want)
				}
			}
			if _, ok := got["field shop.orders.v1.Order.id"]; ok == c.dropped {
				t.Errorf("the parent has its fields: %v", ok)
			}
			for _, f := range set.Files {
				if f.GetPackage() != "shop.orders.v1" {
					t.Errorf("a package %s", f.GetPackage())
				}
			}
			wantCompiles(t, set)
		})
	}

	// With the definitions of another source nothing of the parent without fields is left.
	first := source(t)
	first.Files = whole.File
	c := newCollector("es1.js", formats())
	if err := c.addPath(t.Context(), filepath.Join(dir, "es1.js")); err != nil {
		t.Fatal(err)
	}
	both, err := Merge(t.Context(), first, found(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if got := facts(both.Files); len(got) != len(truth) || got["field shop.orders.v1.Order.id"] == "" {
		t.Errorf("merged: %d facts, want %d", len(got), len(truth))
	}
}
