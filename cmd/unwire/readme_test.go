package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"unwire/captures/need"
)

var fence = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestReadme runs the commands that README.md shows.
func TestReadme(t *testing.T) {
	need.Program(t, "curl", "curl")
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fence.FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("README.md shows no commands")
	}
	bin := filepath.Join(t.TempDir(), "unwire") // built as a user does
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, b := range blocks {
		work := t.TempDir()
		standin, server := freeAddress(t), freeAddress(t)
		commands := strings.NewReplacer("127.0.0.1:9443", standin, "127.0.0.1:8787", server).Replace(string(b[1]))
		if strings.Count(commands, "sleep 1\n") != 1 {
			t.Errorf("not one sleep in\n%s", commands)
		}
		// A second may be too short.
		ready := "[ -s ca.pem ]"
		if strings.Contains(commands, server) {
			ready = "curl -so /dev/null http://" + server + "/healthz"
		}
		commands = strings.Replace(commands, "sleep 1\n", "until "+ready+"; do kill -0 $!; sleep 0.1; done\n", 1)
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
// the document names may be taken where the test runs. It is none of those that
// systems give to whoever asks for any, as another test soon would have it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}
