package pcap

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/decode/envelope"
)

// frameHeader is the length of a frame's header in bytes.
const frameHeader = 9

// Limits of a connection.
const (
	// maxFrame limits a frame in bytes. Larger ones would never be complete.
	maxFrame = maxInbox - 1<<16

	// maxBlock and maxSection limit a header section in bytes, compressed and
	// decompressed.
	maxBlock   = 1 << 20
	maxSection = 1 << 20

	// maxTable limits an HPACK table in bytes.
	maxTable = 1 << 20

	// maxStreams limits the streams that are open at once.
	maxStreams = 20_000

	// maxResets limits the streams that were reset and have not ended yet.
	maxResets = 100
)

// An http2Layer reads the frames of an HTTP/2 connection.
//
// Source: RFC 9113, RFC 7541.
type http2Layer struct {
	session *session
	dirs    [2]http2Direction
	streams map[uint32]*stream

	// highest is the highest id of the client's streams that were seen.
	highest uint32

	// resets are the streams that were reset, the earliest first. Some may have
	// ended since.
	resets []uint32
}

// An http2Direction is the state of one direction's frames.
type http2Direction struct {
	framer *http2.Framer
	hpack  *hpack.Decoder
	block  block
	gap    frameGap
}

// A stream is an exchange and how far it is.
type stream struct {
	exchange  *exchange
	responded bool
	reset     *streamReset
}

// A streamReset is a RST_STREAM.
type streamReset struct {
	dir  captures.Direction
	t    time.Time
	code http2.ErrCode
}

// A block is a header section that may span several frames.
type block struct {
	open     bool
	stream   uint32 // whose headers they are
	promised bool   // by the server
	end      bool   // of the stream's direction
	bytes    []byte
	fields   captures.Headers
	pseudo   map[string]string
	size     int
	tooLong  bool
	unknown  bool // some of its fields were told before a loss
}

func newHTTP2(s *session) *http2Layer {
	s.conn.setProtocol("h2")
	l := &http2Layer{session: s, streams: map[uint32]*stream{}}
	for i := range l.dirs {
		d := &l.dirs[i]
		d.newFramer(&s.inboxes[i])
		d.newTable(4096)
	}
	return l
}

func (l *http2Layer) step(dir captures.Direction) {
	in := &l.session.inboxes[dir]
	if !l.resync(dir) {
		return
	}
	for in.len() >= frameHeader {
		b := in.bytes()
		n := frameHeader + (int(b[0])<<16 | int(b[1])<<8 | int(b[2]))
		if n > maxFrame {
			l.session.fail(dir, fmt.Sprintf("HTTP/2: a frame of %d bytes", n))
			return
		}
		if len(b) < n || dir == down && l.mustWait(b) {
			return
		}
		at, t := in.offset, in.time(n)
		f, err := l.dirs[dir].framer.ReadFrame()
		if err == nil {
			err = l.handleFrame(dir, t, f)
		}
		if e := (http2.StreamError{}); err != nil && !errors.As(err, &e) {
			l.session.fail(dir, fmt.Sprintf("HTTP/2: frame at offset %d: %v", at, err))
			return
		}
	}
}

// mustWait reports whether a frame of the server belongs to a request that is
// still to come.
func (l *http2Layer) mustWait(b []byte) bool {
	id := uint32(b[5]&0x7f)<<24 | uint32(b[6])<<16 | uint32(b[7])<<8 | uint32(b[8])
	return id%2 == 1 && id > l.highest && l.session.mayWait(down)
}

func (l *http2Layer) close() {
	for _, id := range l.resets {
		l.endReset(id)
	}
	for _, st := range l.streams {
		st.exchange.endAtClose(l.session.inboxes[up].ending, l.session.inboxes[down].ending)
	}
	l.streams = nil
}

// handleFrame takes a frame.
func (l *http2Layer) handleFrame(dir captures.Direction, t time.Time, f http2.Frame) error {
	d := &l.dirs[dir]
	switch f := f.(type) {
	case *http2.DataFrame:
		st := l.streams[f.StreamID]
		if st == nil {
			return nil
		}
		st.exchange.addChunk(dir, t, f.Data())
		if f.StreamEnded() {
			l.finishDirection(dir, f.StreamID, t)
		}
	case *http2.HeadersFrame:
		d.block.begin(f.StreamID, f.StreamEnded(), false)
		return l.addHeaderFragment(dir, t, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.PushPromiseFrame:
		d.block.begin(f.PromiseID, false, true)
		return l.addHeaderFragment(dir, t, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		return l.addHeaderFragment(dir, t, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.RSTStreamFrame:
		l.noteReset(dir, f.StreamID, t, f.ErrCode)
	case *http2.GoAwayFrame:
		if dir == down {
			l.handleGoAway(f.LastStreamID, t, f.ErrCode)
		}
	}
	return nil
}

func (b *block) begin(id uint32, end, promised bool) {
	*b = block{open: true, stream: id, end: end, promised: promised, bytes: b.bytes[:0], pseudo: map[string]string{}}
}

// addHeaderFragment takes a part of a header section, and the section when it is whole.
func (l *http2Layer) addHeaderFragment(dir captures.Direction, t time.Time, p []byte, whole bool) error {
	d := &l.dirs[dir]
	b := &d.block
	if !b.open {
		return errors.New("CONTINUATION of nothing")
	}
	if len(b.bytes)+len(p) > maxBlock {
		return fmt.Errorf("a header section of more than %d bytes", maxBlock)
	}
	b.bytes = append(b.bytes, p...)
	if !whole {
		return nil
	}
	b.open = false
	if _, err := d.hpack.Write(b.bytes); err != nil {
		return err
	}
	if err := d.hpack.Close(); err != nil {
		return err
	}
	if b.tooLong {
		l.session.conn.addUndecoded(dir, l.session.inboxes[dir].offset, fmt.Sprintf("a header section of stream %d is longer than %d bytes: its end is left out", b.stream, maxSection))
	}
	return l.handleSection(dir, t, b)
}

// addField takes a field of the section that is being read.
func (d *http2Direction) addField(f hpack.HeaderField) {
	b := &d.block
	b.size += len(f.Name) + len(f.Value) + 32
	switch {
	case f.Name == unknownName && d.gap.why != "":
		b.unknown = true
	case b.size > maxSection:
		b.tooLong = true
	case f.IsPseudo():
		b.pseudo[f.Name] = f.Value
	default:
		b.fields = append(b.fields, captures.Header{Name: f.Name, Value: f.Value})
	}
}

// handleSection takes a header or trailer section.
func (l *http2Layer) handleSection(dir captures.Direction, t time.Time, b *block) error {
	st := l.streams[b.stream]
	switch {
	case dir == up && st == nil, b.promised:
		if dir == up && b.stream <= l.highest {
			return nil // of a stream that has ended
		}
		if err := l.beginExchange(dir, t, b); err != nil {
			return err
		}
	case dir == up:
		st.exchange.setTrailers(up, b.fields)
	case st == nil && b.stream <= l.highest:
		return nil
	case st == nil:
		if err := l.beginOrphan(t, b); err != nil {
			return err
		}
		l.handleResponse(l.streams[b.stream], t, b)
	case st.responded:
		st.exchange.setTrailers(down, b.fields)
	default:
		l.handleResponse(st, t, b)
	}
	if st = l.streams[b.stream]; b.unknown && st != nil {
		st.exchange.lossReason = l.dirs[dir].gap.why + ": header fields that refer to it are left out"
	}
	if b.end {
		l.finishDirection(dir, b.stream, t)
	}
	return nil
}

// beginExchange begins the exchange of a stream.
func (l *http2Layer) beginExchange(dir captures.Direction, t time.Time, b *block) error {
	if len(l.streams) >= maxStreams {
		return fmt.Errorf("more than %d streams at once", maxStreams)
	}
	if dir == up {
		l.highest = max(l.highest, b.stream)
	}
	host := b.pseudo[":authority"]
	if host == "" {
		host = b.fields.Get("host")
	}
	if host == "" {
		host = l.session.conn.host()
	}
	scheme := b.pseudo[":scheme"]
	if scheme == "" {
		scheme = l.session.scheme()
	}
	if protocol := b.pseudo[":protocol"]; protocol != "" { // RFC 8441
		b.fields = slices.Insert(b.fields, 0, captures.Header{Name: ":protocol", Value: protocol})
	}
	x := l.session.conn.begin(t, b.pseudo[":method"], scheme+"://"+host+b.pseudo[":path"], "2", b.fields)
	x.done[up] = b.promised
	l.streams[b.stream] = &stream{exchange: x}
	return nil
}

// beginOrphan begins an exchange whose request was not captured.
func (l *http2Layer) beginOrphan(t time.Time, b *block) error {
	if len(l.streams) >= maxStreams {
		return fmt.Errorf("more than %d streams at once", maxStreams)
	}
	x := l.session.conn.begin(t, "", l.session.scheme()+"://"+l.session.conn.host()+"/", "2", nil)
	x.orphan, x.done[up] = true, true
	l.highest = max(l.highest, b.stream)
	l.streams[b.stream] = &stream{exchange: x}
	return nil
}

func (l *http2Layer) handleResponse(st *stream, t time.Time, b *block) {
	status, err := strconv.Atoi(b.pseudo[":status"])
	if err != nil {
		status = 0
	}
	if status/100 == 1 && !b.end {
		return // informational: the response is still to come
	}
	st.responded = true
	st.exchange.responseEnd = envelope.NewResponseEnd(st.exchange.method, status, b.fields.Get)
	st.exchange.setResponse(t, status, b.fields)
}

// finishDirection ends a direction of a stream.
func (l *http2Layer) finishDirection(dir captures.Direction, id uint32, t time.Time) {
	st := l.streams[id]
	switch {
	case st == nil:
	case st.exchange.finishDirection(dir, t):
		delete(l.streams, id)
	case st.reset != nil && st.reset.dir != dir:
		l.endReset(id)
	}
}

// noteReset notes that a side reset a stream. Frames that the other side sent before it
// saw the reset may follow in the file, so the exchange is not ended at once.
func (l *http2Layer) noteReset(dir captures.Direction, id uint32, t time.Time, code http2.ErrCode) {
	st := l.streams[id]
	if st == nil || st.reset != nil {
		return
	}
	st.reset = &streamReset{dir, t, code}
	if st.exchange.done[1-dir] {
		l.endReset(id)
		return
	}
	l.resets = append(l.resets, id)
	if len(l.resets) > maxResets {
		l.endReset(l.resets[0])
		l.resets = l.resets[1:]
	}
}

// endReset ends a stream that was reset. If the response is complete, so is the exchange:
// a server resets a stream to decline the rest of the request, and a client that has
// all of the content does not wait for END_STREAM.
func (l *http2Layer) endReset(id uint32) {
	st := l.streams[id]
	if st == nil || st.reset == nil {
		return
	}
	delete(l.streams, id)
	switch c := st.reset; {
	case st.exchange.done[down] && !st.exchange.orphan, st.exchange.responseComplete() && (c.dir == up || c.code == http2.ErrCodeNo):
		st.exchange.end(c.t, captures.Complete, "")
	case c.dir == up:
		st.exchange.end(c.t, captures.Canceled, fmt.Sprintf("the client reset the stream: %v", c.code))
	default:
		st.exchange.end(c.t, captures.Reset, fmt.Sprintf("the server reset the stream: %v", c.code))
	}
}

// handleGoAway ends the streams that the server says it will not answer.
func (l *http2Layer) handleGoAway(last uint32, t time.Time, code http2.ErrCode) {
	for id, st := range l.streams {
		if id > last && id%2 == 1 {
			st.exchange.end(t, captures.Reset, fmt.Sprintf("the server is going away (%v) and did not process the request", code))
			delete(l.streams, id)
		}
	}
}

// tick ends streams that were reset a while ago.
func (l *http2Layer) tick(passed time.Time) {
	n := 0
	for ; n < len(l.resets); n++ {
		st := l.streams[l.resets[n]]
		if st != nil && st.reset != nil && passed.Sub(st.reset.t) <= maxTurnWait {
			break
		}
		l.endReset(l.resets[n])
	}
	l.resets = l.resets[n:]
}
