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
var knowsSubject = []string{"proto/", "replay/standin/", "replay/internal/standintest/", "replay/agent/", "cmd/internal/demo/", "cmd/internal/arch/", "cmd/unwire/docs/"}

// literals are the words in which users name the profile, and words that mean
// something else: a mouse's pointer in CSS, the place in a listing, and a family of
// models among the others that texts may name.
var literals = regexp.MustCompile(`--profile cursor|--credentials cursor|cursor: pointer|"cursor", "filter"|\|phi\|cursor\|`)

// TestSubject holds the rest of the tree to knowing no service by name: what is
// compiled or embedded, tests not counted.
func TestSubject(t *testing.T) {
	root := "../../.."
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
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
		number := 0
		for line := range strings.Lines(string(data)) {
			number++
			if subject.MatchString(literals.ReplaceAllString(line, "")) {
				t.Errorf("%s:%d names the service of proto/: hand a profile in", file, number)
			}
		}
	}
	if seen < 100 {
		t.Fatalf("only %d files were looked at", seen)
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
