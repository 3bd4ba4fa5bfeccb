package envelope

import (
	"fmt"
	"io"
)

// A wholeReader undoes the compression of a whole framed body as it arrives,
// so that a frame is there as soon as the sender has flushed it.
type wholeReader struct {
	push  *Push
	out   []byte
	total int64
	limit int64

	// failed reports that the error has been returned.
	failed bool
}

// newWholeReader returns nil where there is nothing to undo.
func newWholeReader(encoding string, limit int64) *wholeReader {
	name := normalEncoding(encoding)
	if name == "" {
		return nil
	}
	w := &wholeReader{limit: limit}
	w.push = NewPush(func(src io.Reader) error {
		if err := w.run(name, src); err != nil {
			return fmt.Errorf("envelope: body: %s: after %d bytes: %w", name, w.total, err)
		}
		return nil
	})
	return w
}

// run decompresses until the end, an error or the limit.
func (w *wholeReader) run(name string, src io.Reader) error {
	if !Known(name) {
		return unknownError(name)
	}
	var d Decompressor
	defer d.Close()
	r, err := d.Open(name, src)
	if err != nil {
		return endIsUnexpected(err)
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
	w.push.Feed(p)
	_, err := w.push.Done()
	return w.taken(err)
}

func (w *wholeReader) close() ([]byte, error) {
	return w.taken(w.push.Close())
}

// taken returns what has been decompressed since the last time.
func (w *wholeReader) taken(err error) ([]byte, error) {
	out := w.out
	w.out = nil
	if err == nil || w.failed {
		return out, nil
	}
	w.failed = true
	return out, err
}
