package rules

import (
	"os"
	"strings"
	"testing"
)

// The example of the README is a valid file.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\nrules:")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the README has no example")
	}
	s, err := parse("README.md", []byte("rules:"+example))
	if err != nil || s.Len() != 7 {
		t.Errorf("%v", err)
	}
}
