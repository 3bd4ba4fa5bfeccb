package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
		commands := strings.ReplaceAll(string(b[1]), "127.0.0.1:9443", freeAddress(t))
		script := "set -eu\ntrap 'kill $!' EXIT\n" + commands
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "UNWIRE_CONFIG="+filepath.Join(work, "config"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, commands, out)
		}
	}
}

// freeAddress is a loopback address on which nothing listens: the port that
// the document names may be taken where the test runs.
func freeAddress(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
