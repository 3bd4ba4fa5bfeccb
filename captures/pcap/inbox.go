package pcap

import (
	"io"
	"time"
)

// An inbox buffers the bytes of one direction, with their times of arrival, until a protocol parser reads them.
//
// Limits: its size counts against the import's budget; see session.feed.
type inbox struct {
	// buf contains the bytes that were not discarded yet; those before index start were read already.
	buf []byte
	// start is the index of the first unread byte in buf.
	start int
	// offset is the position of the first unread byte in the whole byte stream of the direction.
	offset int64
	// arrivals contains the arrival times of the bytes in buf, in order.
	arrivals []arrival
	// discardedArrivals is the number of entries at the beginning of arrivals whose bytes were read completely.
	discardedArrivals int

	// budget limits the memory of all inboxes together.
	budget *budget

	// closed means that the direction has ended, so no more bytes will be added.
	closed bool
	// ending describes how the direction ended; it is valid once closed is set.
	ending ending
}

// arrivalCost is the number of bytes of memory that each entry of inbox.arrivals counts against the budget.
const arrivalCost = 40

// An arrival says that the bytes of an inbox from the end of the previous arrival up to the offset end arrived
// at t.
type arrival struct {
	// end is the offset, in the byte stream of the direction, after the last byte that arrived.
	end int64
	// t is the time at which the bytes arrived.
	t time.Time
}

// An ending describes how one direction of a TCP connection ended.
type ending struct {
	// t is the time at which the direction ended.
	t time.Time
	// reset means that the direction ended with an RST.
	reset bool

	// missing is the reason why bytes after the end may be missing, such as an undecodable part; "" after a
	// clean end.
	missing string
}

// len returns the number of unread bytes.
func (in *inbox) len() int { return len(in.buf) - in.start }

// bytes returns the unread bytes; they stay in the inbox until discard.
func (in *inbox) bytes() []byte { return in.buf[in.start:] }

// append adds bytes that arrived at time t.
func (in *inbox) append(t time.Time, p []byte) {
	if in.start == len(in.buf) {
		in.buf, in.start = in.buf[:0], 0
	} else if len(in.buf)+len(p) > cap(in.buf) && in.start > len(in.buf)/2 {
		n := copy(in.buf, in.buf[in.start:])
		in.buf, in.start = in.buf[:n], 0
	}
	in.buf = append(in.buf, p...)
	in.budget.reserve(int64(len(p)))
	end := in.offset + int64(in.len())

	// Segments with the same time share an arrival.
	if n := len(in.arrivals); n > in.discardedArrivals && in.arrivals[n-1].t.Equal(t) {
		in.arrivals[n-1].end = end
		return
	}
	in.arrivals = append(in.arrivals, arrival{end, t})
	in.budget.reserve(arrivalCost)
}

// time returns the arrival time of the n-th unread byte, from 1.
func (in *inbox) time(n int) time.Time {
	for i := in.discardedArrivals; i < len(in.arrivals); i++ {
		if in.arrivals[i].end >= in.offset+int64(n) {
			return in.arrivals[i].t
		}
	}
	return in.ending.t
}

// firstRun returns the arrival time of the first unread byte, and how many of the first n bytes arrived together
// with it.
func (in *inbox) firstRun(n int) (time.Time, int) {
	if in.discardedArrivals == len(in.arrivals) {
		return in.ending.t, n
	}
	m := in.arrivals[in.discardedArrivals]
	return m.t, int(min(int64(n), m.end-in.offset))
}

// discard removes the first n bytes from the buffer.
func (in *inbox) discard(n int) {
	in.start += n
	in.offset += int64(n)
	in.budget.release(int64(n))
	for in.discardedArrivals < len(in.arrivals) && in.arrivals[in.discardedArrivals].end <= in.offset {
		in.discardedArrivals++
		in.budget.release(arrivalCost)
	}
	switch {
	case in.discardedArrivals == len(in.arrivals):
		in.arrivals, in.discardedArrivals = in.arrivals[:0], 0
	case in.discardedArrivals > len(in.arrivals)/2:
		in.arrivals, in.discardedArrivals = append(in.arrivals[:0], in.arrivals[in.discardedArrivals:]...), 0
	}
	if in.len() == 0 && cap(in.buf) > 1<<16 {
		// Do not keep a large buffer after one long message.
		in.buf, in.start = nil, 0
	}
}

// skip discards all unread bytes, and advances the offset by n bytes that were not captured.
func (in *inbox) skip(n int64) {
	in.discard(in.len())
	in.offset += n
}

// size returns the number of bytes of memory that the inbox counts against the import's budget.
func (in *inbox) size() int { return in.len() + arrivalCost*(len(in.arrivals)-in.discardedArrivals) }

// clear empties the buffer and frees its memory.
func (in *inbox) clear() {
	in.discard(in.len())
	in.buf, in.start, in.arrivals, in.discardedArrivals = nil, 0, nil, 0
}

// Read implements io.Reader for http2.Framer. It returns io.ErrUnexpectedEOF if the inbox is empty, which does
// not happen for complete frames.
func (in *inbox) Read(p []byte) (int, error) {
	n := copy(p, in.bytes())
	if n == 0 && len(p) > 0 {
		return 0, io.ErrUnexpectedEOF
	}
	in.discard(n)
	return n, nil
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
