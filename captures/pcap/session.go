package pcap

import (
	"bytes"
	"fmt"
	"time"

	"unwire/captures"
)

const (
	// maxInbox limits the bytes of a direction that wait for the other direction or
	// for the end of a message.
	maxInbox = 8 << 20

	// sniffBytes are enough to distinguish TLS, HTTP/1 and HTTP/2.
	sniffBytes = 24

	// maxNesting limits the tunnels within a connection.
	maxNesting = 2

	// maxSniffWait is how long a connection's first bytes wait for more that tell what is
	// spoken, such as the client's if the server speaks first.
	maxSniffWait = 500 * time.Millisecond

	// maxTurnWait is how long an answer waits for its request, and a reset stream for
	// what the other side sent before it saw the reset.
	maxTurnWait = 700 * time.Millisecond
)

// up and down are indices of the two directions, as captures numbers them.
const (
	up   = captures.Up
	down = captures.Down
)

// A layer reads bytes from the inboxes of a session. Bytes of one direction that have to
// wait for bytes of the other stay in their inbox.
type layer interface {
	// step reads as much of a direction as can be read now.
	step(dir captures.Direction)
	// close is called when both directions have ended.
	close()
}

// A session is a pair of byte streams: those of TCP, or those within a layer
// of encryption or a tunnel.
type session struct {
	conn      *conn
	secure    bool // within TLS
	depth     int
	target    string // host and port of a tunnel; "": those of the connection
	inboxes   [2]inbox
	layer     layer   // nil until it is known what is spoken
	noWait    bool    // a direction no longer waits for the other
	forceStep [2]bool // nor does this one, for now
	sniffNow  bool    // the layer is chosen although more bytes may come
	pumping   bool
	done      bool
}

func newSession(c *conn, secure bool, depth int) *session {
	s := &session{conn: c, secure: secure, depth: depth}
	for i := range s.inboxes {
		s.inboxes[i].budget = c.budget
	}
	return s
}

// feed takes bytes of a direction.
func (s *session) feed(dir captures.Direction, t time.Time, p []byte) {
	in := &s.inboxes[dir]
	if in.closed || len(p) == 0 {
		return
	}
	in.append(t, p)
	s.pump()
	if s.awaitsKeys() && (s.overLimit(in) || !in.budget.fits(keptForOthers)) {
		s.conn.gaveUpKeys = true
		s.conn.giveUpKeys()
	}
	if s.overLimit(in) && !s.noWait {
		s.noWait = true
		s.pump()
	}
	if s.overLimit(in) {
		s.fail(dir, fmt.Sprintf("more than %d MiB wait for what does not come", maxInbox>>20))
	}
}

func (s *session) overLimit(in *inbox) bool {
	return in.size() > maxInbox || in.len() > 0 && !in.budget.fits(0)
}

// end says that a direction ended, and how.
func (s *session) end(dir captures.Direction, e ending) {
	in := &s.inboxes[dir]
	if in.closed {
		return
	}
	in.closed, in.ending = true, e
	s.pump()
}

// fail gives a direction up: its remark is listed, and what follows is lost.
func (s *session) fail(dir captures.Direction, why string) {
	in := &s.inboxes[dir]
	if in.closed && in.ending.missing != "" {
		return
	}
	s.conn.addUndecoded(dir, in.offset, why)
	s.closeInbox(in, why)
	s.pump()
}

// closeInbox ends an inbox from which nothing more can be read.
func (s *session) closeInbox(in *inbox, why string) {
	t := in.time(1)
	if t.IsZero() {
		t = s.conn.last
	}
	in.clear()
	in.closed, in.ending = true, ending{t: t, missing: why}
}

// mayWait reports whether a direction may wait for what comes from the other.
func (s *session) mayWait(dir captures.Direction) bool {
	return !s.noWait && !s.forceStep[dir] && !s.inboxes[1-dir].closed
}

// pump lets the layer take what it can, until neither direction moves.
func (s *session) pump() {
	if s.pumping || s.done {
		return
	}
	s.pumping = true
	defer func() { s.pumping = false }()
	for {
		before := s.state()
		if s.layer == nil {
			s.sniff()
		}
		if s.layer != nil {
			s.layer.step(up)
			s.layer.step(down)
		}
		if s.state() == before {
			break
		}
	}
	if s.inboxes[up].closed && s.inboxes[down].closed && !s.awaitsKeys() {
		s.done = true
		if s.layer != nil {
			s.layer.close()
		}
		s.inboxes[up].clear()
		s.inboxes[down].clear()
	}
}

// A sessionState changes with every progress.
type sessionState struct {
	offset [2]int64
	closed [2]bool
	known  bool
}

func (s *session) state() sessionState {
	return sessionState{
		[2]int64{s.inboxes[up].offset, s.inboxes[down].offset},
		[2]bool{s.inboxes[up].closed, s.inboxes[down].closed},
		s.layer != nil,
	}
}

var (
	h2Preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	h1Answer  = []byte("HTTP/1.")
)

// sniff chooses the layer by the first bytes: those of the client or, if the client
// will send none, those of the server.
func (s *session) sniff() {
	s.sniffClient()
	if s.layer == nil && (s.sniffNow || !s.mayWait(down)) {
		s.sniffServer()
	}
}

func (s *session) sniffClient() {
	client := &s.inboxes[up]
	switch p := client.bytes(); {
	case len(p) >= 6 && isTLS(p):
		s.startTLS(up, p)
	case bytes.HasPrefix(p, h2Preface):
		client.discard(len(h2Preface))
		s.layer = newHTTP2(s)
	case len(p) < sniffBytes && !client.closed && !s.sniffNow && (isTLS(p) || bytes.HasPrefix(h2Preface, p)):
		// ambiguous until more bytes arrive
	case len(p) > 0 && isMethod(p):
		s.sniffRequestLine(p)
	case len(p) > 0:
		s.layer = newRaw(s)
	}
}

// sniffRequestLine distinguishes HTTP/1 from other protocols whose lines begin with a
// word in upper case, such as SMTP.
func (s *session) sniffRequestLine(p []byte) {
	line, _, whole := bytes.Cut(p, []byte("\n"))
	isHTTP := bytes.Contains(line, []byte(" HTTP/"))
	if !isHTTP && !whole {
		if len(p) < maxHead && !s.inboxes[up].closed && !s.sniffNow {
			return
		}
		isHTTP = isCommonMethod(p)
	}
	if isHTTP {
		s.layer = newHTTP1(s)
	} else {
		s.layer = newRaw(s)
	}
}

func (s *session) sniffServer() {
	server := &s.inboxes[down]
	switch p := server.bytes(); {
	case len(p) < sniffBytes && !server.closed && !s.sniffNow, len(p) == 0:
	case isTLS(p):
		s.startTLS(down, p)
	case bytes.HasPrefix(p, h1Answer):
		s.layer = newHTTP1(s)
	case isSettings(p):
		s.layer = newHTTP2(s)
	default:
		s.layer = newRaw(s)
	}
}

func (s *session) startTLS(dir captures.Direction, p []byte) {
	const hello = 1
	switch {
	case s.secure:
		s.failBoth(dir, "TLS within TLS is not read")
	case dir == up && p[0] == recordHandshake && p[5] == hello:
		s.layer = newTLS(s)
	default:
		s.failBoth(dir, "handshake missing: the connection's beginning was not captured")
	}
}

// failBoth gives both directions up for a reason that is told once.
func (s *session) failBoth(dir captures.Direction, why string) {
	other := &s.inboxes[1-dir]
	if !other.closed {
		s.closeInbox(other, why)
	}
	s.fail(dir, why)
}

// isTLS reports whether p looks like the beginning of a TLS record.
func isTLS(p []byte) bool {
	return len(p) > 0 && p[0] >= recordCCS && p[0] <= recordData && (len(p) < 2 || p[1] == 3)
}

// isMethod reports whether p begins with an HTTP method in upper case.
func isMethod(p []byte) bool {
	for i, b := range p {
		switch {
		case b == ' ':
			return i > 0
		case b != '-' && (b < 'A' || b > 'Z') || i == sniffBytes:
			return false
		}
	}
	return len(p) > 0
}

// isCommonMethod reports whether p, in which isMethod found a method, begins with one
// that clients use.
func isCommonMethod(p []byte) bool {
	switch method, _, _ := bytes.Cut(p, []byte(" ")); string(method) {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return true
	}
	return false
}

// isSettings reports whether p is a server's first HTTP/2 frame.
func isSettings(p []byte) bool {
	return len(p) >= 9 && p[0] == 0 && p[3] == 4 && p[4] == 0 && [4]byte(p[5:9]) == [4]byte{}
}

// A lossy layer can continue after bytes that were not captured.
type lossy interface {
	// skipLost is called if n bytes of a direction are missing after those in its inbox,
	// from which all whole elements have been read. It reports whether the layer can
	// continue; if so, it has emptied the inbox.
	skipLost(dir captures.Direction, n int64, why string) bool
}

// reportLoss tells the layer of a loss, or gives the direction up.
func (s *session) reportLoss(dir captures.Direction, n int64, why string) {
	in := &s.inboxes[dir]
	if in.closed {
		return
	}
	s.forceStep[dir] = true // what waits for the other direction is taken now
	s.pump()
	s.forceStep[dir] = false
	if in.closed {
		return
	}
	offset := in.offset
	if l, ok := s.layer.(lossy); !ok || !l.skipLost(dir, n, why) {
		s.fail(dir, why)
		return
	}
	s.conn.addUndecoded(dir, offset, why)
	s.pump()
}

func (s *session) scheme() string {
	if s.secure {
		return "https"
	}
	return "http"
}

// A ticker is a layer for which it matters that time passes.
type ticker interface {
	tick(passed time.Time)
}

// tick chooses a layer although more might come, takes answers without requests, and
// lets the layer do the like.
func (s *session) tick(passed time.Time) {
	switch {
	case s.done:
	case s.layer == nil:
		if s.waitsSince(up, passed, maxSniffWait) || s.waitsSince(down, passed, maxSniffWait) {
			s.sniffNow = true
			s.pump()
			s.sniffNow = false
		}
	case !s.isTLS() && s.waitsSince(down, passed, maxTurnWait):
		s.forceStep[down] = true
		s.pump()
		s.forceStep[down] = false
	}
	if l, ok := s.layer.(ticker); ok {
		l.tick(passed)
	}
}

// waitsSince reports whether bytes of a direction have waited for d.
func (s *session) waitsSince(dir captures.Direction, passed time.Time, d time.Duration) bool {
	in := &s.inboxes[dir]
	if in.len() == 0 {
		return false
	}
	t, _ := in.firstRun(1)
	return passed.Sub(t) > d
}

func (s *session) isTLS() bool {
	_, ok := s.layer.(*tlsLayer)
	return ok
}
