package pcap

import (
	"fmt"
	"net/netip"
	"time"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

const (
	// maxUndecoded limits the number of entries in Connection.Undecoded.
	maxUndecoded = 32

	// maxGapWait is how long, while packets are still being recorded, the bytes after a missing TCP segment
	// wait for it. Packets captured on one machine are in order, so a later segment shows that a missing one
	// will not come.
	maxGapWait = 700 * time.Millisecond
)

// A conn is the state of one TCP connection while a packet file is imported.
type conn struct {
	// store is the capture in which the connection's exchanges are recorded.
	store captures.Target
	// keys are the TLS secrets of the key log, by which the connection can be decrypted.
	keys *KeyLog
	// budget limits the bytes that all connections of the import buffer together.
	budget *budget

	// source is the text that the connection's exchanges name as their source, such as "import pcap".
	source string
	// onError is called with an error of writing to the capture, which stops the import.
	onError func(error)
	// number is the connection's number in the file, from 1, in the order of their first packets.
	number int64

	// addrs are the addresses of the two ends; which one is the client may be unknown at first.
	addrs [2]netip.AddrPort
	// streams are the two directions; streams[i] contains the segments that addrs[i] sent.
	streams [2]tcpStream
	// clientSide is the index of the client's address in addrs; -1 while it is unknown.
	clientSide int

	// session parses the connection's bytes; nil after the connection has ended.
	session *session
	// last is the time of the connection's last packet.
	last time.Time
	// isn is the initial sequence number in the client's SYN.
	isn uint32
	// sawAnySYN means that a SYN was seen from either side.
	sawAnySYN bool

	// reset means that an RST was seen.
	reset bool
	// finished means that the connection has ended; later packets are ignored.
	finished bool
	// awaitLateKeys means that, in a live import, TLS keys may be logged after the packets that need
	// them.
	awaitLateKeys bool
	// awaitingKeys is the number of TLS layers of the connection that cannot be decrypted before their keys are
	// logged.
	awaitingKeys int

	// proceededWithoutKeys means that the importer stopped waiting for TLS keys because too many bytes were
	// waiting.
	proceededWithoutKeys bool

	// unknownClientRandom is the client random of the TLS session whose keys are not in the key log.
	unknownClientRandom [32]byte

	// tls is what is known about the connection's TLS parameters; the zero value means no TLS.
	tls captures.TLS
	// report is the description of the connection for the user, which is completed while packets are read.
	report Connection
}

// A direction is the receiver of the ordered bytes that the side addrs[side] of a connection sent.
type direction struct {
	// c is the connection to which the bytes belong.
	c *conn
	// side is the index, in the connection's two addresses, of the side that sent the bytes.
	side int
}

// dir returns Up if the side is the client or may be, otherwise Down.
func (s direction) dir() captures.Direction {
	if s.c.clientSide == 1-s.side {
		return down
	}
	return up
}

// data passes the next bytes p, which arrived at time t, to the parser of the connection.
func (s direction) data(t time.Time, p []byte) {
	s.c.guessClient(s.side, p)
	if s.dir() == up {
		s.c.report.BytesUp += int64(len(p))
	} else {
		s.c.report.BytesDown += int64(len(p))
	}
	s.c.session.feed(s.dir(), t, p)
}

// gap reports bytes that are missing in the packet file to the parser and in the connection's report.
func (s direction) gap(g gap) {
	dir := s.dir()
	s.c.report.addGap(dir, g)
	if !s.c.session.inboxes[dir].closed {
		s.c.session.reportLoss(dir, g.length, fmt.Sprintf("loss: %d bytes at offset %d were not captured", g.length, g.offset))
	}
}

// end ends the direction at time t; reset means by an RST.
func (s direction) end(t time.Time, reset bool) {
	s.c.reset = s.c.reset || reset
	s.c.session.end(s.dir(), ending{t: t, reset: reset})
}

// guessClient decides which side is the client from p, the first bytes that one side sent, if no SYN was seen.
func (c *conn) guessClient(side int, p []byte) {
	if c.clientSide >= 0 {
		return
	}
	c.clientSide = side
	if len(p) > 5 && (isTLS(p) && p[0] == recordHandshake && p[5] == helloServer || string(p[:5]) == "HTTP/" || isSettings(p)) {
		c.clientSide = 1 - side
	}

	// Encrypted records do not show which side sent them.
	if !isTLS(p) || p[0] != recordData {
		return
	}
	// As a rule, the server has the lower port.
	c.clientSide = 0
	if c.addrs[0].Port() < c.addrs[1].Port() {
		c.clientSide = 1
	}
}

// client returns the address of the client, or a guess while it is unknown.
func (c *conn) client() netip.AddrPort { return c.addrs[max(0, c.clientSide)] }

// server returns the address of the server, or a guess while it is unknown.
func (c *conn) server() netip.AddrPort { return c.addrs[1-max(0, c.clientSide)] }

// host returns the server's name in the TLS handshake, or its address and port if the name is unknown.
func (c *conn) host() string {
	if c.tls.ServerName != "" {
		return c.tls.ServerName
	}
	return c.server().String()
}

// setProtocol sets the protocol in the connection's report, such as "h2".
func (c *conn) setProtocol(protocol string) { c.report.Protocol = protocol }

// addUndecoded reports that a direction could not be decoded from an offset in its bytes, unless the previous
// entry has the same reason.
func (c *conn) addUndecoded(dir captures.Direction, offset int64, why string) {
	list := c.report.Undecoded
	if n := len(list); n > 0 && list[n-1].Reason == why || n == maxUndecoded {
		return
	}
	c.report.Undecoded = append(list, Undecoded{Dir: dir.String(), Offset: offset, Reason: why})
}

// addSegment processes a TCP segment that addrs[side] sent.
func (c *conn) addSegment(side int, s *packet.Segment) {
	c.report.Packets++
	c.last = later(c.last, s.Time)
	if s.SYN {
		c.clientSide, c.sawAnySYN = side, true
		if s.ACK {
			c.clientSide = 1 - side
		} else {
			c.isn = s.Seq
		}
	}

	// The connection may be over now.
	c.streams[side].addSegment(s)
	if c.ended() && !c.awaitsKeys() {
		c.finish()
	}
}

// finish processes the segments that are still queued, and ends all exchanges of the connection.
func (c *conn) finish() {
	if c.finished {
		return
	}
	c.finished = true
	c.stopAwaitingKeys()
	if !c.streams[0].baseKnown && len(c.streams[0].queue) > 0 && !c.streams[1].baseKnown && len(c.streams[1].queue) > 0 {
		c.guessClientFromBoth()
	}
	client := max(0, c.clientSide)
	// Process requests before their responses.
	c.streams[client].flush(c.last)
	c.streams[1-client].flush(c.last)

	// Now both directions end, with the reason if they are incomplete.
	for side := range c.streams {
		c.session.end(direction{c, side}.dir(), ending{t: c.last, missing: c.missingEnd(side)})
		c.streams[side].clearQueue()
	}
	c.completeReport()
	c.session = nil
}

// stopAwaitingKeys stops waiting for TLS keys that were not logged so far; the affected bytes stay undecoded.
func (c *conn) stopAwaitingKeys() {
	if c.awaitLateKeys {
		c.awaitLateKeys = false
		c.session.retryKeys()
	}
}

// guessClientFromBoth identifies the client by the first bytes of each side, if the packet file lacks
// the SYN.
func (c *conn) guessClientFromBoth() {
	for side := range c.streams {
		p := c.streams[side].queue[0].data
		if len(p) > 5 && (p[0] == recordHandshake && p[5] == helloClient || isMethod(p)) {
			c.clientSide = side
			return
		}
	}
}

// missingEnd returns why bytes of a side may be missing after the last captured one, or "" if the side closed
// the connection.
func (c *conn) missingEnd(side int) string {
	if c.streams[side].ended || c.reset {
		return ""
	}
	return "the capture ends before the connection does"
}

// completeReport fills in the connection's addresses and TLS parameters in its report.
func (c *conn) completeReport() {
	r := &c.report
	r.Number = c.number
	r.Client, r.Server = c.client().String(), c.server().String()
	r.TLS, r.Cipher, r.ServerName = c.tls.Version, c.tls.Cipher, c.tls.ServerName
}

// ended reports whether both sides have closed the connection.
func (c *conn) ended() bool { return c.streams[0].ended && c.streams[1].ended }

// awaitsKeys reports whether TLS waits for keys that may still be logged.
func (c *conn) awaitsKeys() bool { return c.awaitLateKeys && c.awaitingKeys > 0 }

// tick is called regularly while packets are still being recorded. It gives up on segments and keys that have
// been missing too long. All packets captured before the time passed have been read.
func (c *conn) tick(passed time.Time) {
	for side := range c.streams {
		h := &c.streams[side]
		for len(h.queue) > 0 && !h.ended && passed.Sub(h.queue[0].t) > maxGapWait {
			h.skipGap(passed)
		}
		if len(h.queue) == 0 && h.hasFIN && passed.Sub(h.finTime) > maxGapWait {
			h.flush(passed)
		}
	}
	if c.awaitingKeys > 0 {
		c.session.retryKeys()
	}
	c.session.tick(passed)
}
