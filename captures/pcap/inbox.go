package pcap

import (
	"io"
	"time"
)

// An inbox buffers the bytes of one direction until the next protocol layer reads them, with their
// times of arrival.
//
// Limits: its size counts against the import's budget; see session.feed.
type inbox struct {
	buf []byte
	// start is the index of the first unread byte in buf.
	start int
	// offset is the position of that byte in the direction's bytes.
	offset int64
	// arrivals has the arrival times of the bytes in buf.
	arrivals []arrival
	// discardedArrivals is the number of entries in arrivals whose bytes were read completely.
	discardedArrivals int
	budget            *budget

	// closed means that the direction has ended and no more bytes will be added.
	closed bool
	ending ending
}

// arrivalCost is the memory that an arrival counts for, in bytes.
const arrivalCost = 40

// An arrival is the time at which the bytes before an offset arrived, back to the previous arrival.
type arrival struct {
	end int64
	t   time.Time
}

// An ending describes how one direction of a TCP connection ended.
type ending struct {
	t time.Time
	// reset means that the direction ended with an RST.
	reset bool

	// missing is the reason why more bytes may exist that cannot be read; "" after a clean end.
	missing string
}

func (in *inbox) len() int { return len(in.buf) - in.start }

// bytes returns the buffered bytes that were not read yet.
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

// skip discards all unread bytes, and n bytes that are missing.
func (in *inbox) skip(n int64) {
	in.discard(in.len())
	in.offset += n
}

// size returns the number of bytes that count against the import's budget.
func (in *inbox) size() int { return in.len() + arrivalCost*(len(in.arrivals)-in.discardedArrivals) }

// clear empties the buffer and frees its memory.
func (in *inbox) clear() {
	in.discard(in.len())
	in.buf, in.start, in.arrivals, in.discardedArrivals = nil, 0, nil, 0
}

// Read implements io.Reader for http2.Framer. When the inbox is empty, it returns io.ErrUnexpectedEOF, because
// the framer is called only for complete frames.
func (in *inbox) Read(p []byte) (int, error) {
	n := copy(p, in.bytes())
	if n == 0 && len(p) > 0 {
		return 0, io.ErrUnexpectedEOF
	}
	in.discard(n)
	return n, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
