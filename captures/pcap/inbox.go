package pcap

import (
	"io"
	"time"
)

// An inbox holds the bytes of one direction that the layer above has not
// taken yet, with the times at which they came.
//
// Limits: what one holds counts against the import's budget; see session.feed.
type inbox struct {
	buf            []byte
	start          int   // of what is left in buf
	offset         int64 // in the direction's bytes, of what is left
	marks          []mark
	discardedMarks int     // marks that no longer count
	budget         *budget // of the import

	closed bool // nothing more comes
	ending ending
}

const markCost = 40 // bytes that a mark counts for

// A mark says when the bytes before an offset came, back to the mark before it.
type mark struct {
	end int64
	t   time.Time
}

// An ending says how a direction ended.
type ending struct {
	t     time.Time
	reset bool // by a RST

	// missing says why more cannot be read although there may be more. It is empty
	// after a clean end.
	missing string
}

func (in *inbox) len() int { return len(in.buf) - in.start }

// bytes returns what is left.
func (in *inbox) bytes() []byte { return in.buf[in.start:] }

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
	if n := len(in.marks); n > in.discardedMarks && in.marks[n-1].t.Equal(t) {
		in.marks[n-1].end = end
		return
	}
	in.marks = append(in.marks, mark{end, t})
	in.budget.reserve(markCost)
}

// time returns when the n-th byte that is left came, counted from 1.
func (in *inbox) time(n int) time.Time {
	for i := in.discardedMarks; i < len(in.marks); i++ {
		if in.marks[i].end >= in.offset+int64(n) {
			return in.marks[i].t
		}
	}
	return in.ending.t
}

// firstRun returns the time of the first byte that is left, and how many of the
// first n came at that time.
func (in *inbox) firstRun(n int) (time.Time, int) {
	if in.discardedMarks == len(in.marks) {
		return in.ending.t, n
	}
	m := in.marks[in.discardedMarks]
	return m.t, int(min(int64(n), m.end-in.offset))
}

// discard removes n bytes.
func (in *inbox) discard(n int) {
	in.start += n
	in.offset += int64(n)
	in.budget.release(int64(n))
	for in.discardedMarks < len(in.marks) && in.marks[in.discardedMarks].end <= in.offset {
		in.discardedMarks++
		in.budget.release(markCost)
	}
	switch {
	case in.discardedMarks == len(in.marks):
		in.marks, in.discardedMarks = in.marks[:0], 0
	case in.discardedMarks > len(in.marks)/2:
		in.marks, in.discardedMarks = append(in.marks[:0], in.marks[in.discardedMarks:]...), 0
	}
	if in.len() == 0 && cap(in.buf) > 1<<16 {
		in.buf, in.start = nil, 0 // one long message does not keep its room
	}
}

// skip passes over what is left and n bytes that are missing.
func (in *inbox) skip(n int64) {
	in.discard(in.len())
	in.offset += n
}

// size is the number of bytes by which the inbox counts against the import's budget.
func (in *inbox) size() int { return in.len() + markCost*(len(in.marks)-in.discardedMarks) }

// clear forgets what is left.
func (in *inbox) clear() {
	in.discard(in.len())
	in.buf, in.start, in.marks, in.discardedMarks = nil, 0, nil, 0
}

// Read reads bytes for http2.Framer. At the end of the inbox it returns
// io.ErrUnexpectedEOF, as only whole frames are read.
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
