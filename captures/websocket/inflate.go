package websocket

import (
	"bufio"
	"errors"
	"io"
	"iter"

	"github.com/klauspost/compress/flate"
)

const (
	// windowSize is the largest window of DEFLATE, in bytes.
	windowSize = 32 << 10

	// maxInflated bounds an inflated message, in bytes. If all of a direction have more
	// than minRatioSize, they may have maxRatio times the size that they have on the wire.
	maxInflated  = 64 << 20
	minRatioSize = 64 << 20
	maxRatio     = 256
)

// messageTail is what a sender leaves out at the end of a message.
//
// Source: RFC 7692, section 7.2.1
var messageTail = []byte{0, 0, 0xff, 0xff}

var (
	errStopped = errors.New("stopped")
	errReset   = errors.New("reset")
)

// An inflater inflates the messages of one direction, as far as their bytes have come. The
// decompressor runs as a coroutine, which gives the control back when it needs bytes.
type inflater struct {
	emit func([]byte) error

	// input is what the decompressor has not read yet.
	input []byte

	// fresh says that the next message begins with an empty window.
	fresh bool

	// wake runs the decompressor until it has read all of the input; stop ends it.
	wake func() (struct{}, bool)
	stop func()
	err  error
}

// newInflater returns an inflater that hands what it inflates to emit.
func newInflater(emit func([]byte) error) *inflater {
	i := &inflater{emit: emit}
	i.wake, i.stop = iter.Pull(i.run)
	_, _ = i.wake() // to the first read
	return i
}

// feed inflates more bytes.
func (i *inflater) feed(p []byte) error {
	if len(p) == 0 || i.err != nil {
		return i.err
	}
	i.input = p
	if _, ok := i.wake(); !ok && i.err == nil {
		i.err = errStopped
	}
	return i.err
}

// reset has the next message begin with an empty window.
func (i *inflater) reset() { i.fresh = true }

// run is the coroutine.
func (i *inflater) run(yield func(struct{}) bool) {
	src := bufio.NewReaderSize(nil, 4<<10)
	from := &inputReader{i, yield}
	src.Reset(from)
	window := make([]byte, 0, 2*windowSize)
	d := flate.NewReader(src)
	buf := make([]byte, windowSize)
	for {
		n, err := d.Read(buf)
		if err == errReset {
			src.Reset(from)
			window = window[:0]
			_ = d.(flate.Resetter).Reset(src, nil) // never fails
			continue
		}
		if n > 0 {
			if i.err = i.emit(buf[:n]); i.err != nil {
				return
			}
			window = appendWindow(window, buf[:n])
		}
		switch err {
		case nil:
		case io.EOF:
			// A last block; what follows may refer to what it held.
			//
			// Source: RFC 7692, section 7.2.3.4
			_ = d.(flate.Resetter).Reset(src, window[max(0, len(window)-windowSize):])
		default:
			i.err = err
			return
		}
	}
}

// appendWindow appends to what has been inflated, of which the end is kept.
func appendWindow(window, p []byte) []byte {
	if len(window)+len(p) > cap(window) {
		keep := window[max(0, len(window)-windowSize):]
		window = window[:copy(window[:cap(window)], keep)]
	}
	return append(window, p...)
}

// An inputReader reads what is fed to an inflater.
type inputReader struct {
	i     *inflater
	yield func(struct{}) bool
}

func (r *inputReader) Read(p []byte) (int, error) {
	for len(r.i.input) == 0 {
		if !r.yield(struct{}{}) {
			return 0, errStopped
		}
		if r.i.fresh {
			r.i.fresh = false
			return 0, errReset
		}
	}
	n := copy(p, r.i.input)
	r.i.input = r.i.input[n:]
	return n, nil
}
