// Package output collects text and writes it to a writer in large pieces.
//
//	o := output.New(os.Stdout)
//	o.WriteString("1: ")
//	o.AppendInt(150)
//	err := o.Flush()
//
// A line of text consists of about ten pieces of a few bytes, so the methods that add them are small enough to be
// inlined, which those of a bufio.Writer are not.
package output

import (
	"encoding/hex"
	"io"
	"strconv"
)

// size is the number of bytes from which an Output passes its text on. The text stays in the CPU's first cache.
const size = 4 << 10

// An Output collects text.
//
// Limits: only Write, AppendHex, FlushFull and Flush pass text on. A caller must call one of them from time to time.
type Output struct {
	// w receives the text.
	w io.Writer

	// text has not been passed on yet.
	text []byte

	// passed is the number of times that text was passed on.
	passed int

	// err is the first error of w. No further text is passed on after it.
	err error
}

// New returns an Output that writes to w.
func New(w io.Writer) *Output { return &Output{w: w} }

// WriteString adds the text s.
func (o *Output) WriteString(s string) { o.text = append(o.text, s...) }

// WriteByte adds the character c. It returns no error.
func (o *Output) WriteByte(c byte) error {
	o.text = append(o.text, c)
	return nil
}

// AppendInt adds the decimal digits of v.
func (o *Output) AppendInt(v int64) { o.text = strconv.AppendInt(o.text, v, 10) }

// AppendUint adds the decimal digits of v.
func (o *Output) AppendUint(v uint64) { o.text = strconv.AppendUint(o.text, v, 10) }

// AppendHex adds the hexadecimal digits of b.
func (o *Output) AppendHex(b []byte) {
	o.text = hex.AppendEncode(o.text, b)
	o.FlushFull()
}

// Write adds the text b. It returns no error: Flush does.
func (o *Output) Write(b []byte) (int, error) {
	if len(b) < size {
		o.text = append(o.text, b...)
		o.FlushFull()
		return len(b), nil
	}
	// Copying long text would cost memory.
	o.pass(o.text)
	o.text = o.text[:0]
	o.pass(b)
	return len(b), nil
}

// FlushFull passes the text on if there is much of it.
func (o *Output) FlushFull() {
	if len(o.text) >= size {
		o.pass(o.text)
		o.text = o.text[:0]
	}
}

// A Mark is a position in the text.
type Mark struct{ passed, at int }

// Mark returns the current position.
func (o *Output) Mark() Mark { return Mark{o.passed, len(o.text)} }

// Since returns the text that was added since the position m. It is valid until the next call of another method. ok is
// false if some of it was passed on.
func (o *Output) Since(m Mark) (text []byte, ok bool) {
	if o.passed != m.passed {
		return nil, false
	}
	return o.text[m.at:], true
}

// pass writes b to w, unless there was an error before.
func (o *Output) pass(b []byte) {
	o.passed++
	if o.err == nil && len(b) > 0 {
		_, o.err = o.w.Write(b)
	}
}

// Flush writes all collected text.
//
// Errors: the first error of the writer.
func (o *Output) Flush() error {
	o.pass(o.text)
	o.text = o.text[:0]
	return o.err
}
