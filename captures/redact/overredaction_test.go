package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures"
)

// maxMaskedOfThousand is how many values of a thousand may be masked in what holds no secrets.
const maxMaskedOfThousand = 1

// Of values that are no secrets, at most one of a thousand is masked: in the test data of the
// API of Kubernetes, which has fields named after secrets and values named after the fields, and
// in the metadata of packages of npm.
func TestOverRedaction(t *testing.T) {
	t.Run("Kubernetes", func(t *testing.T) {
		checkMasked(t, filepath.Join(moduleDir(t, "k8s.io/api@v0.34.1"), "testdata", "HEAD"), 50_000, func(name string) bool {
			return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".pb")
		})
	})
	t.Run("npm", func(t *testing.T) {
		checkMasked(t, filepath.Join("..", ".."), 2000, func(name string) bool { return name == "package-lock.json" || name == "package.json" })
	})
	t.Run("demo", func(t *testing.T) {
		isJSON := func(name string) bool { return strings.HasSuffix(name, ".json") }
		checkMasked(t, filepath.Join("..", "..", "cmd", "internal", "demo", "testdata"), 20, isJSON)
		checkMasked(t, filepath.Join("..", "..", "replay", "standin"), 200, isJSON)
	})
}

// checkMasked redacts the files of a folder one by one, in which there are at least so many values,
// and counts the values in JSON and what is
// masked.
func checkMasked(t *testing.T, dir string, least int, is func(name string) bool) {
	t.Helper()
	values, masked := 0, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !is(d.Name()) {
			return err
		}
		p, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r := New(Options{})
		got := join(redactBody(r, captures.Headers{{Name: "content-type", Value: "application/octet-stream"}}, bytes.Clone(p)))
		n := countValues(p)
		if n == 0 {
			// No JSON: as many as the file has lines.
			n = bytes.Count(p, []byte("\n")) + 1
		}
		values += n
		for _, h := range New(Options{}).Find(p, false, "") {
			masked++
			t.Logf("%s: %s %s: %.40q", filepath.Base(path), h.Rule, h.Name, p[h.Off:h.Off+h.Len])
		}
		if len(got) != len(p) {
			t.Errorf("%s: %d bytes, were %d", path, len(got), len(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d values are masked", masked, values)
	if values < least || 1000*masked > maxMaskedOfThousand*values {
		t.Errorf("%d of %d values are masked, want at most %d of 1000", masked, values, maxMaskedOfThousand)
	}
}

// countValues returns how many strings, numbers and booleans a JSON text has, 0 if it is none.
func countValues(p []byte) int {
	var v any
	if json.Unmarshal(p, &v) != nil {
		return 0
	}
	var count func(v any) int
	count = func(v any) (n int) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				n += count(e)
			}
		case []any:
			for _, e := range v {
				n += count(e)
			}
		default:
			n = 1
		}
		return n
	}
	return count(v)
}

// moduleDir returns where a module's files are, downloading it if need be.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var info struct{ Dir, Error string }
	if err := errors.Join(err, json.Unmarshal(out, &info)); err != nil || info.Error != "" {
		t.Skipf("no module %s: %v %s", module, err, info.Error)
	}
	return info.Dir
}
