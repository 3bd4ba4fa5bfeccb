package pcap

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
)

// maxPipelined limits the requests that wait for their responses.
const maxPipelined = 1000

// An http1 reads the messages of an HTTP/1 connection.
//
// Source: RFC 9112.
type http1 struct {
	session         *session
	dirs            [2]http1Direction
	waiting         []*exchange // whose responses have not ended, in order
	tunnel          *session    // after CONNECT
	upgraded        *exchange   // after an upgrade: takes all that follows
	switchRequested bool        // a request wants to change what is spoken
}

// An http1Direction is where the reading of a direction stands.
type http1Direction struct {
	state bodyState
	left  int64 // of the body or chunk; -1: to the connection's end
	x     *exchange
}

// A bodyState says what comes next.
type bodyState uint8

const (
	atHead bodyState = iota
	inBody
	atChunk    // a chunk's length
	inChunk    // a chunk's bytes
	afterChunk // the end of its line
	atTrailers
)

func newHTTP1(s *session) *http1 {
	s.conn.setProtocol("http/1.1")
	return &http1{session: s}
}

func (h *http1) step(dir captures.Direction) {
	in := &h.session.inboxes[dir]
	for in.len() > 0 {
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
	if !in.closed || in.len() > 0 && in.ending.missing == "" && h.session.mayWait(dir) {
		return
	}
	if h.tunnel != nil {
		h.tunnel.end(dir, in.ending)
	}
	// A body without a length ends where the connection does.
	d := &h.dirs[dir]
	if d.state == inBody && d.left < 0 && in.ending.missing == "" && !in.ending.reset {
		h.endMessage(dir)
	}
}

func (h *http1) close() {
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
		if d.x != nil {
			d.x.endAtClose(client, server)
		}
	}
	for _, x := range h.waiting {
		x.endAtClose(client, server)
	}
}

// readElement takes what it can of one element of a message.
func (h *http1) readElement(dir captures.Direction) error {
	in, d := &h.session.inboxes[dir], &h.dirs[dir]
	switch d.state {
	case atHead:
		if dir == up {
			return h.readRequest()
		}
		return h.readResponse()
	case inBody, inChunk:
		n := in.len()
		if d.left >= 0 {
			n = int(min(int64(n), d.left))
			d.left -= int64(n)
		}
		t := in.time(n)
		h.forwardBody(dir, d.x, n)
		switch {
		case d.left != 0:
		case d.state == inChunk:
			d.state = afterChunk
		default:
			d.x.finishMessage(h, dir, t)
		}
		return nil
	case afterChunk, atChunk:
		line, n, err := cutLine(in.bytes())
		if n == 0 {
			return err
		}
		in.discard(n)
		if d.state == afterChunk {
			if len(line) > 0 {
				return fmt.Errorf("%q behind a chunk", excerpt(line))
			}
			d.state = atChunk
			return nil
		}
		return d.chunkLength(line)
	default:
		return h.readTrailers(dir)
	}
}

// chunkLength reads a chunk's length, in hex, before its extensions.
func (d *http1Direction) chunkLength(line []byte) error {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("chunk of length %q", excerpt(line))
	}
	d.left, d.state = n, inChunk
	if n == 0 {
		d.state = atTrailers
	}
	return nil
}

// forwardBody hands n body bytes on.
func (h *http1) forwardBody(dir captures.Direction, x *exchange, n int) {
	in := &h.session.inboxes[dir]
	p := in.bytes()[:n]
	for len(p) > 0 { // what came at one time is one chunk
		t, k := in.firstRun(len(p))
		x.addChunk(dir, t, p[:k])
		in.discard(k)
		p = p[k:]
	}
}

func (h *http1) readTrailers(dir captures.Direction) error {
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
	d.x.setTrailers(dir, fields)
	d.x.finishMessage(h, dir, t)
	return nil
}

// readRequest reads a request's head. After a request that asks for another protocol,
// nothing is read until its response is known.
func (h *http1) readRequest() error {
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
	method, rest, ok := strings.Cut(first, " ")
	target, version, ok2 := cutLast(rest, " HTTP/")
	if !ok || !ok2 || !isMethod([]byte(method+" ")) {
		return fmt.Errorf("request line %q", excerpt([]byte(first)))
	}
	if len(h.waiting) == maxPipelined {
		return fmt.Errorf("more than %d requests without a response", maxPipelined)
	}
	t := in.time(n)
	in.discard(n)
	x := &exchange{started: t, method: method, target: target}
	if method != "CONNECT" { // an opened tunnel is no exchange
		x = h.session.conn.begin(t, method, h.url(target, fields), version, fields)
	}
	h.waiting = append(h.waiting, x)
	d.x = x
	h.switchRequested = method == "CONNECT" || fields.Get("Upgrade") != ""
	length, err := bodyLength(fields)
	if err != nil {
		return err
	}
	if length == untilClose {
		length = 0 // a request says where it ends
	}
	h.startBody(up, length)
	if length == 0 {
		x.finishMessage(h, up, t)
	}
	return nil
}

func (h *http1) url(target string, fields captures.Headers) string {
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

// readResponse reads a response's head.
func (h *http1) readResponse() error {
	in, d := &h.session.inboxes[down], &h.dirs[down]
	if len(h.waiting) == 0 && h.session.mayWait(down) {
		return nil
	}
	first, fields, n, err := parseHead(in.bytes())
	if n == 0 || err != nil {
		return err
	}
	version, status, ok := parseStatusLine(first)
	if !ok {
		return fmt.Errorf("status line %q", excerpt([]byte(first)))
	}

	t := in.time(n)
	in.discard(n)
	if len(h.waiting) == 0 {
		x := h.session.conn.begin(t, "", h.session.scheme()+"://"+h.session.conn.host()+"/", version, nil)
		x.orphan, x.done[up] = true, true
		h.waiting = append(h.waiting, x)
	}

	// What follows may not be HTTP, or not be the response yet.
	x := h.waiting[0]
	switch {
	case status == 101 || x.method == "CONNECT" && status/100 == 2:
		h.switchProtocol(x, t, status, fields)
		return nil
	case status < 200:
		return nil // informational: the response is still to come
	}

	h.switchRequested = false
	if x.recording == nil && x.method == "CONNECT" {
		x = h.beginRefusedTunnel(version)
	}
	d.x = x
	x.setResponse(t, status, fields)

	length, err := bodyLength(fields)
	if err != nil {
		return err
	}
	if x.method == "HEAD" || status == 204 || status == 304 {
		length = 0
	}
	h.startBody(down, length)
	if length == 0 {
		x.finishMessage(h, down, t)
	}
	return nil
}

// parseStatusLine returns the version and the status of a response's first line.
func parseStatusLine(line string) (version string, status int, ok bool) {
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	version, ok = strings.CutPrefix(version, "HTTP/")
	return version, status, ok && err == nil && status >= 100 && status <= 999
}

// beginRefusedTunnel begins an exchange for the CONNECT request that is answered next. A
// CONNECT that is accepted is not recorded.
func (h *http1) beginRefusedTunnel(version string) *exchange {
	x := h.waiting[0]
	refused := h.session.conn.begin(x.started, x.method, h.session.scheme()+"://"+h.session.conn.host()+"/", version, nil)
	refused.done = x.done
	if h.dirs[up].x == x {
		h.dirs[up].x = refused
	}
	h.waiting[0] = refused
	return refused
}

// switchProtocol begins the protocol that follows an accepted CONNECT or an upgrade.
func (h *http1) switchProtocol(x *exchange, t time.Time, status int, fields captures.Headers) {
	h.waiting = h.waiting[1:]
	if x.method != "CONNECT" {
		x.setResponse(t, status, fields)
		h.upgraded = x
		return
	}
	h.dirs[up].x = nil
	h.tunnel = newSession(h.session.conn, h.session.secure, h.session.depth+1)
	h.tunnel.target = x.target
	if h.tunnel.depth > maxNesting {
		h.tunnel.failBoth(up, "a tunnel within a tunnel within a tunnel is not read")
	}
}

// startBody sets the direction to read a body of a length, or a chunked one.
func (h *http1) startBody(dir captures.Direction, length int64) {
	d := &h.dirs[dir]
	d.left = length
	switch length {
	case isChunked:
		d.state = atChunk
	case 0:
		d.state = atHead
	default:
		d.state = inBody
	}
}

// endMessage ends the message of a direction.
func (h *http1) endMessage(dir captures.Direction) {
	d := &h.dirs[dir]
	if d.x != nil {
		d.x.finishMessage(h, dir, h.session.inboxes[dir].ending.t)
	}
}

// skipLost goes on where a body's length tells how much of it is missing.
func (h *http1) skipLost(dir captures.Direction, n int64, why string) bool {
	in, d := &h.session.inboxes[dir], &h.dirs[dir]
	switch {
	case in.len() > 0:
		return false // within a header section or a line
	case h.tunnel != nil:
		h.tunnel.reportLoss(dir, n, why)
	case h.upgraded != nil:
		h.upgraded.lossReason = why
	case d.x == nil || d.state != inBody && d.state != inChunk || d.left >= 0 && n > d.left:
		return false
	default:
		d.x.lossReason = why
		if d.left >= 0 {
			h.skipBody(dir, n)
		}
	}
	in.skip(n)
	return true
}

// skipBody counts missing bytes of a body.
func (h *http1) skipBody(dir captures.Direction, n int64) {
	d := &h.dirs[dir]
	if d.left -= n; d.left > 0 {
		return
	}
	if d.state == inChunk {
		d.state = afterChunk
		return
	}
	d.x.finishMessage(h, dir, h.session.conn.last)
}

// finishMessage ends a message of x and makes its direction ready for the next.
func (x *exchange) finishMessage(h *http1, dir captures.Direction, t time.Time) {
	d := &h.dirs[dir]
	d.x, d.state = nil, atHead
	if dir == down && len(h.waiting) > 0 && h.waiting[0] == x {
		h.waiting = h.waiting[1:]
	}
	x.finishDirection(dir, t)
}

func (h *http1) tick(passed time.Time) {
	if h.tunnel != nil {
		h.tunnel.tick(passed)
	}
}
