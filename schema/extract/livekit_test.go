package extract

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures/need"
)

// TestLiveKit holds two versions of a package's bundles against the package's
// own reflection, and the first against its files as they are shipped.
func TestLiveKit(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "testdata/node")
	need.Protoc(t)
	modules := "testdata/node/node_modules"
	for name, least := range map[string]int{"@livekit/protocol": 1000, "livekit-2": 1500} {
		dir := t.TempDir()
		cmd := exec.Command(node, "testdata/node/livekit.mjs", name, dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		truth := map[string]string{}
		for line := range strings.Lines(string(out)) {
			fact, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			truth[fact] = text
		}
		if len(truth) < least {
			t.Fatalf("%s: only %d facts", name, len(truth))
		}
		inputs := []string{"esm.js", "iife-min.js", "cjs-min.js"}
		for i := range inputs {
			inputs[i] = filepath.Join(dir, inputs[i])
		}
		if name == "@livekit/protocol" {
			inputs = append(inputs, filepath.Join(modules, name, "src"))
		}
		for _, input := range inputs {
			t.Run(name+"/"+filepath.Base(input), func(t *testing.T) {
				set := extracted(t, input)
				if n := compare(t, truth, facts(set.Files), nil); n != len(truth) {
					t.Errorf("%d of %d facts", n, len(truth))
				}
				wantCompiles(t, set)
			})
		}
	}
}
