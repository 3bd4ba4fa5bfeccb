package pcap

import (
	"bytes"
	"fmt"
	"time"

	"unwire/captures"
)

const (
	// maxInbox limits the unread bytes of a direction, which wait for the other direction or for the end of a
	// message.
	maxInbox = 8 << 20

	// sniffBytes is the number of first bytes that suffice to distinguish TLS, HTTP/1 and HTTP/2.
	sniffBytes = 24

	// maxNesting limits how many CONNECT tunnels may be inside each other.
	maxNesting = 2

	// maxSniffWait is how long, while packets are still being recorded, the first bytes of a connection wait
	// for more that show its protocol, such as the client's if the server sends first.
	maxSniffWait = 500 * time.Millisecond

	// maxPeerWait is how long a response waits for its request to be captured. A reset stream waits
	// equally long for frames that the peer sent before it received the reset.
	maxPeerWait = 700 * time.Millisecond
)

// up and down index the two directions.
const (
	up   = captures.Up
	down = captures.Down
)

// A layer is the parser of one protocol, such as TLS or HTTP/2. It reads the inboxes of a session; bytes that
// must wait for the other direction stay there.
type layer interface {
	// step parses as many unread bytes of a direction as possible.
	step(dir captures.Direction)
	// close is called when both directions of the connection have ended.
	close()
}

// A session is a pair of byte streams to be parsed, one for each direction: those of a TCP connection, or those
// inside TLS or a tunnel.
type session struct {
	// conn is the TCP connection that carries the byte streams.
	conn *conn
	// secure means that the session is inside TLS.
	secure bool

	// depth is the number of tunnels around the session.
	depth int
	// target is the host and port in the CONNECT request of a tunnel; "" for the connection itself.
	target string

	// inboxes buffer the bytes of each direction until the layer reads them.
	inboxes [2]inbox
	// layer is the parser of the session's protocol; nil until the protocol was detected from the first
	// bytes.
	layer layer
	// neverWait means that neither direction waits for bytes of the other one any more.
	neverWait bool
	// waitExpired is true for each direction whose bytes must not wait for the other direction in the current
	// call.
	waitExpired [2]bool
	// sniffExpired means that the protocol must be detected from the bytes at hand, without waiting for
	// more.
	sniffExpired bool
	// running means that the session is being parsed, which prevents a recursive call.
	running bool

	// done means that both directions have ended and the layer was closed.
	done bool
}

// newSession returns a session whose protocol is not known yet. secure means that it is inside TLS, and depth
// is the number of tunnels around it.
func newSession(c *conn, secure bool, depth int) *session {
	s := &session{conn: c, secure: secure, depth: depth}
	for i := range s.inboxes {
		s.inboxes[i].budget = c.budget
	}
	return s
}

// feed adds bytes p of a direction that arrived at time t, and parses as much as possible. If too many bytes
// wait, the session stops waiting or fails.
func (s *session) feed(dir captures.Direction, t time.Time, p []byte) {
	in := &s.inboxes[dir]
	if in.closed || len(p) == 0 {
		return
	}
	in.append(t, p)
	s.run()

	// Too much is waiting: proceed without keys, then without the other direction, and fail in the end.
	if s.awaitsKeys() && (s.overLimit(in) || !in.budget.fits(reservedForOthers)) {
		s.conn.proceededWithoutKeys = true
		s.conn.stopAwaitingKeys()
	}
	if s.overLimit(in) && !s.neverWait {
		s.neverWait = true
		s.run()
	}
	if s.overLimit(in) {
		s.fail(dir, fmt.Sprintf("more than %d MiB of later bytes are buffered, but the missing bytes do not arrive", maxInbox>>20))
	}
}

// overLimit reports whether an inbox is too large, or the memory of all inboxes is exhausted.
func (s *session) overLimit(in *inbox) bool {
	return in.size() > maxInbox || in.len() > 0 && !in.budget.fits(0)
}

// end marks a direction as ended, and parses the bytes that were waiting for it.
func (s *session) end(dir captures.Direction, e ending) {
	in := &s.inboxes[dir]
	if in.closed {
		return
	}
	in.closed, in.ending = true, e
	s.run()
}

// fail ends a direction that cannot be parsed further, and adds the reason why to the report.
func (s *session) fail(dir captures.Direction, why string) {
	in := &s.inboxes[dir]
	if in.closed && in.ending.missing != "" {
		return
	}
	s.conn.addUndecoded(dir, in.offset, why)
	s.closeInbox(in, why)
	s.run()
}

// closeInbox discards the unread bytes of an inbox, and marks it as ended because of why.
func (s *session) closeInbox(in *inbox, why string) {
	t := in.time(1)
	if t.IsZero() {
		t = s.conn.last
	}
	in.clear()
	in.closed, in.ending = true, ending{t: t, missing: why}
}

// mayWait reports whether unread bytes of a direction may wait until bytes of the other direction are parsed.
func (s *session) mayWait(dir captures.Direction) bool {
	return !s.neverWait && !s.waitExpired[dir] && !s.inboxes[1-dir].closed
}

// run detects the protocol and calls its parser until neither direction makes progress.
func (s *session) run() {
	if s.running || s.done {
		return
	}
	s.running = true
	defer func() { s.running = false }()
	for {
		// Bytes of one direction can unblock the other one.
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

	// Close the layer once, when nothing more can be parsed.
	if s.inboxes[up].closed && s.inboxes[down].closed && !s.awaitsKeys() {
		s.done = true
		if s.layer != nil {
			s.layer.close()
		}
		s.inboxes[up].clear()
		s.inboxes[down].clear()
	}
}

// A sessionState is compared before and after parsing a session, to detect progress: the read position of each
// direction, whether it has ended, and whether the protocol is known.
type sessionState struct {
	// offset is the position up to which the bytes of each direction were read.
	offset [2]int64
	// closed is true for each direction that has ended.
	closed [2]bool
	// known means that the protocol of the session was detected.
	known bool
}

// state returns the current positions and states of both inboxes.
func (s *session) state() sessionState {
	return sessionState{
		[2]int64{s.inboxes[up].offset, s.inboxes[down].offset},
		[2]bool{s.inboxes[up].closed, s.inboxes[down].closed},
		s.layer != nil,
	}
}

var (
	// h2Preface begins the client's bytes in HTTP/2, and h1ResponsePrefix the server's in HTTP/1.
	h2Preface        = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	h1ResponsePrefix = []byte("HTTP/1.")
)

// sniff detects the session's protocol from the first bytes of the client or, if the client will not send any,
// from those of the server, and sets layer. It does nothing if more bytes are needed.
func (s *session) sniff() {
	s.sniffClient()
	if s.layer == nil && (s.sniffExpired || !s.mayWait(down)) {
		s.sniffServer()
	}
}

// sniffClient detects the protocol from the client's first bytes, if they suffice.
func (s *session) sniffClient() {
	client := &s.inboxes[up]
	switch p := client.bytes(); {
	case len(p) >= 6 && isTLS(p):
		s.startTLS(up, p)
	case bytes.HasPrefix(p, h2Preface):
		client.discard(len(h2Preface))
		s.layer = newHTTP2(s)
	case len(p) < sniffBytes && !client.closed && !s.sniffExpired && (isTLS(p) || bytes.HasPrefix(h2Preface, p)):
		// More bytes are needed to decide.
	case len(p) > 0 && isMethod(p):
		s.sniffRequestLine(p)
	case len(p) > 0:
		s.layer = newRaw(s)
	}
}

// sniffRequestLine distinguishes HTTP/1 from other protocols whose lines begin with an upper-case word, such as
// SMTP. p are the client's first bytes.
func (s *session) sniffRequestLine(p []byte) {
	line, _, whole := bytes.Cut(p, []byte("\n"))
	isHTTP := bytes.Contains(line, []byte(" HTTP/"))
	if !isHTTP && !whole {
		if len(p) < maxHead && !s.inboxes[up].closed && !s.sniffExpired {
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

// sniffServer detects the protocol from the server's first bytes, if they suffice.
func (s *session) sniffServer() {
	server := &s.inboxes[down]
	switch p := server.bytes(); {
	case len(p) < sniffBytes && !server.closed && !s.sniffExpired, len(p) == 0:
	case isTLS(p):
		s.startTLS(down, p)
	case bytes.HasPrefix(p, h1ResponsePrefix):
		s.layer = newHTTP1(s)
	case isSettings(p):
		s.layer = newHTTP2(s)
	default:
		s.layer = newRaw(s)
	}
}

// startTLS starts decrypting TLS, whose first bytes p were sent in direction dir. It fails if the ClientHello
// is missing.
func (s *session) startTLS(dir captures.Direction, p []byte) {
	const hello = 1
	switch {
	case s.secure:
		s.failBoth(dir, "TLS inside TLS is not decoded")
	case dir == up && p[0] == recordHandshake && p[5] == hello:
		s.layer = newTLS(s)
	default:
		s.failBoth(dir, "the beginning of the connection, with the TLS handshake, was not recorded")
	}
}

// failBoth stops parsing in both directions, and reports the reason once, for direction dir.
func (s *session) failBoth(dir captures.Direction, why string) {
	other := &s.inboxes[1-dir]
	if !other.closed {
		s.closeInbox(other, why)
	}
	s.fail(dir, why)
}

// isTLS reports whether p looks like the beginning of a TLS record: its type, and a version from SSL 3.0 to TLS 1.3.
func isTLS(p []byte) bool {
	return len(p) > 0 && p[0] >= recordCCS && p[0] <= recordData && (len(p) < 2 || p[1] == 3) && (len(p) < 3 || p[2] <= 4)
}

// isMethod reports whether p begins with an upper-case HTTP method.
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

// isCommonMethod reports whether p, for which isMethod is true, begins with a method that RFC 9110 or 5789
// defines.
func isCommonMethod(p []byte) bool {
	switch method, _, _ := bytes.Cut(p, []byte(" ")); string(method) {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return true
	}
	return false
}

// isSettings reports whether p begins with an HTTP/2 SETTINGS frame, the first frame of a server.
func isSettings(p []byte) bool {
	return len(p) >= 9 && p[0] == 0 && p[3] == 4 && p[4] == 0 && [4]byte(p[5:9]) == [4]byte{}
}

// A lossTolerant is a layer that can continue parsing after bytes that were not captured.
type lossTolerant interface {
	// resumeAfterLoss is called if n bytes of a direction are missing after those in its inbox. The
	// parser has already processed all complete elements. resumeAfterLoss reports whether the layer can
	// continue; if so, it has emptied the inbox.
	resumeAfterLoss(dir captures.Direction, n int64, why string) bool
}

// reportLoss tells the layer that n bytes of a direction were not captured. If the layer cannot continue after
// them, the direction ends. why is the reason for the report.
func (s *session) reportLoss(dir captures.Direction, n int64, why string) {
	in := &s.inboxes[dir]
	if in.closed {
		return
	}
	// Parse everything that was waiting for the other direction.
	s.waitExpired[dir] = true
	s.run()
	s.waitExpired[dir] = false
	if in.closed {
		return
	}
	offset := in.offset
	if l, ok := s.layer.(lossTolerant); !ok || !l.resumeAfterLoss(dir, n, why) {
		s.fail(dir, why)
		return
	}
	s.conn.addUndecoded(dir, offset, why)
	s.run()
}

// scheme returns "https" or "http", for URLs of the session's requests.
func (s *session) scheme() string {
	if s.secure {
		return "https"
	}
	return "http"
}

// A ticker is a layer that waits for a limited time, such as for frames after a reset.
type ticker interface {
	// tick ends waits that have expired. All packets captured before the time passed have been read.
	tick(passed time.Time)
}

// tick ends waits that have expired: it detects the protocol even if more bytes might come, parses responses
// whose requests are missing, and calls the layer's tick. All packets captured before the time passed have been
// read.
func (s *session) tick(passed time.Time) {
	switch {
	case s.done:
	case s.layer == nil:
		if s.hasWaited(up, passed, maxSniffWait) || s.hasWaited(down, passed, maxSniffWait) {
			s.sniffExpired = true
			s.run()
			s.sniffExpired = false
		}
	case !s.isTLS() && s.hasWaited(down, passed, maxPeerWait):
		s.waitExpired[down] = true
		s.run()
		s.waitExpired[down] = false
	}
	if l, ok := s.layer.(ticker); ok {
		l.tick(passed)
	}
}

// hasWaited reports whether unread bytes of a direction arrived more than d before passed.
func (s *session) hasWaited(dir captures.Direction, passed time.Time, d time.Duration) bool {
	in := &s.inboxes[dir]
	if in.len() == 0 {
		return false
	}
	t, _ := in.firstRun(1)
	return passed.Sub(t) > d
}

// isTLS reports whether the session's protocol is TLS.
func (s *session) isTLS() bool {
	_, ok := s.layer.(*tlsLayer)
	return ok
}
