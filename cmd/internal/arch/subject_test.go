package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// subject matches the words that only proto/ and packages for its service may contain.
var subject = regexp.MustCompile(`(?i)cursor\.sh|x-cursor-|agent\.v1|aiserver\.v1|cursor`)

// knowsSubject are the folders that may name the service that proto/ describes.
var knowsSubject = []string{"proto/", "replay/standin/", "replay/internal/standintest/", "replay/agent/", "cmd/internal/demo/", "cmd/internal/arch/", "cmd/unwire/docs/"}

// literals are allowed exceptions: the name of the profile in flags, and words with another
// meaning, such as the mouse pointer in CSS.
var literals = regexp.MustCompile(`--profile cursor|--credentials cursor|cursor: pointer|"cursor", "filter"|\|phi\|cursor\|`)

// otherCursors are the folders in which a cursor is the place in a listing, as the Model Context
// Protocol calls it, or the editor of that name among the programs that use servers. The words of
// the service may not be in them either.
var (
	otherCursors = []string{"cmd/internal/mcp/", "cmd/internal/cli/mcp/"}
	service      = regexp.MustCompile(`(?i)cursor\.sh|x-cursor-|agent\.v1|aiserver\.v1`)
)

// TestSubject checks that the rest of the program, without tests, names no service.
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
		words := subject
		if matchesPrefix(otherCursors, file) {
			words = service
		}
		number := 0
		for line := range strings.Lines(string(data)) {
			number++
			if words.MatchString(literals.ReplaceAllString(line, "")) {
				t.Errorf("%s:%d names the service of proto/: hand a profile in", file, number)
			}
		}
	}
	if seen < 100 {
		t.Fatalf("only %d files were looked at", seen)
	}
}

// compiled reports whether a file is part of the program: Go code without tests, or an
// embedded file.
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
