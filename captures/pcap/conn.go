package pcap

import (
	"fmt"
	"net/netip"
	"time"

	"unwire/captures"
	"unwire/captures/pcap/packet"
)

const (
	maxRemarks = 32 // of a connection

	// maxGapWait is how long bytes behind a missing segment wait for it. Packets of one
	// machine come in order, so a missing one will not come.
	maxGapWait = 700 * time.Millisecond
)

// A conn is a TCP connection.
type conn struct {
	store   captures.Target
	keys    *KeyLog
	budget  *budget
	source  string
	onError func(error) // recording failed
	number  int64       // its number, in the order of first packets

	addrs      [2]netip.AddrPort
	halves     [2]half // of the segments that addrs[i] sent
	clientSide int     // index of the client in addrs; -1 while unknown
	session    *session
	last       time.Time // of the last packet
	isn        uint32    // of the client's SYN
	opened     bool      // a SYN of either side was seen
	reset      bool
	finished   bool // what still comes is passed over
	live       bool // keys may be logged later than they are needed
	awaiting   int  // TLS layers that wait for keys

	// gaveUpKeys is set if TLS no longer waited for keys, though they may still come.
	gaveUpKeys bool

	// noKeyRandom is the client random of the session without keys.
	noKeyRandom [32]byte

	tls    captures.TLS
	report Connection
}

// A sender is one side of a connection, as a receiver of what its half orders.
type sender struct {
	c    *conn
	side int
}

func (s sender) dir() captures.Direction {
	if s.c.clientSide == 1-s.side {
		return down
	}
	return up
}

func (s sender) data(t time.Time, p []byte) {
	s.c.guessClient(s.side, p)
	if s.dir() == up {
		s.c.report.BytesUp += int64(len(p))
	} else {
		s.c.report.BytesDown += int64(len(p))
	}
	s.c.session.feed(s.dir(), t, p)
}

func (s sender) gap(g gap) {
	dir := s.dir()
	s.c.report.addGap(dir, g)
	if !s.c.session.inboxes[dir].closed {
		s.c.session.reportLoss(dir, g.length, fmt.Sprintf("loss: %d bytes at offset %d were not captured", g.length, g.offset))
	}
}

func (s sender) end(t time.Time, reset bool) {
	s.c.reset = s.c.reset || reset
	s.c.session.end(s.dir(), ending{t: t, reset: reset})
}

// guessClient decides who is the client, if no SYN did, by the first bytes.
func (c *conn) guessClient(side int, p []byte) {
	if c.clientSide >= 0 {
		return
	}
	c.clientSide = side
	if len(p) > 5 && (isTLS(p) && p[0] == recordHandshake && p[5] == helloServer || string(p[:5]) == "HTTP/" || isSettings(p)) {
		c.clientSide = 1 - side
	}
	if !isTLS(p) || p[0] != recordData {
		return
	}
	// Nothing tells: a server has the lower port, as a rule.
	c.clientSide = 0
	if c.addrs[0].Port() < c.addrs[1].Port() {
		c.clientSide = 1
	}
}

func (c *conn) client() netip.AddrPort { return c.addrs[max(0, c.clientSide)] }
func (c *conn) server() netip.AddrPort { return c.addrs[1-max(0, c.clientSide)] }

// host is the server's name as far as the connection tells it.
func (c *conn) host() string {
	if c.tls.ServerName != "" {
		return c.tls.ServerName
	}
	return c.server().String()
}

func (c *conn) setProtocol(protocol string) { c.report.Protocol = protocol }

// addUndecoded lists what could not be decoded; the same reason is told once in a row.
func (c *conn) addUndecoded(dir captures.Direction, offset int64, why string) {
	list := c.report.Undecoded
	if n := len(list); n > 0 && list[n-1].Reason == why || n == maxRemarks {
		return
	}
	c.report.Undecoded = append(list, Undecoded{Dir: dir.String(), Offset: offset, Reason: why})
}

// addSegment adds a segment that addrs[side] sent.
func (c *conn) addSegment(side int, s *packet.Segment) {
	c.report.Packets++
	c.last = later(c.last, s.Time)
	if s.SYN {
		c.clientSide, c.opened = side, true
		if s.ACK {
			c.clientSide = 1 - side
		} else {
			c.isn = s.Seq
		}
	}
	c.halves[side].addSegment(s)
	if c.ended() && !c.awaitsKeys() {
		c.finish()
	}
}

// finish reads what is left and ends every exchange.
func (c *conn) finish() {
	if c.finished {
		return
	}
	c.finished = true
	c.giveUpKeys()
	if !c.halves[0].based && len(c.halves[0].queue) > 0 && !c.halves[1].based && len(c.halves[1].queue) > 0 {
		c.guessClientFromBoth()
	}
	client := max(0, c.clientSide)
	c.halves[client].flush(c.last) // requests before what answers them
	c.halves[1-client].flush(c.last)
	for side := range c.halves {
		c.session.end(sender{c, side}.dir(), ending{t: c.last, missing: c.missingEnd(side)})
		c.halves[side].clearQueue()
	}
	c.completeReport()
	c.session = nil
}

// giveUpKeys has TLS no longer wait for keys.
func (c *conn) giveUpKeys() {
	if c.live {
		c.live = false
		c.session.retryKeys()
	}
}

// guessClientFromBoth looks for the side that speaks first as a client does.
func (c *conn) guessClientFromBoth() {
	for side := range c.halves {
		p := c.halves[side].queue[0].data
		if len(p) > 5 && (p[0] == recordHandshake && p[5] == helloClient || isMethod(p)) {
			c.clientSide = side
			return
		}
	}
}

// missingEnd is the reason why a side's bytes end, or "" if the side closed the connection.
func (c *conn) missingEnd(side int) string {
	if c.halves[side].ended || c.reset {
		return ""
	}
	return "the capture ends before the connection does"
}

// completeReport adds the totals to the report of a connection that is over.
func (c *conn) completeReport() {
	r := &c.report
	r.Number = c.number
	r.Client, r.Server = c.client().String(), c.server().String()
	r.TLS, r.Cipher, r.ServerName = c.tls.Version, c.tls.Cipher, c.tls.ServerName
}

// ended reports whether both sides have closed the connection.
func (c *conn) ended() bool { return c.halves[0].ended && c.halves[1].ended }

// awaitsKeys reports whether TLS waits for keys that may still be logged.
func (c *conn) awaitsKeys() bool { return c.live && c.awaiting > 0 }

// tick gives up what the connection has waited for too long.
func (c *conn) tick(passed time.Time) {
	for side := range c.halves {
		h := &c.halves[side]
		for len(h.queue) > 0 && !h.ended && passed.Sub(h.queue[0].t) > maxGapWait {
			h.skipGap(passed)
		}
		if len(h.queue) == 0 && h.hasFIN && passed.Sub(h.finTime) > maxGapWait {
			h.flush(passed)
		}
	}
	if c.awaiting > 0 {
		c.session.retryKeys()
	}
	c.session.tick(passed)
}
