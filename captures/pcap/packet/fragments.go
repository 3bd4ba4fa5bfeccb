package packet

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const (
	// maxDatagram is the largest IP payload, in bytes.
	maxDatagram = 65535
	// maxDatagrams limits the number of incomplete IP packets that wait for further fragments.
	maxDatagrams = 1024
	// maxFragmentBytes limits the bytes of all waiting fragments.
	maxFragmentBytes = 16 << 20
	// maxFragments is the largest number of fragments of one IP packet.
	maxFragments = 8192
	// fragmentTimeout is how long an incomplete IP packet waits for further fragments, in the time of the
	// capture.
	fragmentTimeout = 30 * time.Second
)

// A datagramKey identifies the IP packet to which a fragment belongs.
type datagramKey struct {
	// src is the IP address of the sender.
	src netip.Addr
	// dst is the IP address of the receiver.
	dst netip.Addr
	// id is the identification that all fragments of the packet share.
	id uint32
	// protocol is the IP protocol number of the payload, such as 6 for TCP.
	protocol uint8
}

// A fragment is one IP fragment of a packet.
type fragment struct {
	// key identifies the IP packet to which the fragment belongs.
	key datagramKey

	// offset is the position of data in the payload of the whole packet, in bytes.
	offset int
	// more means that further fragments of the packet follow this one.
	more bool
	// data is the fragment's payload, valid only until the next packet is read.
	data []byte
	// t is the time at which the fragment was captured.
	t time.Time
}

// A defragmenter reassembles fragmented IP packets.
//
// It replaces gopacket's ip4defrag, which supports only IPv4, keeps its input without a copy, and has no limit
// on all packets together.
//
// Limits: at most 1,024 incomplete packets with 16 MiB wait, each for up to 30 seconds of capture time; the
// oldest one is dropped first. If fragments overlap, the first copy of a byte counts.
type defragmenter struct {
	// waiting are the incomplete packets.
	waiting map[datagramKey]*datagram
	// bytes is the total size of the incomplete packets in memory.
	bytes int
	// dropped counts the fragments of packets that were dropped.
	dropped int64
}

// A datagram is an IP packet that is being reassembled from fragments.
type datagram struct {
	// parts are the received fragments, ordered by offset and without overlap.
	parts []fragmentData
	// bytes is the total size of the received fragments.
	bytes int
	// total is the size of the complete payload in bytes; -1 until the last fragment is read.
	total int
	// seen is the number of fragments received so far.
	seen int64
	// since is the time at which the first fragment was captured.
	since time.Time
}

// A fragmentData is a run of received payload bytes, at an offset in the payload.
type fragmentData struct {
	// offset is the position of the bytes in the payload of the whole packet.
	offset int
	// data is a run of received payload bytes.
	data []byte
}

// addFragment adds a fragment. If it completes its IP packet, addFragment returns the whole payload and true.
func (d *defragmenter) addFragment(f fragment) (payload []byte, whole bool) {
	if f.offset+len(f.data) > maxDatagram || f.more && len(f.data)%8 != 0 {
		d.dropped++
		return nil, false
	}
	if d.waiting == nil {
		d.waiting = map[datagramKey]*datagram{}
	}
	g := d.waiting[f.key]
	if g != nil && f.t.Sub(g.since) > fragmentTimeout {
		d.dropDatagram(f.key)
		g = nil
	}

	// Make room for a new packet.
	if g == nil {
		for len(d.waiting) >= maxDatagrams || d.bytes+len(f.data) > maxFragmentBytes {
			if !d.dropOldest() {
				break
			}
		}
		g = &datagram{total: -1, since: f.t}
		d.waiting[f.key] = g
	}
	if g.seen++; g.seen > maxFragments {
		d.dropDatagram(f.key)
		return nil, false
	}
	if !f.more {
		g.total = f.offset + len(f.data)
	}
	before := g.bytes
	g.addPart(f.offset, f.data)
	d.bytes += g.bytes - before
	if g.total < 0 || g.bytes < g.total {
		return nil, false
	}

	// All bytes should be there now.
	payload = make([]byte, 0, g.total)
	for _, p := range g.parts {
		if p.offset == len(payload) && len(payload)+len(p.data) <= g.total {
			payload = append(payload, p.data...)
		}
	}
	// The fragments contradict each other.
	if len(payload) < g.total {
		d.dropDatagram(f.key)
		return nil, false
	}
	delete(d.waiting, f.key)
	d.bytes -= g.bytes
	return payload, true
}

// addPart stores those bytes of p, which belong at offset, that no earlier fragment contained.
func (g *datagram) addPart(offset int, p []byte) {
	for len(p) > 0 {
		i, found := slices.BinarySearchFunc(g.parts, offset, func(a fragmentData, o int) int { return cmp.Compare(a.offset, o) })
		if !found && i > 0 {
			i--
		}
		if i < len(g.parts) && g.parts[i].offset <= offset {
			if have := g.parts[i].offset + len(g.parts[i].data) - offset; have > 0 {
				n := min(have, len(p))
				offset, p = offset+n, p[n:]
				continue
			}
			i++
		}
		n := len(p)
		if i < len(g.parts) {
			n = min(n, g.parts[i].offset-offset)
		}
		g.parts = slices.Insert(g.parts, i, fragmentData{offset, slices.Clone(p[:n])})
		g.bytes += n
		offset, p = offset+n, p[n:]
	}
}

// dropDatagram removes an incomplete packet and counts its fragments as dropped.
func (d *defragmenter) dropDatagram(key datagramKey) {
	g := d.waiting[key]
	d.bytes -= g.bytes
	d.dropped += g.seen
	delete(d.waiting, key)
}

// dropOldest drops the incomplete packet that has waited longest. It returns false if there is none.
func (d *defragmenter) dropOldest() bool {
	var oldest datagramKey
	var since time.Time
	for key, g := range d.waiting {
		if since.IsZero() || g.since.Before(since) {
			oldest, since = key, g.since
		}
	}
	if len(d.waiting) == 0 {
		return false
	}
	d.dropDatagram(oldest)
	return true
}

// incomplete returns the number of fragments of packets that were dropped or still wait for further fragments.
func (d *defragmenter) incomplete() int64 {
	n := d.dropped
	for _, g := range d.waiting {
		n += g.seen
	}
	return n
}
