package pcap

import (
	"net"
	"strconv"

	"unwire/captures"
)

// A rawLayer records traffic that is not HTTP as one exchange with the bytes of both directions. The traffic
// may be that of a whole TCP connection, or inside TLS or a tunnel.
type rawLayer struct {
	// session is the pair of byte streams that are recorded unparsed.
	session *session

	// x is the exchange that receives the bytes of both directions.
	x *exchange
}

// newRaw starts recording the bytes of s as an exchange, which begins at the time of the first byte.
func newRaw(s *session) *rawLayer {
	transport, scheme := captures.RawTCP, "tcp"
	if s.secure {
		transport, scheme = captures.RawTLS, "tls"
	}
	s.conn.setProtocol(scheme)
	l := &rawLayer{session: s}
	first, _ := l.earliest()
	t, _ := s.inboxes[first].firstRun(1)
	l.x = s.conn.beginExchange(captures.Exchange{Transport: transport, URL: scheme + "://" + s.hostPort(), Started: t})
	if !s.conn.sawAnySYN {
		l.x.lossReason = "the connection's beginning was not captured"
	}
	return l
}

// hostPort returns the host and port that the client connected to.
func (s *session) hostPort() string {
	if s.target != "" {
		return s.target
	}
	server := s.conn.server()
	if name := s.conn.tls.ServerName; name != "" && s.secure {
		return net.JoinHostPort(name, strconv.Itoa(int(server.Port())))
	}
	return server.String()
}

// step records the unread bytes of both directions in the order of time. It ignores its argument: bytes of
// either direction may have waited until the protocol was known.
func (l *rawLayer) step(captures.Direction) {
	for {
		dir, ok := l.earliest()
		if !ok {
			break
		}
		in := &l.session.inboxes[dir]
		t, n := in.firstRun(in.len())
		l.x.addChunk(dir, t, in.bytes()[:n])
		in.discard(n)
	}
	for dir := range l.session.inboxes {
		in := &l.session.inboxes[dir]
		if in.closed && in.ending.missing == "" && !in.ending.reset && !l.x.done[dir] {
			l.x.finishDirection(captures.Direction(dir), in.ending.t)
		}
	}
}

// earliest returns the direction whose unread bytes arrived first; ok is false if there are no unread
// bytes.
func (l *rawLayer) earliest() (dir captures.Direction, ok bool) {
	client, server := &l.session.inboxes[up], &l.session.inboxes[down]
	switch {
	case server.len() == 0:
		return up, client.len() > 0
	case client.len() == 0:
		return down, true
	}
	sent, _ := client.firstRun(1)
	answered, _ := server.firstRun(1)
	if answered.Before(sent) {
		return down, true
	}
	return up, true
}

// close ends the exchange because its connection has ended.
func (l *rawLayer) close() {
	l.x.endAtClose(l.session.inboxes[up].ending, l.session.inboxes[down].ending)
}

// resumeAfterLoss skips n lost bytes and always returns true, because traffic without a known structure can be
// recorded further. why is recorded as the reason in the exchange.
func (l *rawLayer) resumeAfterLoss(dir captures.Direction, n int64, why string) bool {
	l.x.lossReason = why
	l.session.inboxes[dir].skip(n)
	return true
}
