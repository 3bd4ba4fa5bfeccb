package demo

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"unwire/captures/need"
)

// TestBuildReports: build.sh reports what it compiles, shows the errors of the compiler
// and ends with the status of go build. What was built is up to date the next time.
func TestBuildReports(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("build.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	build := func(wantStatus int, want ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", script, "out/made", ".")
		cmd.Dir = dir
		text, err := cmd.CombinedOutput()
		status := 0
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			status = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if status != wantStatus {
			t.Errorf("status %d, want %d: %s", status, wantStatus, text)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	write("go.mod", "module made.example\n\ngo 1.24\n")
	write("main.go", "package main\n\nfunc main() { println("+strconv.FormatInt(time.Now().UnixNano(), 10)+") }\n") // not in the build cache
	build(0, "building out/made (only", "built out/made in ", "packages compiled: 1\n")
	build(0, "out/made was up to date")
	write("main.go", "package main\n\nfunc main() { nosuch() }\n")
	build(1, "undefined: nosuch", "go build failed after ")
}

// TestDemoInstallsItsClientOnly: make demo installs the packages of its own Node client,
// and not those of the tests, which are a hundred times larger.
func TestDemoInstallsItsClientOnly(t *testing.T) {
	t.Parallel()
	need.Program(t, "make", "make")
	dir := t.TempDir()
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"Makefile": string(makefile),
		"bin/npm":  "#!/bin/sh\npwd >>" + dir + "/installed\nmkdir -p node_modules\n",
	}
	for _, client := range []string{"cmd/internal/demo/node", "mitm/testdata/node", "schema/extract/testdata/node"} {
		files[client+"/package.json"], files[client+"/package-lock.json"] = "{}", "{}"
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "make", "node-deps-if-possible")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	installed, err := os.ReadFile(filepath.Join(dir, "installed"))
	if want := filepath.Join(dir, "cmd/internal/demo/node") + "\n"; err != nil || string(installed) != want {
		t.Errorf("installed %q (%v), want %q", installed, err, want)
	}
}
