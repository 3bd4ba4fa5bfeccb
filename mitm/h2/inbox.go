package h2

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2/hpack"
)

const (
	// maxInbox is the largest number of bytes buffered for one stream if a sender ignores its
	// flow-control window: 64 MiB.
	maxInbox = 64 << 20

	// maxWaiting is how many bytes may wait in all inboxes of a connection before its window is no longer granted
	// back at once.
	maxWaiting = 16 << 20
)

// errInboxFull means that a sender ignores its flow-control window, so that more than maxInbox bytes of a stream are
// buffered.
var errInboxFull = errors.New("the peer sent more bytes than the flow-control window allows")

// An inbox buffers the arriving bytes of a body that rules may change.
type inbox struct {
	// waiting counts the bytes in the inboxes of all streams of the connection; it is shared by them.
	waiting *atomic.Int64
	// stream is the number of the HTTP/2 stream.
	stream uint32
	// from writes window updates to the side that sends the body.
	from *sender

	// hurry is done when frames may no longer be held or delayed by a rule, because the sender has reset the stream
	// or everything was forwarded.
	hurry context.Context
	// hurryUp ends hurry.
	hurryUp context.CancelFunc

	// mu guards the fields below.
	mu sync.Mutex
	// arrived is signalled when data has arrived or the body has ended.
	arrived sync.Cond
	// data are the bytes that have arrived and were not read yet.
	data []byte
	// received is the total number of body bytes that have arrived.
	received int64
	// owed is the number of bytes in data that were not yet granted back to the sender as connection window; that
	// happens when they are read.
	owed int
	// ended means that the body is complete.
	ended bool
	// err is the error that Read returns, after the data unless it is net.ErrClosed; nil if there is none.
	err error
	// trailers are the trailers of the body; empty if there are none.
	trailers []hpack.HeaderField

	// done is closed when nothing is forwarded from this inbox any more.
	done chan struct{}
}

// newInbox returns an empty inbox for a stream. waiting counts the bytes of all inboxes of the connection, and from
// writes window updates to the side that sends the body.
func newInbox(ctx context.Context, waiting *atomic.Int64, stream uint32, from *sender) *inbox {
	b := &inbox{waiting: waiting, stream: stream, from: from, done: make(chan struct{})}
	b.arrived.L = &b.mu
	b.hurry, b.hurryUp = context.WithCancel(ctx)
	return b
}

// push appends body bytes that have arrived, and grants them back as flow-control window. padding is the number of
// padding bytes of the frame, which only count for the windows.
func (b *inbox) push(data []byte, padding int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(data) + padding
	if b.ended || b.err != nil {
		b.from.grant(0, n, 0)
		return
	}
	b.data = append(b.data, data...)
	b.received += int64(len(data))
	granted := padding
	if b.waiting.Add(int64(len(data))) <= maxWaiting {
		granted = n
	} else {
		b.owed += len(data)
	}
	b.from.grant(b.stream, granted, padding)
	if len(b.data) > maxInbox {
		b.err = errInboxFull
	}
	b.arrived.Broadcast()
}

// end marks the end of the body. trailers are its trailers, if any. err is nil or the error that Read returns behind
// the data.
func (b *inbox) end(trailers []hpack.HeaderField, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.err != nil {
		return
	}
	b.ended, b.err, b.trailers = err == nil, err, trailers
	b.arrived.Broadcast()
}

// discard drops the bytes that were not read yet, and makes Read fail with net.ErrClosed.
func (b *inbox) discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Add(-int64(len(b.data)))
	b.from.grant(0, b.owed, 0)
	b.data, b.owed = nil, 0
	if b.err == nil {
		b.err = net.ErrClosed
	}
	b.arrived.Broadcast()
}

// Read returns bytes as soon as there are some, and grants their number to the sender as flow-control
// window.
func (b *inbox) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.data) == 0 && !b.ended && b.err == nil {
		b.arrived.Wait()
	}
	if len(b.data) == 0 || errors.Is(b.err, net.ErrClosed) {
		if b.err != nil {
			return 0, b.err
		}
		return 0, io.EOF
	}
	n := copy(p, b.data)
	if b.data = b.data[n:]; len(b.data) == 0 {
		b.data = nil
	}
	b.waiting.Add(-int64(n))
	owed := min(b.owed, n)
	b.owed -= owed
	if b.ended {
		// The sender needs no more window for the stream.
		b.from.grant(0, owed, 0)
	} else {
		b.from.grant(b.stream, owed, n)
	}
	return n, nil
}
