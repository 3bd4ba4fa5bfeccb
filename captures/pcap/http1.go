package pcap

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
)

const (
	maxHead      = 128 << 10 // bytes of a header or trailer section, or of a line
	maxPipelined = 1000      // requests that wait for their responses
)

// An http1 reads the messages of an HTTP/1 connection.
//
// Source: RFC 9112.
type http1 struct {
	s       *session
	dirs    [2]http1Direction
	waiting []*exchange // whose responses have not ended, in order
	tunnel  *session    // after CONNECT
	raw     *exchange   // after an upgrade: takes all that follows
	asked   bool        // a request wants to change what is spoken
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
	s.conn.speaks("http/1.1")
	return &http1{s: s}
}

func (h *http1) step(dir captures.Direction) {
	in := &h.s.in[dir]
	for in.len() > 0 {
		before := in.len()
		if h.tunnel != nil {
			h.tunnel.feed(dir, in.time(in.len()), in.bytes())
			in.take(in.len())
			break
		}
		if h.raw != nil {
			h.pass(dir, h.raw, in.len())
			break
		}
		if err := h.next(dir); err != nil {
			h.s.fail(dir, "HTTP/1: "+err.Error())
			break
		}
		if in.len() == before {
			break
		}
	}
	if !in.closed || in.len() > 0 && in.ending.missing == "" && h.s.waits(dir) {
		return
	}
	if h.tunnel != nil {
		h.tunnel.end(dir, in.ending)
	}
	// A body without a length ends where the connection does.
	d := &h.dirs[dir]
	if d.state == inBody && d.left < 0 && in.ending.missing == "" && !in.ending.reset {
		h.messageEnd(dir)
	}
}

func (h *http1) close() {
	client, server := h.s.in[up].ending, h.s.in[down].ending
	if h.tunnel != nil {
		h.tunnel.end(up, client)
		h.tunnel.end(down, server)
	}
	if h.raw != nil {
		if client.missing == "" && server.missing == "" && !client.reset && !server.reset {
			h.raw.end(later(client.t, server.t), captures.Complete, "")
		} else {
			h.raw.cut(client, server)
		}
	}
	for _, d := range h.dirs {
		if d.x != nil {
			d.x.cut(client, server)
		}
	}
	for _, x := range h.waiting {
		x.cut(client, server)
	}
}

// next takes what it can of one element of a message.
func (h *http1) next(dir captures.Direction) error {
	in, d := &h.s.in[dir], &h.dirs[dir]
	switch d.state {
	case atHead:
		if dir == up {
			return h.request()
		}
		return h.response()
	case inBody, inChunk:
		n := in.len()
		if d.left >= 0 {
			n = int(min(int64(n), d.left))
			d.left -= int64(n)
		}
		t := in.time(n)
		h.pass(dir, d.x, n)
		switch {
		case d.left != 0:
		case d.state == inChunk:
			d.state = afterChunk
		default:
			d.x.finishAt(h, dir, t)
		}
		return nil
	case afterChunk, atChunk:
		line, n, err := takeLine(in.bytes())
		if n == 0 {
			return err
		}
		in.take(n)
		if d.state == afterChunk {
			if len(line) > 0 {
				return fmt.Errorf("%q behind a chunk", shown(line))
			}
			d.state = atChunk
			return nil
		}
		return d.chunkLength(line)
	default:
		return h.trailers(dir)
	}
}

// chunkLength reads a chunk's length, in hex, before its extensions.
func (d *http1Direction) chunkLength(line []byte) error {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("chunk of length %q", shown(line))
	}
	d.left, d.state = n, inChunk
	if n == 0 {
		d.state = atTrailers
	}
	return nil
}

// pass hands n body bytes on.
func (h *http1) pass(dir captures.Direction, x *exchange, n int) {
	in := &h.s.in[dir]
	p := in.bytes()[:n]
	for len(p) > 0 { // what came at one time is one chunk
		t, k := in.run(len(p))
		x.chunk(dir, t, p[:k])
		in.take(k)
		p = p[k:]
	}
}

func (h *http1) trailers(dir captures.Direction) error {
	in, d := &h.s.in[dir], &h.dirs[dir]
	head, n, err := takeTrailers(in.bytes())
	if n == 0 {
		return err
	}
	fields, err := parseFields(head)
	if err != nil {
		return err
	}
	t := in.time(n)
	in.take(n)
	d.x.trailers(dir, fields)
	d.x.finishAt(h, dir, t)
	return nil
}

// request reads a request's head. After one that wants to change what is
// spoken, nothing is read until the answer is known.
func (h *http1) request() error {
	in, d := &h.s.in[up], &h.dirs[up]
	if h.asked {
		if h.s.waits(up) {
			return nil
		}
		h.asked = false
	}
	first, fields, n, err := takeHead(in.bytes())
	if n == 0 || err != nil {
		return err
	}
	method, rest, ok := strings.Cut(first, " ")
	target, version, ok2 := cutLast(rest, " HTTP/")
	if !ok || !ok2 || !isMethod([]byte(method+" ")) {
		return fmt.Errorf("request line %q", shown([]byte(first)))
	}
	if len(h.waiting) == maxPipelined {
		return fmt.Errorf("more than %d requests without a response", maxPipelined)
	}
	t := in.time(n)
	in.take(n)
	x := &exchange{started: t, method: method}
	if method != "CONNECT" { // an opened tunnel is no exchange
		x = h.s.conn.begin(t, method, h.url(target, fields), version, fields)
	}
	h.waiting = append(h.waiting, x)
	d.x = x
	h.asked = method == "CONNECT" || fields.Get("Upgrade") != ""
	length, err := bodyLength(fields)
	if err != nil {
		return err
	}
	if length == toTheEnd {
		length = 0 // a request says where it ends
	}
	h.body(up, length)
	if length == 0 {
		x.finishAt(h, up, t)
	}
	return nil
}

func (h *http1) url(target string, fields captures.Headers) string {
	if strings.Contains(target, "://") {
		return target
	}
	host := fields.Get("Host")
	if host == "" {
		host = h.s.conn.server().String()
	}
	if target == "*" {
		target = ""
	}
	return h.s.scheme() + "://" + host + target
}

// response reads a response's head.
func (h *http1) response() error {
	in, d := &h.s.in[down], &h.dirs[down]
	if len(h.waiting) == 0 && h.s.waits(down) {
		return nil
	}
	first, fields, n, err := takeHead(in.bytes())
	if n == 0 || err != nil {
		return err
	}
	version, rest, _ := strings.Cut(first, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	version, ok := strings.CutPrefix(version, "HTTP/")
	if err != nil || !ok || status < 100 || status > 999 {
		return fmt.Errorf("status line %q", shown([]byte(first)))
	}
	t := in.time(n)
	in.take(n)
	if len(h.waiting) == 0 {
		x := h.s.conn.begin(t, "", h.s.scheme()+"://"+h.s.conn.host()+"/", version, nil)
		x.orphan, x.done[up] = true, true
		h.waiting = append(h.waiting, x)
	}
	x := h.waiting[0]
	switch {
	case status == 101 || x.method == "CONNECT" && status/100 == 2:
		h.change(x, status, fields)
		return nil
	case status < 200:
		return nil // informational: the response is still to come
	}
	h.asked = false
	if x.rec == nil && x.method == "CONNECT" {
		refused := h.s.conn.begin(x.started, x.method, h.s.scheme()+"://"+h.s.conn.host()+"/", version, nil)
		refused.done = x.done
		if h.dirs[up].x == x {
			h.dirs[up].x = refused
		}
		x, h.waiting[0] = refused, refused
	}
	d.x = x
	x.response(status, fields)
	length, err := bodyLength(fields)
	if err != nil {
		return err
	}
	if x.method == "HEAD" || status == 204 || status == 304 {
		length = 0
	}
	h.body(down, length)
	if length == 0 {
		x.finishAt(h, down, t)
	}
	return nil
}

// change begins what follows a tunnel's opening or an upgrade.
func (h *http1) change(x *exchange, status int, fields captures.Headers) {
	h.waiting = h.waiting[1:]
	if x.method != "CONNECT" {
		x.response(status, fields)
		h.raw = x
		return
	}
	h.dirs[up].x = nil
	h.tunnel = newSession(h.s.conn, h.s.secure, h.s.depth+1)
	if h.tunnel.depth > maxNesting {
		h.tunnel.failBoth(up, "a tunnel within a tunnel within a tunnel is not read")
	}
}

// body sets the direction to read a body of a length, or a chunked one.
func (h *http1) body(dir captures.Direction, length int64) {
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

// messageEnd ends the message of a direction.
func (h *http1) messageEnd(dir captures.Direction) {
	d := &h.dirs[dir]
	if d.x != nil {
		d.x.finishAt(h, dir, h.s.in[dir].ending.t)
	}
}

// lose goes on where a body's length tells how much of it is missing.
func (h *http1) lose(dir captures.Direction, n int64, why string) bool {
	in, d := &h.s.in[dir], &h.dirs[dir]
	switch {
	case in.len() > 0:
		return false // within a header section or a line
	case h.tunnel != nil:
		h.tunnel.lost(dir, n, why)
	case h.raw != nil:
		h.raw.lost = why
	case d.x == nil || d.state != inBody && d.state != inChunk || d.left >= 0 && n > d.left:
		return false
	default:
		d.x.lost = why
		if d.left >= 0 {
			h.passOver(dir, n)
		}
	}
	in.jump(n)
	return true
}

// passOver counts missing bytes of a body.
func (h *http1) passOver(dir captures.Direction, n int64) {
	d := &h.dirs[dir]
	if d.left -= n; d.left > 0 {
		return
	}
	if d.state == inChunk {
		d.state = afterChunk
		return
	}
	d.x.finishAt(h, dir, h.s.conn.last)
}

// finishAt ends a message of x and makes its direction ready for the next.
func (x *exchange) finishAt(h *http1, dir captures.Direction, t time.Time) {
	d := &h.dirs[dir]
	d.x, d.state = nil, atHead
	if dir == down && len(h.waiting) > 0 && h.waiting[0] == x {
		h.waiting = h.waiting[1:]
	}
	x.finish(dir, t)
}
