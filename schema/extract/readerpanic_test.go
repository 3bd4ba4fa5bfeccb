package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// faulty is the formats with one more, which fails as a fault of unwire does:
// its file's name is what is to happen.
func faulty() []format {
	return append([]format{{
		Name:  "faulty",
		Match: func(name string, _ []byte) bool { return strings.HasSuffix(name, ".fault") },
		Read: func(_ context.Context, _ *collector, _ string, data []byte) error {
			_ = data[len(data)]
			return nil
		},
	}}, formats()...)
}

// A panic in one file is listed with the file's name and the place in unwire's
// sources, and the other files are read: of a folder, of an archive, and of a
// file that was named.
func TestFault(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for name, text := range map[string]string{"a.fault": "x", "b.js": script, "c.fault": "y"} {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write("folder/a.fault", []byte("x"))
	write("folder/b.js", []byte(script))
	write("folder/c/d.fault", []byte("x"))
	for name, test := range map[string]struct {
		path   string
		faults int
		files  int
	}{
		"folder":  {filepath.Join(dir, "folder"), 2, 1},
		"archive": {write("a.zip", packed.Bytes()), 2, 1},
		"file":    {write("alone.fault", []byte("x")), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(test.path, faulty())
			if err := c.addPath(t.Context(), test.path); err != nil {
				t.Fatal(err)
			}
			src := found(t, c)
			if len(src.Files) != test.files || len(c.faults) != test.faults || len(c.unread) != test.faults {
				t.Fatalf("%d files, faults %v, unread %v", len(src.Files), c.faults, c.unread)
			}
			for _, fault := range c.faults {
				if !strings.HasSuffix(fault.File, ".fault") || !strings.Contains(fault.Where, "schema/extract/readerpanic_test.go:") {
					t.Errorf("%q at %q", fault.File, fault.Where)
				}
			}
			listed := 0
			pattern := regexp.MustCompile(`^not read: unwire failed at schema/extract/readerpanic_test\.go:\d+: .*index out of range`)
			for _, u := range src.Unresolved {
				if strings.HasSuffix(u.Place.File, ".fault") && pattern.MatchString(u.Reason) {
					listed++
				}
			}
			if listed != test.faults {
				t.Errorf("listed is %v", src.Unresolved)
			}
		})
	}
}

// What ends the reading of a file is no fault where it is the file's.
func TestNoFault(t *testing.T) {
	for name, data := range map[string]string{"ls.js": "\x7fELF" + strings.Repeat("\x00", 100), "nul.js": strings.Repeat("\x00", 50_000), "x.cjs": "\x00"} {
		c := newCollector(name, formats())
		err := c.addData(t.Context(), name, []byte(data))
		var fault *Fault
		if err == nil || errors.As(err, &fault) || !strings.Contains(err.Error(), name+": the file is not JavaScript") || len(c.faults) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", script, "\ufeff" + script, "// " + strings.Repeat("\xe4\xf6\xfc", 3000) + "\n" + script, "x='\x01\x02';" + script} {
		c := newCollector("a.js", formats())
		if err := c.addData(t.Context(), "a.js", []byte(text)); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
