package envelope

import (
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// What is pushed, a byte at a time or at once, is read in order; the end is one of
// the input, and the function's error is there.
func TestPush(t *testing.T) {
	fail := errors.New("enough")
	for _, size := range []int{1, 3, 100} {
		var got []byte
		p := NewPush(func(src io.Reader) (err error) {
			got, err = io.ReadAll(iotest.OneByteReader(src))
			return errors.Join(err, fail)
		})
		for in := []byte("some input"); len(in) > 0; {
			n := min(size, len(in))
			p.Feed(in[:n])
			in = in[n:]
		}
		if done, _ := p.Done(); done {
			t.Error("done before the input ends")
		}
		if err := p.Close(); !errors.Is(err, fail) || string(got) != "some input" {
			t.Errorf("%d at a time: %q, %v", size, got, err)
		}
	}
}

// A function that returns early gets no more input.
func TestPushEndsEarly(t *testing.T) {
	p := NewPush(func(src io.Reader) error {
		_, err := io.ReadFull(src, make([]byte, 2))
		return err
	})
	p.Feed([]byte("abc"))
	if done, err := p.Done(); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	p.Feed([]byte("d"))
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
