package envelope

import (
	"io"
	"iter"
)

// A Push runs a function that reads from an io.Reader, such as a decompressor, on input that arrives in pieces.
// The function runs as a coroutine (iter.Pull): it suspends when it needs more input than there is.
type Push struct {
	// in is the input that the function has not read yet.
	in []byte

	// closed means that the input has ended.
	closed bool

	// done means that the function has returned.
	done bool

	// err is the error that the function returned; valid if done is true.
	err error

	// yield suspends the coroutine until more input arrives. It returns false if the function must return.
	yield func(struct{}) bool

	// next resumes the coroutine until it suspends itself or returns. Its bool is false after the return.
	next func() (struct{}, bool)

	// stop makes a suspended coroutine return and releases it.
	stop func()
}

// NewPush returns a Push that starts read with the first input.
func NewPush(read func(src io.Reader) error) *Push {
	p := &Push{}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		p.err = read((*pushed)(p))
	})
	return p
}

// pushed is a Push as the io.Reader from which its function reads.
type pushed Push

// Read reads from the input that Feed was given. While there is none, it suspends the coroutine.
func (p *pushed) Read(b []byte) (int, error) {
	for len(p.in) == 0 {
		if p.closed || !p.yield(struct{}{}) {
			return 0, io.EOF
		}
	}
	n := copy(b, p.in)
	p.in = p.in[n:]
	return n, nil
}

// Feed gives b to the reading function, and returns when the function has read all of b or has
// returned. Input that arrives after the function has returned is ignored.
func (p *Push) Feed(b []byte) {
	if p.done {
		return
	}
	p.in = b
	if _, more := p.next(); !more {
		p.done = true
	}
	p.in = nil
}

// Done reports whether the function has returned, and with which error.
func (p *Push) Done() (done bool, err error) { return p.done, p.err }

// Close ends the input, waits for the function to return, and returns its error.
func (p *Push) Close() error {
	p.closed = true
	p.Feed(nil)
	p.stop()
	p.done = true
	return p.err
}
