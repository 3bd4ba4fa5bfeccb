// Package pcap turns packet captures (pcap and pcapng) into exchanges: it puts
// TCP streams together, opens TLS with the keys of a key log, and reads HTTP/1
// and HTTP/2 off them.
//
// What it cannot read it lists, connection by connection, with the reason and
// the place. What came before that place is kept.
package pcap

import (
	"cmp"
	"context"
	"io"
	"net/netip"
	"slices"
	"time"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

const (
	maxConns   = 4096     // that are read at once; the idlest quarter ends when there are more
	maxHeldAll = 64 << 20 // bytes held back in all connections
	sweepEvery = 4096     // packets between looks for connections that are over
	afterReset = 2 * time.Second
)

// Options say what to import into.
type Options struct {
	// Store gets the exchanges. What it holds already stays.
	Store *captures.Store
	// Keys open TLS. Those in the file's own secrets blocks are added to it.
	// Nil: only those.
	Keys *KeyLog
	// Source is what the exchanges say recorded them; "" is "import pcap" or
	// "import pcapng".
	Source string
	// Connection is called for each connection when it is over, in the order of
	// ends. Nil: nobody wants to know.
	Connection func(Connection)
}

// Import reads a capture file to its end and stores its exchanges. If r can
// seek, secrets blocks may follow the packets they open.
//
// Shape: an exchange has the times of the packets that completed its parts.
// Limits: a packet of 16 MiB; 4,096 connections at once; 4 MiB of a direction
// wait for a lost segment and 8 MiB for the other direction, 64 MiB in all;
// 1,024 IP packets wait for fragments. Memory does not grow with the file.
// Errors: of reading, with the place: what was read before it is stored and
// counted; and what stopped the recording. Source: RESEARCH.md#packets
func Import(ctx context.Context, r io.Reader, o Options) (Summary, error) {
	im := &importer{o: o, conns: map[pair]*conn{}, held: &budget{left: maxHeldAll}}
	if im.o.Keys == nil {
		im.o.Keys = new(KeyLog)
	}
	packets, err := packet.NewReader(r, im.o.Keys.addBlock)
	if err == nil {
		err = im.read(ctx, packets)
		im.sum.Skipped = packets.Skipped()
	}
	im.finishAll()
	im.sum.Keys = im.o.Keys.Len()
	if im.failed != nil {
		err = im.failed
	}
	if err == nil {
		err = o.Store.Err()
	}
	return im.sum, err
}

// A pair is the two ends of a connection, the lower one first.
type pair [2]netip.AddrPort

// An importer is one import.
type importer struct {
	o      Options
	sum    Summary
	conns  map[pair]*conn
	held   *budget
	source string
	failed error // recording
}

func (im *importer) read(ctx context.Context, packets *packet.Reader) error {
	im.source = cmp.Or(im.o.Source, "import "+packets.Format())
	for {
		t, s, err := packets.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		im.sum.Packets++
		if s != nil {
			im.segment(s)
		}
		if im.sum.Packets%sweepEvery == 0 {
			im.sweep(t)
			if err := cmp.Or(ctx.Err(), im.o.Store.Err()); err != nil {
				return err
			}
		}
		if im.failed != nil {
			return im.failed
		}
	}
}

func (im *importer) segment(s *packet.Segment) {
	key, side := pair{s.Src, s.Dst}, 0
	if s.Dst.Compare(s.Src) < 0 {
		key, side = pair{s.Dst, s.Src}, 1
	}
	c := im.conns[key]
	if c != nil && s.SYN && !s.ACK && (c.over || c.begun()) && (c.isn != s.Seq || c.clientSide != side) {
		im.finish(c) // the ports are used again
		c = nil
	}
	if c == nil {
		if !s.SYN && len(s.Data) == 0 {
			return // the rest of a connection of which nothing is to be had
		}
		c = im.connection(key, s.Time)
	}
	if c.over {
		return
	}
	c.addSegment(side, s)
	if c.over {
		im.ended(c)
	}
}

// begun reports whether the client's SYN was seen.
func (c *conn) begun() bool { return c.clientSide >= 0 && c.halves[c.clientSide].based }

func (im *importer) connection(key pair, t time.Time) *conn {
	if len(im.conns) >= maxConns {
		im.evict()
	}
	im.sum.Connections++
	c := &conn{
		store: im.o.Store, keys: im.o.Keys, held: im.held, source: im.source, n: im.sum.Connections,
		broke: func(err error) { im.failed = cmp.Or(im.failed, err) },
		addrs: key, clientSide: -1, last: t,
	}
	c.report.Started = t
	c.session = newSession(c, false, 0)
	for side := range c.halves {
		c.halves[side].out, c.halves[side].held = sender{c, side}, im.held
	}
	im.conns[key] = c
	return c
}

// finish ends a connection, if it is not over.
func (im *importer) finish(c *conn) {
	if !c.over {
		c.finish()
		im.ended(c)
	}
}

// ended reports a connection that is over.
func (im *importer) ended(c *conn) {
	im.sum.Exchanges += int64(c.report.Exchanges)
	if len(c.report.Undecoded) > 0 {
		im.sum.Undecoded++
	}
	if im.o.Connection != nil {
		im.o.Connection(c.report)
	}
	c.report = Connection{}
}

// sweep ends the connections that were reset a while ago. They are not ended
// at once, as packets may stand in a file out of order.
func (im *importer) sweep(now time.Time) {
	for _, c := range im.conns {
		if c.reset && !c.over && now.Sub(c.last) > afterReset {
			im.finish(c)
		}
	}
}

// evict makes room: connections that are over go first, then the idlest.
func (im *importer) evict() {
	all := im.byTime()
	slices.SortStableFunc(all, func(a, b *conn) int {
		switch {
		case a.over == b.over:
			return 0
		case a.over:
			return -1
		}
		return 1
	})
	for _, c := range all[:maxConns/4] {
		im.finish(c)
		delete(im.conns, pair(c.addrs))
	}
}

func (im *importer) finishAll() {
	for _, c := range im.byTime() {
		im.finish(c)
	}
}

// byTime returns all connections, those whose last packet is the oldest first.
func (im *importer) byTime() []*conn {
	all := make([]*conn, 0, len(im.conns))
	for _, c := range im.conns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.n, b.n)) })
	return all
}
