package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// subject are words that only proto/ and what is made for its service may have.
var subject = regexp.MustCompile(`(?i)cursor\.sh|x-cursor-|agent\.v1|aiserver\.v1|cursor`)

// knowsSubject are the folders that may name the service that proto/ describes.
var knowsSubject = []string{"proto/", "replay/standin/", "replay/internal/standintest/", "replay/agent/", "cmd/internal/demo/", "cmd/internal/arch/"}

// literals are the words in which users name the profile, and words that mean
// something else: a mouse's pointer in CSS, and the place in a listing.
var literals = regexp.MustCompile(`--profile cursor|--credentials cursor|cursor: pointer|"cursor", "filter"`)

// stillNamed are lines that name the service elsewhere, by file. A file may only
// have fewer, and then it has fewer here.
var stillNamed = map[string]int{
	"cmd/internal/cli/inspect/codec.go": 1,
	"cmd/internal/cli/inspect/grep.go":  1,
	"decode/transcript/class.go":        1,
}

// TestSubject holds the rest of the tree to knowing no service by name: what is
// compiled or embedded, tests not counted.
func TestSubject(t *testing.T) {
	root := "../../.."
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	named, seen := map[string]int{}, 0
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		if !compiled(file) || matchesPrefix(knowsSubject, file) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		seen++
		for line := range strings.Lines(string(data)) {
			if subject.MatchString(literals.ReplaceAllString(line, "")) {
				named[file]++
			}
		}
	}
	if seen < 100 {
		t.Fatalf("only %d files were looked at", seen)
	}
	for file, n := range named {
		if n > stillNamed[file] {
			t.Errorf("%s: %d lines name the service of proto/, %d may: hand a profile in", file, n, stillNamed[file])
		}
	}
	for file, n := range stillNamed {
		if named[file] < n {
			t.Errorf("%s: %d lines name the service of proto/, fewer than the %d allowed: lower it", file, named[file], n)
		}
	}
}

// compiled reports whether a file is part of the program: Go that is no test, or
// what is embedded.
func compiled(file string) bool {
	if strings.Contains(file, "testdata/") || strings.HasSuffix(file, "_test.go") {
		return false
	}
	switch filepath.Ext(file) {
	case ".go", ".cjs", ".html", ".json", ".mjs", ".js", ".css":
		return true
	}
	return false
}

func matchesPrefix(list []string, file string) bool {
	for _, p := range list {
		if strings.HasPrefix(file, p) {
			return true
		}
	}
	return false
}
