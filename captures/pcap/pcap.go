// Package pcap converts packet captures (pcap and pcapng files) to exchanges. It reassembles TCP streams,
// decrypts TLS with the secrets of a key log, and parses HTTP/1, HTTP/2 and WebSockets. Other traffic is
// recorded as bytes.
//
//	var keys pcap.KeyLog
//	err := keys.Read(keyLogFile)
//	sum, err := pcap.Import(ctx, file, pcap.Options{Store: target, Keys: &keys})
//
// The steps are: package packet extracts TCP segments from the file; a tcpStream orders the segments of each
// direction; an inbox buffers bytes; a session chooses a layer by the first bytes: TLS, HTTP/1, HTTP/2 or raw.
// The contents of TLS or of a tunnel are again a session. A layer records exchanges through package websocket.
//
// After a gap in the bytes, TLS continues with the next record, HTTP/2 with the next frame, and HTTP/1 if a
// length allows it. What could not be decoded is listed in the report of the connection, with place and reason;
// everything before it is kept.
//
// With Options.Live, the packets are still being recorded: bytes wait for keys that are logged later, and
// everything else that is overdue is skipped. Packages formats and passive use this package.
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
	// maxConns limits the number of TCP connections that are tracked at the same time. If there are more, the
	// least active quarter of them is ended.
	maxConns = 4096

	// sweepInterval is the number of packets between two checks for connections that can be ended.
	sweepInterval = 4096
	// resetGracePeriod is how long packets of a connection may follow its RST, because packets in a file may be
	// out of order.
	resetGracePeriod = 2 * time.Second
)

// Options are the options for importing packets.
type Options struct {
	// Store is the capture to which the imported exchanges are added.
	Store captures.Target
	// Keys are the TLS secrets. Those in the file's own secrets blocks are added to it. May be nil.
	Keys *KeyLog
	// Source is the text that the recorded exchanges name as their source; "" means "import pcap" or "import
	// pcapng".
	Source string
	// Connection, if set, is called with the report of each connection, in the order in which they end.
	Connection func(Connection)
	// Live is set if the packets are still being recorded; nil if the file is complete.
	Live *Live
}

// Import adds the exchanges in a pcap or pcapng file to a capture. If r can seek, secrets blocks may come after
// the packets that they decrypt.
//
// Shape: the times of an exchange are those of the packets that completed its parts. Limits: packets of 16 MiB;
// 4,096 connections at a time; per direction, 4 MiB wait for a missing segment and 8 MiB for the other
// direction, but 64 MiB in all connections; 1,024 IP packets wait for fragments. Memory does not grow with the
// file. Errors: those of reading, with the place (what was read before is stored and counted), and the error
// that stopped the recording. Source: captures/README.md#packets
func Import(ctx context.Context, r io.Reader, o Options) (Summary, error) {
	im := &importer{options: o, conns: map[pair]*conn{}, budget: &budget{available: maxBuffered}}
	if im.options.Keys == nil {
		im.options.Keys = new(KeyLog)
	}

	// A live file is read again and again until the recording ends.
	if o.Live != nil {
		r = &liveReader{ctx: ctx, im: im, from: r}
	}
	packets, err := packet.NewReader(r, im.options.Keys.addBlock)
	if err == nil {
		err = im.read(ctx, packets)
		im.summary.Skipped = packets.Skipped()
	}

	// Whatever happened, what was read is recorded.
	im.finishAll()
	if err == nil && im.recordingError == nil {
		err = im.importWithLateKeys(ctx)
	}
	im.summary.Keys = len(im.options.Keys.sessions)

	// An error of the store is the cause of other errors.
	if im.recordingError != nil {
		err = im.recordingError
	}
	if err == nil {
		err = o.Store.Err()
	}
	return im.summary, err
}

// A pair is the two addresses of a TCP connection, the smaller one first, and identifies the connection.
type pair [2]netip.AddrPort

// An importer is the state of one import of a packet file.
type importer struct {
	// options are the options of the import.
	options Options
	// summary contains the counts of the import so far.
	summary Summary

	// conns are the current connections, including recently finished ones.
	conns map[pair]*conn

	// budget limits the bytes that all connections of the import buffer together.
	budget *budget
	// source is the text that the recorded exchanges name as their source, such as "import pcap".
	source string
	// recordingError is the first error of writing to the capture, which stops the import.
	recordingError error

	// ticked is the time at which a live import last read new TLS keys and ended waits that had expired.
	ticked time.Time
	// keyLine is the incomplete last line of the key log, to which more may be written.
	keyLine []byte
	// withoutKeys are connections without TLS keys. Their packets are read a second time if the keys are logged
	// later.
	withoutKeys []connectionWithoutKeys

	// only, if set, restricts the import to these connections; it maps them to their numbers in the report.
	only map[connID]int64
}

// read imports all packets of the file.
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

		// Live connections must not wait for more packets of their own.
		im.tickIfDue(t)

		// Regular checks are too slow to make for every packet.
		if im.summary.Packets%sweepInterval == 0 {
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

// segment passes a TCP segment to its connection, which it creates if necessary.
func (im *importer) segment(s *packet.Segment) {
	key, side := pair{s.Src, s.Dst}, 0
	if s.Dst.Compare(s.Src) < 0 {
		key, side = pair{s.Dst, s.Src}, 1
	}

	// A new SYN on the same ports begins another connection.
	c := im.conns[key]
	if c != nil && s.SYN && !s.ACK && (c.finished || c.sawSYN()) && (c.isn != s.Seq || c.clientSide != side) {
		// The same ports are used for a new connection.
		im.finish(c)
		c = nil
	}
	if c == nil {
		if !s.SYN && len(s.Data) == 0 {
			// It belongs to a connection whose data was not captured.
			return
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

// sawSYN reports whether a SYN from the client was seen.
func (c *conn) sawSYN() bool { return c.clientSide >= 0 && c.streams[c.clientSide].baseKnown }

// newConnection creates the connection between two addresses, whose first packet was captured at t. If there
// are too many connections, it ends some of them.
func (im *importer) newConnection(key pair, t time.Time) *conn {
	if len(im.conns) >= maxConns {
		im.evict()
	}
	im.summary.Connections++
	c := &conn{
		store: im.options.Store, keys: im.options.Keys, budget: im.budget, source: im.source, number: im.summary.Connections,
		onError: func(err error) { im.recordingError = cmp.Or(im.recordingError, err) },
		addrs:   key, clientSide: -1, last: t, awaitLateKeys: im.options.Live != nil,
	}
	c.report.Started = t
	c.session = newSession(c, false, 0)
	for side := range c.streams {
		c.streams[side].out, c.streams[side].budget = direction{c, side}, im.budget
	}

	// In a second pass, all other connections are ignored.
	im.conns[key] = c
	if im.only != nil {
		c.number = im.only[connID{key, t}]
		c.finished = c.number == 0
	}
	return c
}

// finish ends a connection at the end of the file or when it was closed; a second call does nothing.
func (im *importer) finish(c *conn) {
	if !c.finished {
		c.finish()
		im.report(c)
	}
}

// report adds a finished connection to the import's report, unless that has to wait for late TLS keys.
func (im *importer) report(c *conn) {
	if !im.deferWithoutKeys(c) {
		im.countReport(c.report)
	}
	c.report = Connection{}
}

// countReport adds a finished connection to the summary, and passes its report to the caller of Import.
func (im *importer) countReport(r Connection) {
	im.summary.Exchanges += int64(r.Exchanges)
	if len(r.Undecoded) > 0 {
		im.summary.Undecoded++
	}
	if im.options.Connection != nil {
		im.options.Connection(r)
	}
}

// sweep ends connections that were reset some time ago. They do not end at once, because packets in a file may
// be out of order.
func (im *importer) sweep(now time.Time) {
	for _, c := range im.conns {
		if c.reset && !c.finished && now.Sub(c.last) > resetGracePeriod {
			im.finish(c)
		}
	}
}

// evict ends and removes a quarter of the connections: finished ones first, then those whose last packet is the
// oldest.
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

// finishAll ends all connections at the end of the file.
func (im *importer) finishAll() {
	for _, c := range im.byTime() {
		im.finish(c)
	}
}

// byTime returns all connections, ordered by the time of their last packet.
func (im *importer) byTime() []*conn {
	all := make([]*conn, 0, len(im.conns))
	for _, c := range im.conns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.number, b.number)) })
	return all
}
