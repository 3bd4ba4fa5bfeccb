package envelope

import (
	"io"
	"iter"
)

// A Push runs a function that reads, as decompressors do, on input that is pushed: the
// function is a coroutine that goes on when there is input, and stops when it wants
// more.
type Push struct {
	in     []byte
	closed bool
	done   bool
	err    error
	yield  func(struct{}) bool
	next   func() (struct{}, bool)
	stop   func()
}

// NewPush returns a Push that runs read with the first input.
func NewPush(read func(src io.Reader) error) *Push {
	p := &Push{}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		p.err = read((*pushed)(p))
	})
	return p
}

// pushed is what a Push's function reads.
type pushed Push

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

// Feed returns when the function has read all of b, or has returned. What comes after
// that is ignored.
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

// Done reports whether the function has returned; its error is there before Close.
func (p *Push) Done() (done bool, err error) { return p.done, p.err }

// Close ends the input and returns the function's error.
func (p *Push) Close() error {
	p.closed = true
	p.Feed(nil)
	p.stop()
	p.done = true
	return p.err
}
