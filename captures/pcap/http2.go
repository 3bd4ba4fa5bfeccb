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

// frameHeader is the length of an HTTP/2 frame header in bytes.
const frameHeader = 9

// Limits of an HTTP/2 connection.
const (
	// maxFrame limits a frame, in bytes, so that it fits into an inbox.
	maxFrame = maxInbox - 1<<16

	// maxBlock and maxSection limit a header section, compressed and decompressed, in bytes.
	maxBlock   = 1 << 20
	maxSection = 1 << 20

	// maxTable limits an HPACK table, in bytes.
	maxTable = 1 << 20

	// maxStreams limits the streams that are open at once.
	maxStreams = 20_000

	// maxResets limits the streams that were reset but have not ended yet.
	maxResets = 100
)

// An http2Layer parses the frames of an HTTP/2 connection and records its streams as exchanges.
//
// Source: RFC 9113, RFC 7541.
type http2Layer struct {
	// session is the pair of byte streams that are parsed as HTTP/2.
	session *session
	// dirs are the states of parsing the two directions, indexed by captures.Direction.
	dirs [2]http2Direction
	// streams are the open HTTP/2 streams, by stream id.
	streams map[uint32]*stream

	// highest is the largest stream id that the client has used so far.
	highest uint32

	// resets are the ids of streams that were reset, in order of time. Some may have ended since.
	resets []uint32
}

// An http2Direction is the state of parsing one direction of an HTTP/2 connection.
type http2Direction struct {
	// framer parses HTTP/2 frames.
	framer *http2.Framer
	// hpack decodes header blocks; it keeps the dynamic table of the direction.
	hpack *hpack.Decoder

	// block is the header section that is being received.
	block block
	// gap describes how parsing continues after packets were lost; the zero value means that none were.
	gap lossState
}

// A stream is an HTTP/2 stream with the exchange that it carries.
type stream struct {
	// exchange is the request and response that the stream carries.
	exchange *exchange

	// responded means that the response headers were read.
	responded bool
	// reset is the RST_STREAM frame that ended the stream; nil if there was none.
	reset *streamReset
}

// A streamReset is an HTTP/2 RST_STREAM frame: its direction, time and error code.
type streamReset struct {
	// dir is the direction in which the RST_STREAM frame was sent.
	dir captures.Direction
	// t is the time at which the RST_STREAM frame was captured.
	t time.Time
	// code is the error code in the RST_STREAM frame.
	code http2.ErrCode
}

// A block is an HTTP/2 header section, which may span several frames.
type block struct {
	// open means that more frames of the section are expected.
	open bool
	// stream is the id of the HTTP/2 stream to which the headers belong.
	stream uint32
	// promised means that the headers come from a PUSH_PROMISE frame.
	promised bool
	// end means that the HEADERS frame has the END_STREAM flag.
	end bool
	// bytes is the compressed section so far.
	bytes []byte

	// fields are the decoded regular header fields, in wire order.
	fields captures.Headers
	// pseudo maps the names of the decoded pseudo-header fields, such as ":path", to their values.
	pseudo map[string]string
	// size is the decompressed size of the decoded header fields, in bytes.
	size int
	// tooLong means that size exceeds the limit maxSection, so that some fields are missing.
	tooLong bool
	// unknown means that some fields refer to entries of the HPACK table that were lost.
	unknown bool
}

// newHTTP2 returns the HTTP/2 parser for the bytes of s.
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

// step parses all complete HTTP/2 frames of a direction.
func (l *http2Layer) step(dir captures.Direction) {
	in := &l.session.inboxes[dir]
	if !l.resync(dir) {
		return
	}
	for in.len() >= frameHeader {
		b := in.bytes()
		n := frameHeader + (int(b[0])<<16 | int(b[1])<<8 | int(b[2]))
		if n > maxFrame {
			l.session.fail(dir, fmt.Sprintf("HTTP/2: a frame of %d bytes is too large", n))
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

		// Stream errors are tolerated: the capture shows what was sent.
		if e := (http2.StreamError{}); err != nil && !errors.As(err, &e) {
			l.session.fail(dir, fmt.Sprintf("HTTP/2: frame at offset %d: %v", at, err))
			return
		}
	}
}

// mustWait reports whether the server frame at the beginning of b belongs to a stream whose request has not
// been parsed yet, and so must wait for it.
func (l *http2Layer) mustWait(b []byte) bool {
	id := uint32(b[5]&0x7f)<<24 | uint32(b[6])<<16 | uint32(b[7])<<8 | uint32(b[8])
	return id%2 == 1 && id > l.highest && l.session.mayWait(down)
}

// close ends the HTTP/2 exchanges that are incomplete when the connection ends.
func (l *http2Layer) close() {
	for _, id := range l.resets {
		l.endReset(id)
	}
	for _, st := range l.streams {
		st.exchange.endAtClose(l.session.inboxes[up].ending, l.session.inboxes[down].ending)
	}
	l.streams = nil
}

// handleFrame processes one HTTP/2 frame, which was complete at time t.
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
		// A header section may continue in further frames.
		d.block.begin(f.StreamID, f.StreamEnded(), false)
		return l.addHeaderFragment(dir, t, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.PushPromiseFrame:
		d.block.begin(f.PromiseID, false, true)
		return l.addHeaderFragment(dir, t, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		return l.addHeaderFragment(dir, t, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.RSTStreamFrame:
		// The other side may not have seen it yet.
		l.noteReset(dir, f.StreamID, t, f.ErrCode)
	case *http2.GoAwayFrame:
		if dir == down {
			l.handleGoAway(f.LastStreamID, t, f.ErrCode)
		}
	}
	return nil
}

// begin starts collecting a header section of the stream id. end means that the stream's direction ends with
// it, and promised that it is from a PUSH_PROMISE frame.
func (b *block) begin(id uint32, end, promised bool) {
	*b = block{open: true, stream: id, end: end, promised: promised, bytes: b.bytes[:0], pseudo: map[string]string{}}
}

// addHeaderFragment adds the bytes p to the current header section. whole means that the section is complete,
// so it is decoded and handled.
func (l *http2Layer) addHeaderFragment(dir captures.Direction, t time.Time, p []byte, whole bool) error {
	d := &l.dirs[dir]
	b := &d.block
	if !b.open {
		return errors.New("a CONTINUATION frame does not follow a HEADERS frame")
	}
	if len(b.bytes)+len(p) > maxBlock {
		return fmt.Errorf("the header section has more than %d bytes", maxBlock)
	}
	b.bytes = append(b.bytes, p...)
	if !whole {
		return nil
	}

	// Decode the section at once, because it changes the HPACK table.
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

// addField adds a field that the HPACK decoder has decoded to the current section.
func (d *http2Direction) addField(f hpack.HeaderField) {
	b := &d.block
	b.size += len(f.Name) + len(f.Value) + 32
	switch {
	case f.Name == unknownName && d.gap.reason != "":
		b.unknown = true
	case b.size > maxSection:
		b.tooLong = true
	case f.IsPseudo():
		b.pseudo[f.Name] = f.Value
	default:
		b.fields = append(b.fields, captures.Header{Name: f.Name, Value: f.Value})
	}
}

// handleSection processes a complete header or trailer section b, whose last frame arrived at time t.
func (l *http2Layer) handleSection(dir captures.Direction, t time.Time, b *block) error {
	st := l.streams[b.stream]
	switch {
	case dir == up && st == nil, b.promised:
		if dir == up && b.stream <= l.highest {
			// The stream has ended already.
			return nil
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

	// Some of the fields could not be decoded.
	if st = l.streams[b.stream]; b.unknown && st != nil {
		st.exchange.lossReason = l.dirs[dir].gap.reason + ": header fields that refer to it are left out"
	}
	if b.end {
		l.finishDirection(dir, b.stream, t)
	}
	return nil
}

// beginExchange starts recording the exchange of a new HTTP/2 stream from its request headers b.
func (l *http2Layer) beginExchange(dir captures.Direction, t time.Time, b *block) error {
	if len(l.streams) >= maxStreams {
		return fmt.Errorf("more than %d streams are open at once", maxStreams)
	}
	if dir == up {
		l.highest = max(l.highest, b.stream)
	}

	// Pseudo-header fields form the URL.
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

// beginOrphan starts recording an exchange whose request is missing in the packet file, from its response
// headers b.
func (l *http2Layer) beginOrphan(t time.Time, b *block) error {
	if len(l.streams) >= maxStreams {
		return fmt.Errorf("more than %d streams are open at once", maxStreams)
	}
	x := l.session.conn.begin(t, "", l.session.scheme()+"://"+l.session.conn.host()+"/", "2", nil)
	x.orphan, x.done[up] = true, true
	l.highest = max(l.highest, b.stream)
	l.streams[b.stream] = &stream{exchange: x}
	return nil
}

// handleResponse records the response headers b of a stream; it ignores 1xx responses.
func (l *http2Layer) handleResponse(st *stream, t time.Time, b *block) {
	status, err := strconv.Atoi(b.pseudo[":status"])
	if err != nil {
		status = 0
	}
	if status/100 == 1 && !b.end {
		// An interim response; the final one follows.
		return
	}
	st.responded = true
	st.exchange.responseEnd = envelope.NewResponseEnd(st.exchange.method, status, b.fields.Get)
	st.exchange.setResponse(t, status, b.fields)
}

// finishDirection ends one direction of an HTTP/2 stream.
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

// noteReset remembers a RST_STREAM frame. Frames that the other side had sent before it received the reset may
// follow, so the exchange is ended later, by endReset.
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

// endReset ends the exchange of a stream that was reset. If the response is complete, the exchange counts as
// complete: a server resets a stream to decline the rest of a request, and a client that has received all
// content may not wait for END_STREAM.
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

// handleGoAway ends the streams that the server will not process: those with ids above last.
func (l *http2Layer) handleGoAway(last uint32, t time.Time, code http2.ErrCode) {
	for id, st := range l.streams {
		if id > last && id%2 == 1 {
			st.exchange.end(t, captures.Reset, fmt.Sprintf("the server is going away (%v) and did not process the request", code))
			delete(l.streams, id)
		}
	}
}

// tick ends the exchanges of streams whose reset is long enough ago that no more frames can follow. All packets
// captured before the time passed have been read.
func (l *http2Layer) tick(passed time.Time) {
	n := 0
	for ; n < len(l.resets); n++ {
		st := l.streams[l.resets[n]]
		if st != nil && st.reset != nil && passed.Sub(st.reset.t) <= maxPeerWait {
			break
		}
		l.endReset(l.resets[n])
	}
	l.resets = l.resets[n:]
}
