package pcap

import (
	"net"
	"strconv"

	"unwire/captures"
)

// A rawLayer records a connection, or what is inside TLS or a tunnel, that is not HTTP:
// one exchange with the bytes of both directions as they came.
type rawLayer struct {
	session *session
	x       *exchange
}

// newRaw begins the exchange at the time of the first byte.
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
	if !s.conn.opened {
		l.x.lossReason = "the connection's beginning was not captured"
	}
	return l
}

// hostPort is where the session's client wanted to go.
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

// step records what both directions have, in the order of time: one of them may have
// waited until it was clear what is spoken.
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

// earliest returns the direction whose bytes came first; ok is false if there are none.
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

func (l *rawLayer) close() {
	l.x.endAtClose(l.session.inboxes[up].ending, l.session.inboxes[down].ending)
}

// skipLost goes on behind the loss: every byte is as good as another.
func (l *rawLayer) skipLost(dir captures.Direction, n int64, why string) bool {
	l.x.lossReason = why
	l.session.inboxes[dir].skip(n)
	return true
}
