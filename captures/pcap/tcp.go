package pcap

import (
	"cmp"
	"slices"
	"time"

	"unwire/captures/pcap/packet"
)

const (
	// maxQueued limits the bytes of a direction that wait for a missing TCP segment.
	maxQueued = 4 << 20

	// segmentCost is the assumed memory overhead of a queued segment, in bytes.
	segmentCost = 128

	// maxBuffered limits the buffered bytes of all connections together.
	maxBuffered = 64 << 20

	// reservedForOthers is the part of the budget, in bytes, that connections waiting for keys may not use.
	reservedForOthers = maxBuffered / 2
)

// A gap is a range of bytes of one TCP direction that was not captured: its offset in the stream and its
// length.
type gap struct {
	// offset is the position of the first missing byte in the stream of the direction.
	offset int64
	// length is the number of missing bytes.
	length int64
}

// A tcpStream reassembles one direction of a TCP connection: it orders segments and delivers each byte once. If
// segments overlap, the first copy of a byte counts.
//
// It replaces gopacket's reassembly, which panics if asked for the time of a queued segment of more than 1,900
// bytes, and loses a FIN that arrives early.
type tcpStream struct {
	// out receives the bytes of the stream in order.
	out receiver
	// budget limits the bytes that all connections of the import buffer together.
	budget *budget

	// baseKnown means that base, the sequence number of the stream's first byte, is certain.
	baseKnown bool
	// baseAssumed means that base was derived from the first captured segment and may be corrected by a SYN.
	baseAssumed bool
	// base is the TCP sequence number of the byte at offset 0.
	base uint32
	// next is the stream offset of the next byte in order.
	next int64
	// queue are segments that arrived early, ordered by offset.
	queue []queuedSegment
	// queueCost is the approximate memory of the queued segments, in bytes, which counts against budget.
	queueCost int64

	// fin is the stream offset after the last byte; it is valid if hasFIN is set.
	fin int64
	// hasFIN means that the end of the stream is known, from a FIN or RST.
	hasFIN bool
	// finTime is the time of the FIN or RST; zero before it was captured.
	finTime time.Time
	// reset means that the stream ends with an RST.
	reset bool
	// ended means that the receiver of the bytes was informed of the stream's end.
	ended bool
	// last is the time of the last delivered byte; time never decreases.
	last time.Time
}

// A queuedSegment is a TCP segment that arrived before its predecessors.
type queuedSegment struct {
	// offset is the position of data in the stream.
	offset int64
	// data is the payload of the segment.
	data []byte
	// t is the time at which the segment was captured.
	t time.Time
}

// A receiver receives the reassembled bytes of one TCP direction in order.
type receiver interface {
	// data is called with the next bytes, gap with a range of bytes that was not captured, and end once after
	// the last byte; reset means that the direction ended with an RST.
	data(t time.Time, p []byte)
	gap(g gap)
	end(t time.Time, reset bool)
}

// addSegment adds a captured TCP segment, and delivers all bytes that are now in order.
func (h *tcpStream) addSegment(s *packet.Segment) {
	if h.ended {
		return
	}
	seq := s.Seq
	if s.SYN {
		seq++
		h.setBase(seq)
	}
	if !h.baseKnown && !h.baseAssumed {
		// Assume this until a SYN shows the true beginning.
		h.baseAssumed, h.base = true, seq
	}

	// Sequence numbers wrap around: take the offset that is closest to the next byte.
	offset := h.next + int64(int32(seq-(h.base+uint32(h.next))))
	if (s.FIN || s.RST) && !h.hasFIN && (s.FIN || h.baseKnown) {
		h.hasFIN, h.fin, h.reset, h.finTime = true, offset+int64(len(s.Data)), s.RST, s.Time
	}
	switch {
	case len(s.Data) == 0:
	case h.baseKnown && offset <= h.next:
		h.deliver(offset, s.Data, s.Time)
		h.drainQueue()
	default:
		h.queueSegment(offset, s)
	}
	h.finish(s.Time)
}

// findQueued searches the queue for a segment at a stream offset. It returns its index, or the index at which
// to insert one, and whether it was found.
func (h *tcpStream) findQueued(offset int64) (int, bool) {
	return slices.BinarySearchFunc(h.queue, offset, func(w queuedSegment, o int64) int { return cmp.Compare(w.offset, o) })
}

// setBase sets the sequence number of the stream's first byte, and corrects the offsets of queued segments.
func (h *tcpStream) setBase(first uint32) {
	if h.baseKnown {
		return
	}
	h.baseKnown = true
	shift := int64(int32(h.base - first))
	for i := range h.queue {
		h.queue[i].offset += shift
	}
	if h.hasFIN {
		h.fin += shift
	}
	h.base = first
	h.drainQueue()
}

// queueSegment queues a copy of a segment that is not next in order. If the queue is full, it gives up on the
// missing bytes before the first queued segment.
func (h *tcpStream) queueSegment(offset int64, s *packet.Segment) {
	i, found := h.findQueued(offset)
	if found && len(h.queue[i].data) >= len(s.Data) {
		return
	}

	// If the queue is full, give up the first gap.
	cost := int64(len(s.Data)) + segmentCost
	for h.queueCost > 0 && (h.queueCost+cost > maxQueued || !h.budget.fits(cost)) {
		h.skipGap(s.Time)
		if h.ended {
			return
		}
	}
	if h.baseKnown && offset <= h.next {
		h.deliver(offset, s.Data, s.Time)
		h.drainQueue()
		return
	}
	if i, found = h.findQueued(offset); found {
		// A longer segment at the same offset comes second: only its additional bytes are used.
		i++
	}
	h.budget.reserve(cost)
	h.queueCost += cost
	h.queue = slices.Insert(h.queue, i, queuedSegment{offset, slices.Clone(s.Data), s.Time})
}

// deliver passes those bytes of p to the receiver that were not delivered yet. offset is the position of p in
// the stream, and t its time of capture.
func (h *tcpStream) deliver(offset int64, p []byte, t time.Time) {
	if skip := h.next - offset; skip > 0 {
		if skip >= int64(len(p)) {
			return
		}
		p = p[skip:]
	}
	if h.hasFIN && h.next+int64(len(p)) > h.fin {
		// Bytes after the end are ignored.
		p = p[:max(0, h.fin-h.next)]
		if len(p) == 0 {
			return
		}
	}
	h.next += int64(len(p))
	h.out.data(h.monotonic(t), p)
}

// monotonic returns t, or the time of the last delivered byte if that is later.
func (h *tcpStream) monotonic(t time.Time) time.Time {
	if t.After(h.last) {
		h.last = t
	}
	return h.last
}

// drainQueue delivers queued segments that are next in order.
func (h *tcpStream) drainQueue() {
	n := 0
	for n < len(h.queue) && h.queue[n].offset <= h.next {
		w := h.queue[n]
		h.dropQueued(w)
		h.deliver(w.offset, w.data, w.t)
		n++
	}
	h.queue = slices.Delete(h.queue, 0, n)
	if len(h.queue) == 0 {
		h.queue = nil
	}
}

// dropQueued returns the memory of a queued segment to the budget.
func (h *tcpStream) dropQueued(w queuedSegment) {
	cost := int64(len(w.data)) + segmentCost
	h.queueCost -= cost
	h.budget.release(cost)
}

// skipGap gives up on the missing bytes before the first queued segment, reports them, and continues after
// them. t is the current time.
func (h *tcpStream) skipGap(t time.Time) {
	if len(h.queue) == 0 {
		return
	}
	first := h.queue[0]
	if !h.baseKnown {
		// The beginning was not captured: the stream begins here.
		h.setBase(h.base + uint32(first.offset))
		h.finish(t)
		return
	}
	g := gap{h.next, first.offset - h.next}
	h.next = first.offset
	h.out.gap(g)
	h.drainQueue()
	h.finish(t)
}

// finish ends the direction if its last byte was delivered. t is the current time.
func (h *tcpStream) finish(t time.Time) {
	if !h.ended && h.hasFIN && h.baseKnown && h.next >= h.fin {
		h.ended = true
		h.clearQueue()
		h.out.end(h.monotonic(t), h.reset)
	}
}

// flush delivers all queued segments and reports the gaps between them, because nothing more will arrive.
func (h *tcpStream) flush(t time.Time) {
	for len(h.queue) > 0 && !h.ended {
		h.skipGap(t)
	}

	// The bytes before the FIN were not captured either.
	if !h.ended && h.hasFIN && h.baseKnown && h.fin > h.next {
		g := gap{h.next, h.fin - h.next}
		h.next = h.fin
		h.out.gap(g)
		h.finish(t)
	}
}

// clearQueue discards all queued segments.
func (h *tcpStream) clearQueue() {
	for _, w := range h.queue {
		h.dropQueued(w)
	}
	h.queue = nil
}

// A budget limits the bytes that all connections of an import buffer together.
type budget struct {
	// available is the number of bytes that may still be buffered.
	available int64
}

// fits reports whether n more bytes may be buffered.
func (b *budget) fits(n int64) bool { return b.available >= n }

// reserve counts n more bytes as buffered.
func (b *budget) reserve(n int64) { b.available -= n }

// release counts n bytes as no longer buffered.
func (b *budget) release(n int64) { b.available += n }
