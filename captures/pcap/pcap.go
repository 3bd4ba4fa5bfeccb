// Package pcap turns packet captures (pcap and pcapng) into exchanges: it puts
// TCP streams together, opens TLS with the keys of a key log, and reads HTTP/1,
// HTTP/2 and WebSockets off them. What is not HTTP is recorded as bytes.
//
// What it cannot read it lists, connection by connection, with the reason and
// the place. What came before that place is kept.
//
// Package packet takes TCP segments out of the file. A connection puts the segments
// of each half into order; bytes wait in an inbox. A session chooses a layer by the
// first bytes: TLS (handshake, records, key log, cipher suites), HTTP/1, HTTP/2 or raw,
// and the content of a layer is a session again. Behind a gap in the bytes, TLS goes
// on at the next record, HTTP/2 at the next frame, HTTP/1 where a length allows it. A
// layer feeds each exchange to the store. The report of a connection lists its gaps
// and what was not decoded.
//
// With Options.Live the packets are still being recorded: bytes wait for keys that are
// logged later, and what has waited too long for something else goes on without it.
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
	// maxConns limits the connections that are read at once. If there are more,
	// the idlest quarter ends.
	maxConns = 4096

	// sweepEvery is how many packets are read between searches for connections that
	// are over.
	sweepEvery = 4096
	afterReset = 2 * time.Second
)

// Options say what to import into.
type Options struct {
	// Store gets the exchanges. What it holds already stays.
	Store captures.Target
	// Keys open TLS. Those in the file's own secrets blocks are added to it.
	// Nil: only those.
	Keys *KeyLog
	// Source is what the exchanges say recorded them; "" is "import pcap" or
	// "import pcapng".
	Source string
	// Connection is called for each connection when it is over, in the order of
	// ends. Nil: nobody wants to know.
	Connection func(Connection)
	// Live is set if the packets are being recorded. Nil: the file is whole.
	Live *Live
}

// Import reads a capture file to its end and stores its exchanges. If r can
// seek, secrets blocks may follow the packets they open.
//
// Shape: an exchange has the times of the packets that completed its parts.
// Limits: a packet of 16 MiB; 4,096 connections at once; 4 MiB of a direction
// wait for a lost segment and 8 MiB for the other direction, 64 MiB in all;
// 1,024 IP packets wait for fragments. Memory does not grow with the file.
// Errors: of reading, with the place: what was read before it is stored and
// counted; and what stopped the recording. Source: captures/README.md#packets
func Import(ctx context.Context, r io.Reader, o Options) (Summary, error) {
	im := &importer{options: o, conns: map[pair]*conn{}, budget: &budget{left: maxBuffered}}
	if im.options.Keys == nil {
		im.options.Keys = new(KeyLog)
	}
	if o.Live != nil {
		r = &liveReader{ctx: ctx, im: im, from: r}
	}
	packets, err := packet.NewReader(r, im.options.Keys.addBlock)
	if err == nil {
		err = im.read(ctx, packets)
		im.summary.Skipped = packets.Skipped()
	}
	im.finishAll()
	if err == nil && im.recordingError == nil {
		err = im.importKeyless(ctx)
	}
	im.summary.Keys = len(im.options.Keys.sessions)
	if im.recordingError != nil {
		err = im.recordingError
	}
	if err == nil {
		err = o.Store.Err()
	}
	return im.summary, err
}

// A pair is the two ends of a connection, the lower one first.
type pair [2]netip.AddrPort

// An importer is one import.
type importer struct {
	options        Options
	summary        Summary
	conns          map[pair]*conn
	budget         *budget
	source         string
	recordingError error // recording

	ticked  time.Time // a live import's last tick
	keyLine []byte    // a line of the key log that is not whole
	keyless []keyless // may be read again

	// only, if set, are the connections that are read, with their numbers.
	only map[connID]int64
}

func (im *importer) read(ctx context.Context, packets *packet.Reader) error {
	im.source = cmp.Or(im.options.Source, "import "+packets.Format)
	for {
		t, s, err := packets.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		im.summary.Packets++
		if s != nil {
			im.segment(s)
		}
		im.tickIfDue(t)
		if im.summary.Packets%sweepEvery == 0 {
			im.sweep(t)
			if err := cmp.Or(ctx.Err(), im.options.Store.Err()); err != nil {
				return err
			}
		}
		if im.recordingError != nil {
			return im.recordingError
		}
	}
}

func (im *importer) segment(s *packet.Segment) {
	key, side := pair{s.Src, s.Dst}, 0
	if s.Dst.Compare(s.Src) < 0 {
		key, side = pair{s.Dst, s.Src}, 1
	}
	c := im.conns[key]
	if c != nil && s.SYN && !s.ACK && (c.finished || c.sawSYN()) && (c.isn != s.Seq || c.clientSide != side) {
		im.finish(c) // the ports are used again
		c = nil
	}
	if c == nil {
		if !s.SYN && len(s.Data) == 0 {
			return // the rest of a connection of which nothing is to be had
		}
		c = im.newConnection(key, s.Time)
	}
	if c.finished {
		return
	}
	c.addSegment(side, s)
	if c.finished {
		im.report(c)
	}
}

// sawSYN reports whether the client's SYN was seen.
func (c *conn) sawSYN() bool { return c.clientSide >= 0 && c.halves[c.clientSide].based }

func (im *importer) newConnection(key pair, t time.Time) *conn {
	if len(im.conns) >= maxConns {
		im.evict()
	}
	im.summary.Connections++
	c := &conn{
		store: im.options.Store, keys: im.options.Keys, budget: im.budget, source: im.source, number: im.summary.Connections,
		onError: func(err error) { im.recordingError = cmp.Or(im.recordingError, err) },
		addrs:   key, clientSide: -1, last: t, live: im.options.Live != nil,
	}
	c.report.Started = t
	c.session = newSession(c, false, 0)
	for side := range c.halves {
		c.halves[side].out, c.halves[side].budget = sender{c, side}, im.budget
	}
	im.conns[key] = c
	if im.only != nil {
		c.number = im.only[connID{key, t}]
		c.finished = c.number == 0
	}
	return c
}

// finish ends a connection, if it is not over.
func (im *importer) finish(c *conn) {
	if !c.finished {
		c.finish()
		im.report(c)
	}
}

// report reports a connection that is over.
func (im *importer) report(c *conn) {
	if !im.keepKeyless(c) {
		im.countReport(c.report)
	}
	c.report = Connection{}
}

func (im *importer) countReport(r Connection) {
	im.summary.Exchanges += int64(r.Exchanges)
	if len(r.Undecoded) > 0 {
		im.summary.Undecoded++
	}
	if im.options.Connection != nil {
		im.options.Connection(r)
	}
}

// sweep ends the connections that were reset a while ago. They are not ended
// at once, as packets may stand in a file out of order.
func (im *importer) sweep(now time.Time) {
	for _, c := range im.conns {
		if c.reset && !c.finished && now.Sub(c.last) > afterReset {
			im.finish(c)
		}
	}
}

// evict makes room: connections that are over go first, then the idlest.
func (im *importer) evict() {
	all := im.byTime()
	slices.SortStableFunc(all, func(a, b *conn) int {
		switch {
		case a.finished == b.finished:
			return 0
		case a.finished:
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
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.number, b.number)) })
	return all
}
