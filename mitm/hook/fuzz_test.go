package hook

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"unwire/mitm/rewrite"
)

// FuzzAnswers: whatever a program writes, each waiting frame gets an answer or an error, and only a valid answer changes
// it.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"id":1,"action":"drop"}` + "\n"))
	f.Add([]byte(`{"id":2,"action":"replace","messages":["CgVoZWxsbw=="],"rule":"x"}` + "\n" + `{"id":1}`))
	f.Add([]byte(`{"id":1,"action":"explode"}` + "\n{"))
	f.Fuzz(func(t *testing.T, output []byte) {
		h := &Hook{waiting: map[int64]chan answer{1: make(chan answer, 1), 2: make(chan answer, 1)}}
		frames := []chan answer{h.waiting[1], h.waiting[2]}
		h.fail(errors.Join(h.readAnswers(bytes.NewReader(output)), io.EOF))
		if h.lastError() == nil || len(h.waiting) > 0 {
			t.Errorf("%d frames wait for a program that has ended: %v", len(h.waiting), h.lastError())
		}
		for i, c := range frames {
			a, ok := <-c
			if !ok {
				continue
			}
			v, err := a.verdict()
			if a.ID != int64(i+1) || err != nil && v.Action != rewrite.Pass || v.Action == rewrite.Replace && len(v.Messages) != 0 && a.Action != "replace" {
				t.Errorf("frame %d got the answer %+v: %+v, %v", i+1, a, v, err)
			}
		}
	})
}
