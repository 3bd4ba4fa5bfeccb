package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var fence = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestReadme runs the commands that README.md shows.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fence.FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("README.md shows no commands")
	}
	bin := buildUnwire(t)
	for _, b := range blocks {
		work := t.TempDir()
		script := "set -eu\ntrap 'kill $!' EXIT\n" + string(b[1])
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "UNWIRE_CONFIG="+filepath.Join(work, "config"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, b[1], out)
		}
	}
}
