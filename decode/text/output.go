package text

import "io"

// flushSize is the number of bytes from which an output passes its text on.
const flushSize = 4 << 10

// An output collects text and writes it to a writer in large pieces. A line of text consists of about ten pieces of a
// few bytes, so the methods that add them are small enough to be inlined, which those of a bufio.Writer are not.
//
// Limits: only Write, flushFull and Flush pass text on. A printer calls one of them for each field and for each long
// value.
type output struct {
	// w receives the text.
	w io.Writer

	// text has not been passed on yet.
	text []byte

	// passed is the number of times that text was passed on.
	passed int

	// err is the first error of w. No further text is passed on after it.
	err error
}

// newOutput returns an output that writes to w.
func newOutput(w io.Writer) *output { return &output{w: w} }

// WriteString adds the text s.
func (o *output) WriteString(s string) { o.text = append(o.text, s...) }

// WriteByte adds the character c. It returns no error.
func (o *output) WriteByte(c byte) error {
	o.text = append(o.text, c)
	return nil
}

// Write adds the text b. It returns no error: Flush does.
func (o *output) Write(b []byte) (int, error) {
	if len(b) < flushSize {
		o.text = append(o.text, b...)
		o.flushFull()
		return len(b), nil
	}
	// Copying long text would cost memory.
	o.pass(o.text)
	o.text = o.text[:0]
	o.pass(b)
	return len(b), nil
}

// flushFull passes the text on if there is much of it.
func (o *output) flushFull() {
	if len(o.text) >= flushSize {
		o.pass(o.text)
		o.text = o.text[:0]
	}
}

// pass writes b to w, unless there was an error before.
func (o *output) pass(b []byte) {
	o.passed++
	if o.err == nil && len(b) > 0 {
		_, o.err = o.w.Write(b)
	}
}

// Flush writes all collected text.
//
// Errors: the first error of the writer.
func (o *output) Flush() error {
	o.pass(o.text)
	o.text = o.text[:0]
	return o.err
}
