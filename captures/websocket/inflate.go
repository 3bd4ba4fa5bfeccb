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

	// maxInflated limits a decompressed WebSocket message, in bytes. If all messages of a direction together
	// exceed minRatioSize bytes, they may have at most maxRatio times their size on the wire.
	maxInflated  = 64 << 20
	minRatioSize = 64 << 20
	maxRatio     = 256
)

// messageTail are the bytes that permessage-deflate removes from the end of each compressed message.
//
// Source: RFC 7692, section 7.2.1
var messageTail = []byte{0, 0, 0xff, 0xff}

// errStopped ends the inflater's coroutine; errReset makes it continue with an empty window.
var (
	errStopped = errors.New("stopped")
	errReset   = errors.New("reset")
)

// An inflater decompresses the WebSocket messages of one direction as far as their bytes have arrived. The
// decompressor reads from an io.Reader, so it runs as a coroutine that yields when it needs more bytes.
type inflater struct {
	// emit receives decompressed bytes, which are valid only during the call.
	emit func([]byte) error

	// input are the compressed bytes that the decompressor has not read yet.
	input []byte

	// resetWindow means that the next message is decompressed with an empty sliding window.
	resetWindow bool

	// resume continues the coroutine until it has read all of the input.
	resume func() (struct{}, bool)
	// stop ends the coroutine.
	stop func()

	// err is the error of the decompressor, after which it cannot continue.
	err error
}

// newInflater returns an inflater that passes decompressed bytes to emit.
func newInflater(emit func([]byte) error) *inflater {
	i := &inflater{emit: emit}
	i.resume, i.stop = iter.Pull(i.run)
	// Run up to the first read.
	_, _ = i.resume()
	return i
}

// feed decompresses the next bytes of a message, and passes the result to emit.
func (i *inflater) feed(p []byte) error {
	if len(p) == 0 || i.err != nil {
		return i.err
	}
	i.input = p
	if _, ok := i.resume(); !ok && i.err == nil {
		i.err = errStopped
	}
	return i.err
}

// reset makes the next message start with an empty sliding window (no context takeover).
func (i *inflater) reset() { i.resetWindow = true }

// run is the coroutine's function. It decompresses messages until stop is called or an error occurs, and calls
// yield when it needs more input.
func (i *inflater) run(yield func(struct{}) bool) {
	src := bufio.NewReaderSize(nil, 4<<10)
	from := &inputReader{i, yield}
	src.Reset(from)

	// The window is kept here, because flate needs it as a dictionary after a final block.
	window := make([]byte, 0, 2*windowSize)
	d := flate.NewReader(src)
	buf := make([]byte, windowSize)
	for {
		n, err := d.Read(buf)
		if err == errReset {
			src.Reset(from)
			window = window[:0]
			// Reset never fails.
			_ = d.(flate.Resetter).Reset(src, nil)
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
			// This was a final block. Later blocks may refer to the data before it.
			//
			// Source: RFC 7692, section 7.2.3.4
			_ = d.(flate.Resetter).Reset(src, window[max(0, len(window)-windowSize):])
		default:
			i.err = err
			return
		}
	}
}

// appendWindow appends decompressed bytes to the sliding window, and returns its last windowSize bytes.
func appendWindow(window, p []byte) []byte {
	if len(window)+len(p) > cap(window) {
		keep := window[max(0, len(window)-windowSize):]
		window = window[:copy(window[:cap(window)], keep)]
	}
	return append(window, p...)
}

// An inputReader is the io.Reader of the inflater's decompressor. If there is no input, Read yields from the
// coroutine.
type inputReader struct {
	// i is the inflater whose input is read.
	i *inflater
	// yield suspends the coroutine until there is more input; it returns false if the coroutine must end.
	yield func(struct{}) bool
}

// Read returns bytes of the inflater's input.
func (r *inputReader) Read(p []byte) (int, error) {
	for len(r.i.input) == 0 {
		if !r.yield(struct{}{}) {
			return 0, errStopped
		}
		if r.i.resetWindow {
			r.i.resetWindow = false
			return 0, errReset
		}
	}
	n := copy(p, r.i.input)
	r.i.input = r.i.input[n:]
	return n, nil
}
