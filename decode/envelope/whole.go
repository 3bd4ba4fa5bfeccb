package envelope

import (
	"fmt"
	"io"
	"iter"
)

// A wholeReader undoes the compression of a whole framed body as it arrives,
// so that a frame is there as soon as the sender has flushed it.
//
// Shape: the decompressor runs as a coroutine that asks for input by yielding.
type wholeReader struct {
	in     []byte
	out    []byte
	total  int64
	limit  int64
	closed bool
	fail   error
	next   func() (struct{}, bool)
	stop   func()
}

// newWholeReader returns nil where there is nothing to undo.
func newWholeReader(encoding string, limit int64) *wholeReader {
	name := normalEncoding(encoding)
	if name == "" {
		return nil
	}
	w := &wholeReader{limit: limit}
	w.next, w.stop = iter.Pull(func(yield func(struct{}) bool) {
		if err := w.run(name, yield); err != nil {
			w.fail = fmt.Errorf("envelope: body: %s: after %d bytes: %w", name, w.total, err)
		}
	})
	return w
}

// run decompresses until the end, an error or the limit.
func (w *wholeReader) run(name string, yield func(struct{}) bool) error {
	e, known := encodings[name]
	if !known {
		return fmt.Errorf("compression %q is not known", name)
	}
	r, err := e.reader(inputFunc(func(p []byte) (int, error) {
		for len(w.in) == 0 {
			if w.closed || !yield(struct{}{}) {
				return 0, io.EOF
			}
		}
		n := copy(p, w.in)
		w.in = w.in[n:]
		return n, nil
	}))
	if err != nil {
		return endIsUnexpected(err)
	}
	if c, ok := r.(io.Closer); ok {
		defer c.Close() //nolint:errcheck // it reads from memory
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		n = int(min(int64(n), w.limit-w.total))
		w.out = append(w.out, buf[:n]...)
		w.total += int64(n)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return endIsUnexpected(err)
		case w.total == w.limit:
			return fmt.Errorf("%w of %d", ErrInflated, w.limit)
		}
	}
}

// feed returns what p adds to the decompressed body, and the error that ended
// it, once.
func (w *wholeReader) feed(p []byte) ([]byte, error) {
	w.in = p
	before := w.fail
	w.next()
	out := w.out
	w.in, w.out = nil, nil
	if before == nil {
		return out, w.fail
	}
	return out, nil
}

func (w *wholeReader) close() ([]byte, error) {
	w.closed = true
	out, err := w.feed(nil)
	w.stop()
	return out, err
}

// An inputFunc is a Read method.
type inputFunc func([]byte) (int, error)

func (f inputFunc) Read(p []byte) (int, error) { return f(p) }
