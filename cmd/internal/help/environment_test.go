package help

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readsVariable are the ways in which code names an environment variable.
var readsVariable = []*regexp.Regexp{
	regexp.MustCompile(`\b(UNWIRE_[A-Z0-9_]+)`),
	regexp.MustCompile(`os\.(?:Getenv|LookupEnv)\("([^"]+)"\)`),
}

// Every variable that the code names is in the table, and those of the table are in the code.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	var table []string
	for _, v := range environment {
		table = append(table, strings.Split(v.Name, ", ")...)
	}
	found := map[string]bool{}
	root := filepath.Join("..", "..", "..")
	self, err := filepath.Abs("environment.go")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch abs, _ := filepath.Abs(path); {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir() || abs == self || strings.HasSuffix(path, "_test.go"), !slices.Contains([]string{".go", ".js", ".cjs", ".mjs", ""}, filepath.Ext(path)):
			return nil
		}
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.IndexByte(code, 0) >= 0 { // a built program, in bin/ or dist/
			return nil
		}
		for _, pattern := range readsVariable {
			for _, m := range pattern.FindAllSubmatch(code, -1) {
				name := string(m[1])
				found[name] = true
				if !slices.ContainsFunc(table, func(row string) bool {
					prefix, any := strings.CutSuffix(row, "*")
					return row == name || any && strings.HasPrefix(name, prefix)
				}) {
					t.Errorf("%s names %s, which is not in the table of environment variables", path, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table {
		if strings.HasPrefix(row, "UNWIRE_") && !strings.HasSuffix(row, "*") && !found[row] {
			t.Errorf("%s is in the table, and nothing names it", row)
		}
	}
}
