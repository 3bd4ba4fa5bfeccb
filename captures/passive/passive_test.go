package passive

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFailedStart checks that a recording which cannot start leaves nothing behind.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	for what, o := range map[string]Options{
		"no folder for the capture": {Output: filepath.Join(t.TempDir(), "none", "a.uwc")},
		"no key log":                {Output: filepath.Join(t.TempDir(), "a.uwc"), KeyLog: filepath.Join(t.TempDir(), "none")},
	} {
		dir := t.TempDir()
		r, err := Start(t.Context(), dir, o)
		if err == nil || r != nil {
			t.Errorf("%s: %v, %v", what, r, err)
		}
		for _, left := range []string{dir, filepath.Dir(o.Output)} {
			if list, err := os.ReadDir(left); err == nil && len(list) > 0 {
				t.Errorf("%s: left in %s: %v", what, left, list)
			}
		}
	}
}
