package clientprobe

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzJournal reads journals that anybody may have written, and appends to them.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"v":1,"event":"answer","key":"a","time":"2026-01-02T03:04:05Z","answer":{"change":"remove","messages":1,"fails":false,"effects":[]}}` + "\n"))
	f.Add([]byte("{}\n{\"v\":1,\"event\":\"ans"))
	f.Add([]byte("no entry\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // a temporary file
		j, err := NewJournal(file, "capture")
		if err != nil {
			if !strings.Contains(err.Error(), "the journal cannot be read: line ") {
				t.Errorf("%v", err)
			}
			return
		}
		known := len(j.outcomes)
		c := &change{Target: &Target{Method: "m", Path: "1"}, Op: opRemove}
		key := j.key(&Probe{}, c)
		if err := j.note(key, c, &Evidence{Change: opRemove, Messages: 3}); err != nil {
			t.Fatal(err)
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		again, err := NewJournal(file, "capture")
		if err != nil || len(again.outcomes) != known+1 || again.recorded(key).Messages != 3 {
			t.Errorf("%v: %d outcomes after %d", err, len(again.outcomes), known)
		}
	})
}
