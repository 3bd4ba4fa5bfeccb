package journal

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An entry is a line of the journals of the tests.
type entry struct{ N int }

// continued writes a file, continues it and appends a line. It returns what was read, and what the file has then.
func continued(t *testing.T, text string) (read []int, now string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a temporary file
	if err := Continue(f, 100, func(e entry) { read = append(read, e.N) }); err != nil {
		return read, "", err
	}
	if _, err := io.WriteString(f, "{\"N\":9}\n"); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	return read, string(after), err
}

func TestContinue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, now, fault string }{
		{"", "{\"N\":9}\n", ""},
		{"{\"N\":1}\n{\"N\":2}\n", "{\"N\":1}\n{\"N\":2}\n{\"N\":9}\n", ""},
		{"{\"N\":1}\n{\"N\":2,\"more", "{\"N\":1}\n{\"N\":9}\n", ""},
		{"{\"N\":1}\nnothing\n", "", "line 2 is not a journal entry: "},
		{"{\"N\":1}\n" + strings.Repeat(" ", 100) + "\n", "", "line 2: the line has more than 100 bytes"},
	} {
		read, now, err := continued(t, c.text)
		if c.fault != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.fault) {
				t.Errorf("%q: %v, want %s", c.text, err, c.fault)
			}
			continue
		}
		if err != nil || now != c.now || len(read) != strings.Count(c.now, "\n")-1 {
			t.Errorf("%q: read %v, then %q, %v", c.text, read, now, err)
		}
	}
}

// FuzzContinue continues journals that anybody may have written.
func FuzzContinue(f *testing.F) {
	f.Add("{\"N\":1}\n{\"N\":2,\"more")
	f.Add("nothing\n")
	f.Fuzz(func(t *testing.T, text string) {
		read, now, err := continued(t, text)
		if err == nil && (strings.Count(now, "\n") != len(read)+1 || !strings.HasSuffix(now, "{\"N\":9}\n")) {
			t.Errorf("%q became %q, with %d entries", text, now, len(read))
		}
	})
}
