package probe

import (
	"bytes"
	"testing"
)

// A journal is read to its last whole line, whatever it holds.
func FuzzJournal(f *testing.F) {
	f.Add([]byte("{\"v\":1,\"event\":\"answer\",\"key\":\"a\",\"answer\":{\"status\":500}}\n{\"v\":1"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j := &journal{answers: map[string]*Answer{}}
		file := bytes.NewReader(data)
		err := j.load(file)
		if end := file.Size() - int64(file.Len()); err == nil && end != int64(bytes.LastIndexByte(data, '\n')+1) {
			t.Errorf("%d of %d bytes are whole lines: %q", end, len(data), data)
		}
	})
}
