package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notInLibraries are the packages that decoding, inference and checks must not
// link: those of the capture file, the proxy and the command line.
var notInLibraries = []string{
	"modernc.org/sqlite", "database/sql",
	"github.com/elazarl/goproxy", "github.com/google/nftables", "github.com/vishvananda/netlink", "github.com/google/gopacket",
	"github.com/spf13/cobra", "github.com/olekukonko/tablewriter", "github.com/zalando/go-keyring",
	module + "captures/store", module + "captures/pcap", module + "mitm", module + "replay", module + "proto", module + "cmd",
}

// TestLibraries builds and runs a program of another module that uses the libraries,
// and looks for packages that it must not link.
func TestLibraries(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeLibraryModule(t, dir, root)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, errs.String())
		}
		return string(out)
	}

	linked := strings.Fields(run("list", "-deps", "."))
	if !slices.Contains(linked, module+"schema/check") {
		t.Fatalf("the program links only %v", linked)
	}
	for _, pkg := range linked {
		if slices.ContainsFunc(notInLibraries, func(barred string) bool { return under(pkg, barred) }) {
			t.Errorf("a program that decodes, infers and checks links %s", pkg)
		}
	}

	const want = "3 4 [shop/v1/inferred.proto] [connect-stream ok] 3 3 true\n"
	if got := run("run", "."); got != want {
		t.Errorf("the program prints %q, want %q", got, want)
	}
}

// writeLibraryModule makes the module of testdata/library, which uses the packages of
// this one at root, with the versions that this one requires.
func writeLibraryModule(t *testing.T, dir, root string) {
	t.Helper()
	program, err := os.ReadFile("testdata/library/main.go")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": string(program),
		"go.sum":  string(sums),
		"go.mod":  "module example.com/library\n\ngo 1.26.0\n\nrequire unwire v0.0.0\n\nreplace unwire => " + filepath.ToSlash(root) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
