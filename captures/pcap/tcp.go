package pcap

import (
	"cmp"
	"slices"
	"time"

	"unwire/captures/pcap/packet"
)

const (
	// maxQueued limits the bytes of a direction that wait for a missing segment.
	maxQueued = 4 << 20

	// segmentCost is what a queued segment counts for in addition to its bytes.
	segmentCost = 128

	// maxBuffered limits the bytes that are kept in all connections.
	maxBuffered = 64 << 20

	// keptForOthers is the share of the budget that connections without keys leave alone,
	// in bytes.
	keptForOthers = maxBuffered / 2
)

// A gap is a run of bytes of one direction that the capture does not have.
type gap struct{ offset, length int64 }

// A half is one direction of a TCP connection. It puts segments into order and
// hands their bytes on, each byte once; the first copy of a byte counts.
//
// gopacket's reassembly is not used here: it panics when asked for the time of
// a queued segment of more than 1,900 bytes, and forgets a FIN that comes too early.
type half struct {
	out    receiver
	budget *budget

	based     bool   // base is known
	assumed   bool   // base is that of any segment, until it is known
	base      uint32 // sequence number of the byte at offset 0
	next      int64  // offset of the byte that is waited for
	queue     []queuedSegment
	queueCost int64 // cost of ahead

	fin     int64 // offset behind the last byte, once hasFIN
	hasFIN  bool
	finTime time.Time
	reset   bool // what ends it is a RST
	ended   bool
	last    time.Time // no byte is handed on with an earlier time
}

// A queuedSegment is a segment that came too early.
type queuedSegment struct {
	offset int64
	data   []byte
	t      time.Time
}

// A receiver takes the bytes of one direction in order.
type receiver interface {
	data(t time.Time, p []byte)
	gap(g gap)
	end(t time.Time, reset bool)
}

// addSegment adds a segment of the direction.
func (h *half) addSegment(s *packet.Segment) {
	if h.ended {
		return
	}
	seq := s.Seq
	if s.SYN {
		seq++
		h.rebase(seq)
	}
	if !h.based && !h.assumed {
		h.assumed, h.base = true, seq // until a SYN tells, or nothing tells
	}
	offset := h.next + int64(int32(seq-(h.base+uint32(h.next))))
	if (s.FIN || s.RST) && !h.hasFIN && (s.FIN || h.based) {
		h.hasFIN, h.fin, h.reset, h.finTime = true, offset+int64(len(s.Data)), s.RST, s.Time
	}
	switch {
	case len(s.Data) == 0:
	case h.based && offset <= h.next:
		h.deliver(offset, s.Data, s.Time)
		h.drainQueue()
	default:
		h.queueSegment(offset, s)
	}
	h.finish(s.Time)
}

// findQueued returns where a segment at offset waits, or would.
func (h *half) findQueued(offset int64) (int, bool) {
	return slices.BinarySearchFunc(h.queue, offset, func(w queuedSegment, o int64) int { return cmp.Compare(w.offset, o) })
}

// rebase tells where the stream begins. What waits already is counted from there.
func (h *half) rebase(first uint32) {
	if h.based {
		return
	}
	h.based = true
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

// queueSegment keeps a copy of a segment. If too much waits, what it waits for is given up.
func (h *half) queueSegment(offset int64, s *packet.Segment) {
	i, found := h.findQueued(offset)
	if found && len(h.queue[i].data) >= len(s.Data) {
		return
	}
	cost := int64(len(s.Data)) + segmentCost
	for h.queueCost > 0 && (h.queueCost+cost > maxQueued || !h.budget.fits(cost)) {
		h.skipGap(s.Time)
		if h.ended {
			return
		}
	}
	if h.based && offset <= h.next {
		h.deliver(offset, s.Data, s.Time)
		h.drainQueue()
		return
	}
	if i, found = h.findQueued(offset); found {
		i++ // a longer segment of the same place goes behind: its rest is taken
	}
	h.budget.reserve(cost)
	h.queueCost += cost
	h.queue = slices.Insert(h.queue, i, queuedSegment{offset, slices.Clone(s.Data), s.Time})
}

// deliver hands on what of a segment is new.
func (h *half) deliver(offset int64, p []byte, t time.Time) {
	if skip := h.next - offset; skip > 0 {
		if skip >= int64(len(p)) {
			return
		}
		p = p[skip:]
	}
	if h.hasFIN && h.next+int64(len(p)) > h.fin {
		p = p[:max(0, h.fin-h.next)] // after its end nothing counts
		if len(p) == 0 {
			return
		}
	}
	h.next += int64(len(p))
	h.out.data(h.at(t), p)
}

// at returns t, or the time of what was handed on before if that is later.
func (h *half) at(t time.Time) time.Time {
	if t.After(h.last) {
		h.last = t
	}
	return h.last
}

// drainQueue hands on what waits and is due.
func (h *half) drainQueue() {
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

func (h *half) dropQueued(w queuedSegment) {
	cost := int64(len(w.data)) + segmentCost
	h.queueCost -= cost
	h.budget.release(cost)
}

// skipGap gives up the bytes before the first segment that waits.
func (h *half) skipGap(t time.Time) {
	if len(h.queue) == 0 {
		return
	}
	first := h.queue[0]
	if !h.based {
		// The stream begins with what was captured of it.
		h.rebase(h.base + uint32(first.offset))
		h.finish(t)
		return
	}
	g := gap{h.next, first.offset - h.next}
	h.next = first.offset
	h.out.gap(g)
	h.drainQueue()
	h.finish(t)
}

// finish ends the direction when its last byte was handed on.
func (h *half) finish(t time.Time) {
	if !h.ended && h.hasFIN && h.based && h.next >= h.fin {
		h.ended = true
		h.clearQueue()
		h.out.end(h.at(t), h.reset)
	}
}

// flush hands on everything that waits, across gaps.
func (h *half) flush(t time.Time) {
	for len(h.queue) > 0 && !h.ended {
		h.skipGap(t)
	}
	if !h.ended && h.hasFIN && h.based && h.fin > h.next {
		g := gap{h.next, h.fin - h.next}
		h.next = h.fin
		h.out.gap(g)
		h.finish(t)
	}
}

// clearQueue forgets what waits.
func (h *half) clearQueue() {
	for _, w := range h.queue {
		h.dropQueued(w)
	}
	h.queue = nil
}

// A budget bounds the bytes that an import holds back in all its connections.
type budget struct{ left int64 }

func (b *budget) fits(n int64) bool { return b.left >= n }
func (b *budget) reserve(n int64)   { b.left -= n }
func (b *budget) release(n int64)   { b.left += n }
