package packet

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const (
	maxDatagram   = 65535
	maxDatagrams  = 1024     // that wait for fragments at once
	maxFragBytes  = 16 << 20 // of all fragments that wait
	maxFragments  = 8192     // of a datagram
	fragmentsTime = 30 * time.Second
)

// A datagramKey says which fragments belong together.
type datagramKey struct {
	src, dst netip.Addr
	id       uint32
	protocol uint8
}

// A fragment is a part of an IP packet's payload.
type fragment struct {
	key    datagramKey
	offset int
	more   bool
	data   []byte // valid until the next packet is read
	t      time.Time
}

// A defragmenter puts IP packets together.
//
// gopacket's ip4defrag is not used here: it is for IPv4 only, keeps what it is
// given without a copy, and has no bound on all datagrams together.
//
// Limits: 1,024 datagrams and 16 MiB wait, each for 30 seconds of the capture;
// the one that waits the longest is dropped first. Where fragments overlap, the
// first copy of a byte counts.
type defragmenter struct {
	waiting map[datagramKey]*datagram
	bytes   int
	lost    int64 // fragments of datagrams that were dropped
}

// A datagram is a packet of which fragments were seen.
type datagram struct {
	parts []part // by offset, apart from each other
	bytes int    // of parts
	total int    // -1: the last fragment was not seen
	seen  int64  // fragments
	since time.Time
}

type part struct {
	offset int
	data   []byte
}

// addFragment adds a fragment and returns the payload that it completes.
func (d *defragmenter) addFragment(f fragment) (payload []byte, whole bool) {
	if f.offset+len(f.data) > maxDatagram || f.more && len(f.data)%8 != 0 {
		d.lost++
		return nil, false
	}
	if d.waiting == nil {
		d.waiting = map[datagramKey]*datagram{}
	}
	g := d.waiting[f.key]
	if g != nil && f.t.Sub(g.since) > fragmentsTime {
		d.dropDatagram(f.key)
		g = nil
	}
	if g == nil {
		for len(d.waiting) >= maxDatagrams || d.bytes+len(f.data) > maxFragBytes {
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
	payload = make([]byte, 0, g.total)
	for _, p := range g.parts {
		if p.offset == len(payload) && len(payload)+len(p.data) <= g.total {
			payload = append(payload, p.data...)
		}
	}
	if len(payload) < g.total { // its fragments contradict each other
		d.dropDatagram(f.key)
		return nil, false
	}
	delete(d.waiting, f.key)
	d.bytes -= g.bytes
	return payload, true
}

// addPart keeps what is new of a fragment.
func (g *datagram) addPart(offset int, p []byte) {
	for len(p) > 0 {
		i, found := slices.BinarySearchFunc(g.parts, offset, func(a part, o int) int { return cmp.Compare(a.offset, o) })
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
		g.parts = slices.Insert(g.parts, i, part{offset, slices.Clone(p[:n])})
		g.bytes += n
		offset, p = offset+n, p[n:]
	}
}

func (d *defragmenter) dropDatagram(key datagramKey) {
	g := d.waiting[key]
	d.bytes -= g.bytes
	d.lost += g.seen
	delete(d.waiting, key)
}

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

// incomplete counts the fragments of datagrams that were dropped or still wait.
func (d *defragmenter) incomplete() int64 {
	n := d.lost
	for _, g := range d.waiting {
		n += g.seen
	}
	return n
}
