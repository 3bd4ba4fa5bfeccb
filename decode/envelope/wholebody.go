package envelope

import (
	"fmt"
	"io"
)

// A wholeReader decompresses a body that is compressed as a whole, while it arrives. A frame becomes
// available as soon as its sender has flushed it.
type wholeReader struct {
	// push runs the decompressor as a coroutine on the arriving bytes.
	push *Push

	// out are decompressed bytes that were not returned yet.
	out []byte

	// total is the number of decompressed bytes so far.
	total int64

	// limit is the maximum of total, in bytes. Decompression ends with an error beyond it.
	limit int64

	// failed means that the error of decompression was already returned; it is returned only once.
	failed bool
}

// newWholeReader returns a wholeReader that decompresses up to limit bytes. It returns nil if the encoding is
// identity or empty.
func newWholeReader(encoding string, limit int64) *wholeReader {
	name := normalEncoding(encoding)
	if name == "" {
		return nil
	}
	w := &wholeReader{limit: limit}
	w.push = NewPush(func(src io.Reader) error {
		if err := w.run(name, src); err != nil {
			return fmt.Errorf("the body cannot be decompressed: %s: failed after %d bytes: %w", name, w.total, err)
		}
		return nil
	})
	return w
}

// run decompresses src until its end, an error, or the size limit.
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

// feed returns the decompressed bytes that the compressed bytes p yield. It returns an error of decompression once,
// and then ignores input.
func (w *wholeReader) feed(p []byte) ([]byte, error) {
	w.push.Feed(p)
	_, err := w.push.Done()
	return w.taken(err)
}

// close ends the body and returns the remaining bytes.
func (w *wholeReader) close() ([]byte, error) {
	return w.taken(w.push.Close())
}

// taken returns the bytes decompressed since the last call. It also returns err, but only once.
func (w *wholeReader) taken(err error) ([]byte, error) {
	out := w.out
	w.out = nil
	if err == nil || w.failed {
		return out, nil
	}
	w.failed = true
	return out, err
}
