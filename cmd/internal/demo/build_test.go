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
