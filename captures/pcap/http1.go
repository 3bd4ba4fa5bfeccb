package pcap

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
)

// maxPipelined limits the number of requests of an HTTP/1 connection whose responses are outstanding.
const maxPipelined = 1000

// An http1Layer parses the requests and responses of an HTTP/1 connection and records them.
//
// Source: RFC 9112.
type http1Layer struct {
	// session is the pair of byte streams that are parsed as HTTP/1.
	session *session
	// dirs are the states of parsing requests and responses, indexed by captures.Direction.
	dirs [2]http1Direction
	// waiting are the exchanges whose responses are missing or incomplete, in the order of their requests.
	waiting []*exchange
	// tunnel parses the bytes inside an accepted CONNECT; nil otherwise.
	tunnel *session
	// upgraded is the exchange with the accepted protocol upgrade, which receives all further bytes;
	// nil otherwise.
	upgraded *exchange
	// switchRequested means that a request has asked to switch to another protocol, and its response is not
	// known yet.
	switchRequested bool
}

// An http1Direction is the state of parsing one direction of an HTTP/1 connection.
type http1Direction struct {
	// state is the kind of element that is expected next.
	state bodyState
	// bodyLeft is the number of bytes that remain of the body or chunk; -1 means that the body ends with the
	// connection.
	bodyLeft int64

	// message is the exchange whose request or response is being read; nil between messages.
	message *exchange
}

// A bodyState is the element of an HTTP/1 message that the parser expects next.
type bodyState uint8

const (
	// atHead: a request line or status line, with the header section.
	atHead bodyState = iota

	// inBody: bytes of a body that is not chunked.
	inBody
	// atChunk: the line with the length of a chunk.
	atChunk
	// inChunk: the bytes of a chunk.
	inChunk
	// afterChunk: the line end after a chunk.
	afterChunk

	// atTrailers: the trailer section.
	atTrailers
)

// newHTTP1 returns the HTTP/1 parser for the bytes of s.
func newHTTP1(s *session) *http1Layer {
	s.conn.setProtocol("http/1.1")
	return &http1Layer{session: s}
}

// step parses as many elements of HTTP/1 messages as possible from the unread bytes of a direction.
func (h *http1Layer) step(dir captures.Direction) {
	in := &h.session.inboxes[dir]
	for in.len() > 0 {
		// Every turn must consume bytes, or wait for more.
		before := in.len()
		if h.tunnel != nil {
			h.tunnel.feed(dir, in.time(in.len()), in.bytes())
			in.discard(in.len())
			break
		}
		if h.upgraded != nil {
			h.forwardBody(dir, h.upgraded, in.len())
			break
		}
		if err := h.readElement(dir); err != nil {
			h.session.fail(dir, "HTTP/1: "+err.Error())
			break
		}
		if in.len() == before {
			break
		}
	}

	// After the last byte, messages that end with the connection are complete.
	if !in.closed || in.len() > 0 && in.ending.missing == "" && h.session.mayWait(dir) {
		return
	}
	if h.tunnel != nil {
		h.tunnel.end(dir, in.ending)
	}
	// A body without a length ends with the connection.
	d := &h.dirs[dir]
	if d.state == inBody && d.bodyLeft < 0 && in.ending.missing == "" && !in.ending.reset {
		h.endMessage(dir)
	}
}

// close ends the HTTP/1 exchanges that are incomplete when the connection ends.
func (h *http1Layer) close() {
	client, server := h.session.inboxes[up].ending, h.session.inboxes[down].ending
	if h.tunnel != nil {
		h.tunnel.end(up, client)
		h.tunnel.end(down, server)
	}
	if h.upgraded != nil {
		if client.missing == "" && server.missing == "" && !client.reset && !server.reset {
			h.upgraded.end(later(client.t, server.t), captures.Complete, "")
		} else {
			h.upgraded.endAtClose(client, server)
		}
	}
	for _, d := range h.dirs {
		if d.message != nil {
			d.message.endAtClose(client, server)
		}
	}
	for _, x := range h.waiting {
		x.endAtClose(client, server)
	}
}

// readElement parses one element of an HTTP/1 message if it is complete: a head, a part of the body, or
// trailers.
func (h *http1Layer) readElement(dir captures.Direction) error {
	in, d := &h.session.inboxes[dir], &h.dirs[dir]
	switch d.state {
	case atHead:
		if dir == up {
			return h.readRequest()
		}
		return h.readResponse()
	case inBody, inChunk:
		// The rest of a body or chunk, as far as it has arrived.
		n := in.len()
		if d.bodyLeft >= 0 {
			n = int(min(int64(n), d.bodyLeft))
			d.bodyLeft -= int64(n)
		}
		t := in.time(n)
		h.forwardBody(dir, d.message, n)
		switch {
		case d.bodyLeft != 0:
		case d.state == inChunk:
			d.state = afterChunk
		default:
			d.message.finishMessage(h, dir, t)
		}
		return nil
	case afterChunk, atChunk:
		// An empty line ends a chunk; a line with a length begins one.
		line, n, err := cutLine(in.bytes())
		if n == 0 {
			return err
		}
		in.discard(n)
		if d.state == afterChunk {
			if len(line) > 0 {
				return fmt.Errorf("the bytes %q follow a chunk, where CRLF is expected", excerpt(line))
			}
			d.state = atChunk
			return nil
		}
		return d.chunkLength(line)
	default:
		return h.readTrailers(dir)
	}
}

// chunkLength parses the length of a chunk in hex, and ignores chunk extensions.
func (d *http1Direction) chunkLength(line []byte) error {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not the length of a chunk", excerpt(line))
	}
	d.bodyLeft, d.state = n, inChunk
	if n == 0 {
		d.state = atTrailers
	}
	return nil
}

// forwardBody records the next n unread bytes as body of exchange x.
func (h *http1Layer) forwardBody(dir captures.Direction, x *exchange, n int) {
	in := &h.session.inboxes[dir]
	p := in.bytes()[:n]
	// Bytes that arrived together become one chunk.
	for len(p) > 0 {
		t, k := in.firstRun(len(p))
		x.addChunk(dir, t, p[:k])
		in.discard(k)
		p = p[k:]
	}
}

// readTrailers parses and records the trailer section once all of it was received.
func (h *http1Layer) readTrailers(dir captures.Direction) error {
	in, d := &h.session.inboxes[dir], &h.dirs[dir]
	head, n, err := cutTrailers(in.bytes())
	if n == 0 {
		return err
	}
	fields, err := parseFields(head)
	if err != nil {
		return err
	}
	t := in.time(n)
	in.discard(n)
	d.message.setTrailers(dir, fields)
	d.message.finishMessage(h, dir, t)
	return nil
}

// readRequest parses the head of a request once it is complete. If the request before it asked to switch
// protocols, readRequest waits for that request's response.
func (h *http1Layer) readRequest() error {
	in, d := &h.session.inboxes[up], &h.dirs[up]
	if h.switchRequested {
		if h.session.mayWait(up) {
			return nil
		}
		h.switchRequested = false
	}
	first, fields, n, err := parseHead(in.bytes())
	if n == 0 || err != nil {
		return err
	}

	// The target may contain spaces, so the version is what follows the last one.
	method, rest, ok := strings.Cut(first, " ")
	target, version, ok2 := cutLast(rest, " HTTP/")
	if !ok || !ok2 || !isMethod([]byte(method+" ")) {
		return fmt.Errorf("%q is not a request line", excerpt([]byte(first)))
	}
	if len(h.waiting) == maxPipelined {
		return fmt.Errorf("more than %d requests wait for a response", maxPipelined)
	}
	t := in.time(n)
	in.discard(n)
	x := &exchange{started: t, method: method, target: target}
	// An accepted tunnel is not an exchange.
	if method != "CONNECT" {
		x = h.session.conn.begin(t, method, h.url(target, fields), version, fields)
	}
	h.waiting = append(h.waiting, x)
	d.message = x
	h.switchRequested = method == "CONNECT" || fields.Get("Upgrade") != ""

	// The body begins after the head.
	length, err := bodyLength(fields)
	if err != nil {
		return err
	}
	if length == untilClose {
		// The body of a request never ends with the connection.
		length = 0
	}
	h.startBody(up, length)
	if length == 0 {
		x.finishMessage(h, up, t)
	}
	return nil
}

// url returns the absolute URL of a request from its request target and header fields.
func (h *http1Layer) url(target string, fields captures.Headers) string {
	if strings.Contains(target, "://") {
		return target
	}
	host := fields.Get("Host")
	if host == "" {
		host = h.session.conn.server().String()
	}
	if target == "*" {
		target = ""
	}
	return h.session.scheme() + "://" + host + target
}

// readResponse parses the status line and headers of a response once they are complete.
func (h *http1Layer) readResponse() error {
	in, d := &h.session.inboxes[down], &h.dirs[down]

	// The packets of a request may come later in the file than those of its response.
	if len(h.waiting) == 0 && h.session.mayWait(down) {
		return nil
	}
	first, fields, n, err := parseHead(in.bytes())
	if n == 0 || err != nil {
		return err
	}
	version, status, ok := parseStatusLine(first)
	if !ok {
		return fmt.Errorf("%q is not a status line", excerpt([]byte(first)))
	}

	t := in.time(n)
	in.discard(n)

	// The file lacks the request. The response is still recorded, in an exchange of its own.
	if len(h.waiting) == 0 {
		x := h.session.conn.begin(t, "", h.session.scheme()+"://"+h.session.conn.host()+"/", version, nil)
		x.orphan, x.done[up] = true, true
		h.waiting = append(h.waiting, x)
	}

	// The following bytes may not be HTTP, or this may not be the final response.
	x := h.waiting[0]
	switch {
	case status == 101 || x.method == "CONNECT" && status/100 == 2:
		h.switchProtocol(x, t, status, fields)
		return nil
	case status < 200:
		// An interim response; the final one follows.
		return nil
	}

	h.switchRequested = false
	if x.recording == nil && x.method == "CONNECT" {
		x = h.beginRefusedTunnel(version)
	}
	d.message = x
	x.setResponse(t, status, fields)

	length, err := bodyLength(fields)
	if err != nil {
		return err
	}

	// Some responses have no body, whatever their headers declare (RFC 9112, section 6.3).
	if x.method == "HEAD" || status == 204 || status == 304 {
		length = 0
	}
	h.startBody(down, length)
	if length == 0 {
		x.finishMessage(h, down, t)
	}
	return nil
}

// parseStatusLine parses the first line of an HTTP/1 response, such as "HTTP/1.1 200 OK", to "1.1" and 200.
func parseStatusLine(line string) (version string, status int, ok bool) {
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	version, ok = strings.CutPrefix(version, "HTTP/")
	return version, status, ok && err == nil && status >= 100 && status <= 999
}

// beginRefusedTunnel starts recording the exchange of a CONNECT request that the server refused. Accepted ones
// are not recorded; only the traffic inside them is.
func (h *http1Layer) beginRefusedTunnel(version string) *exchange {
	x := h.waiting[0]
	refused := h.session.conn.begin(x.started, x.method, h.session.scheme()+"://"+h.session.conn.host()+"/", version, nil)
	refused.done = x.done
	if h.dirs[up].message == x {
		h.dirs[up].message = refused
	}
	h.waiting[0] = refused
	return refused
}

// switchProtocol handles an accepted CONNECT or upgrade of exchange x: the bytes that follow are parsed as a
// tunnel, or belong to x. t, status and fields are those of the response.
func (h *http1Layer) switchProtocol(x *exchange, t time.Time, status int, fields captures.Headers) {
	h.waiting = h.waiting[1:]
	if x.method != "CONNECT" {
		x.setResponse(t, status, fields)
		h.upgraded = x
		return
	}
	h.dirs[up].message = nil
	h.tunnel = newSession(h.session.conn, h.session.secure, h.session.depth+1)
	h.tunnel.target = x.target
	if h.tunnel.depth > maxNesting {
		h.tunnel.failBoth(up, "a tunnel inside two other tunnels is not decoded")
	}
}

// startBody prepares the parser for a body of length bytes, or for the special values isChunked and untilClose.
func (h *http1Layer) startBody(dir captures.Direction, length int64) {
	d := &h.dirs[dir]
	d.bodyLeft = length
	switch length {
	case isChunked:
		d.state = atChunk
	case 0:
		d.state = atHead
	default:
		d.state = inBody
	}
}

// endMessage ends the current message of a direction at the end of the connection, if there is one.
func (h *http1Layer) endMessage(dir captures.Direction) {
	d := &h.dirs[dir]
	if d.message != nil {
		d.message.finishMessage(h, dir, h.session.inboxes[dir].ending.t)
	}
}

// resumeAfterLoss skips n lost bytes if they are all inside a body, so that parsing can continue; otherwise it
// returns false. why is recorded as the reason in the affected exchange.
func (h *http1Layer) resumeAfterLoss(dir captures.Direction, n int64, why string) bool {
	in, d := &h.session.inboxes[dir], &h.dirs[dir]
	switch {
	case in.len() > 0:
		// The loss is within a header section or a line, which cannot be completed.
		return false
	case h.tunnel != nil:
		h.tunnel.reportLoss(dir, n, why)
	case h.upgraded != nil:
		h.upgraded.lossReason = why
	case d.message == nil || d.state != inBody && d.state != inChunk || d.bodyLeft >= 0 && n > d.bodyLeft:
		return false
	default:
		d.message.lossReason = why
		if d.bodyLeft >= 0 {
			h.skipBody(dir, n)
		}
	}
	in.skip(n)
	return true
}

// skipBody advances the parser over n bytes of a body that are missing in the packet file.
func (h *http1Layer) skipBody(dir captures.Direction, n int64) {
	d := &h.dirs[dir]
	if d.bodyLeft -= n; d.bodyLeft > 0 {
		return
	}
	if d.state == inChunk {
		d.state = afterChunk
		return
	}
	d.message.finishMessage(h, dir, h.session.conn.last)
}

// finishMessage ends the request or response of x at time t, and prepares the parser for the next message in
// that direction.
func (x *exchange) finishMessage(h *http1Layer, dir captures.Direction, t time.Time) {
	d := &h.dirs[dir]
	d.message, d.state = nil, atHead
	if dir == down && len(h.waiting) > 0 && h.waiting[0] == x {
		h.waiting = h.waiting[1:]
	}
	x.finishDirection(dir, t)
}

// tick calls tick for the session inside an accepted CONNECT.
func (h *http1Layer) tick(passed time.Time) {
	if h.tunnel != nil {
		h.tunnel.tick(passed)
	}
}
