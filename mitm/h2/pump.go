package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	pumpSize       = 64 << 10
	maxHeaderFrame = 1 << 20 // a frame that has to be read as a whole
	maxHeaderList  = 8 << 20 // a header section, decoded
	maxHeaderTable = 1 << 20 // HPACK's
	headerOverhead = 32      // of a field, as HPACK counts it
)

// A pump passes one direction of an HTTP/2 connection on, frame by frame, and
// has it recorded. What is not changed is written as it was read, many frames
// at a time: whatever has come in when the next read would wait.
type pump struct {
	relay    *Relay
	dir      captures.Direction
	src, dst *h2End

	buf                []byte
	sent, parsed, have int // written on, understood, read
	left               int // of a frame that is longer than buf
	long               longFrame
	recode             bool   // out is written, instead of buf as it is
	out                []byte // frames
	err                error  // of writing

	block  *headerBlock // the one that is passing; nil: none
	dec    *hpack.Decoder
	fields []hpack.HeaderField
	size   int // of fields
	enc    *hpack.Encoder
	encBuf []byte

	refused uint32 // the first stream that is not passed on; 0: none
	body    bodyRun
	ended   int // exchanges that end with what is not written yet
}

// A bodyRun is the DATA of one stream that came together.
type bodyRun struct {
	stream *h2Stream
	data   []byte // of the frame itself, or
	joined []byte // of several
}

func newPump(r *Relay, dir captures.Direction, src, dst *h2End) *pump {
	p := &pump{relay: r, dir: dir, src: src, dst: dst, buf: make([]byte, pumpSize)}
	p.dec = hpack.NewDecoder(hpackDefault, p.emit)
	p.dec.SetMaxStringLength(maxHeaderList)
	src.wire.bulk(p.flush)
	return p
}

// Run pumps until the connection ends, and returns whose end it was that broke.
func (p *pump) run() (broken *h2End, err error) {
	defer func() {
		if p.block != nil && p.block.opens {
			p.ended++
		}
		p.settle()
	}()
	err = p.parse() // what was read before
	for err == nil && p.err == nil {
		p.compact()
		n, readErr := p.src.conn.Read(p.buf[p.have:])
		p.have += n
		if err = p.parse(); err == nil && readErr != nil {
			err = readErr
			p.remains()
		}
	}
	p.flush()
	if err == nil {
		return p.dst, p.err
	}
	return p.src, err
}

// compact makes room for the next read.
func (p *pump) compact() {
	if p.have > len(p.buf)-defaultFrameSize {
		p.flush()
	}
	if p.sent == p.parsed && p.parsed > 0 {
		p.have = copy(p.buf, p.buf[p.parsed:p.have])
		p.sent, p.parsed = 0, 0
	}
}

// flush records and writes what was understood. It may be called from within a
// read, so it moves nothing.
func (p *pump) flush() {
	p.record()
	if p.err != nil {
		return
	}
	inside := p.left > 0 && !p.long.refused || p.block != nil && !p.recode
	switch {
	case p.recode && len(p.out) > 0:
		p.err = p.dst.write(p.out, inside)
		p.out = p.out[:0]
	case !p.recode && p.parsed > p.sent:
		p.err = p.dst.write(p.buf[p.sent:p.parsed], inside)
	}
	p.sent = p.parsed
	p.settle()
}

// settle lets those exchanges go whose last bytes were written.
func (p *pump) settle() {
	if n := p.ended; n > 0 {
		p.ended = 0
		p.relay.settled(n)
	}
}

// remains passes on what the end of the connection has cut: a part of a frame.
func (p *pump) remains() {
	rest := p.buf[p.parsed:p.have]
	if len(rest) == 0 || p.recode && p.block != nil || p.refused != 0 {
		return
	}
	if len(rest) > frameHeaderSize {
		if h := parseFrameHeader(rest); h.kind == frameData && !h.has(flagPadded) {
			p.data(p.relay.stream(h.stream), rest[frameHeaderSize:])
		}
	}
	p.pass(rest)
	p.parsed = p.have
}

// parse understands the frames that are there.
func (p *pump) parse() error {
	for {
		rest := p.buf[p.parsed:p.have]
		if p.left > 0 {
			if len(rest) == 0 {
				return nil
			}
			p.piece(rest[:min(len(rest), p.left)])
			continue
		}
		if len(rest) < frameHeaderSize {
			return nil
		}
		h := parseFrameHeader(rest)
		if p.block != nil && (h.kind != frameContinuation || h.stream != p.block.stream) {
			return badFrame(codeProtocol, "a frame of type %d within a header block", h.kind)
		}
		n := frameHeaderSize + h.length
		if n > len(p.buf) {
			if ready, err := p.tooLong(h, rest); err != nil || !ready {
				return err
			}
			continue
		}
		if len(rest) < n {
			return nil
		}
		keep, err := p.frame(h, rest[frameHeaderSize:n])
		if err != nil {
			return err
		}
		if keep {
			p.pass(rest[:n])
		}
		p.parsed += n
	}
}

// pass sends bytes of buf on that come next.
func (p *pump) pass(b []byte) {
	if p.recode {
		p.out = append(p.out, b...)
	}
}

// rewrite ends the passing on of bytes as they are.
func (p *pump) rewrite() {
	if p.recode {
		return
	}
	p.flush()
	p.recode = true
	p.enc = hpack.NewEncoder(appender{&p.encBuf})
	p.enc.SetMaxDynamicTableSize(0) // the receiver forgets what it was told so far
}

// frame handles one frame and reports whether it is passed on as it is.
func (p *pump) frame(h frameHeader, payload []byte) (keep bool, err error) {
	if h.kind != frameData {
		p.record()
	}
	switch h.kind {
	case frameHeaders, framePushPromise, frameContinuation:
		return p.headers(h, payload)
	case frameSettings:
		return true, p.settings(h, payload)
	case frameGoAway:
		if len(payload) >= 8 {
			p.relay.goneAway(p.dir, h2Code(binary.BigEndian.Uint32(payload[4:])))
		}
	}
	if p.refuses(h) {
		return false, nil
	}
	switch h.kind {
	case frameData:
		data, err := unpad(h, payload)
		if err != nil {
			return false, err
		}
		s := p.relay.stream(h.stream)
		p.data(s, data)
		if h.has(flagEndStream) {
			p.record()
			p.ended += p.relay.sideEnded(s, h.stream, p.dir)
		}
	case frameRSTStream:
		if len(payload) != 4 {
			return false, badFrame(codeFrameSize, "RST_STREAM of %d bytes", len(payload))
		}
		p.ended += p.relay.reset(h.stream, p.dir, h2Code(binary.BigEndian.Uint32(payload)))
	}
	return true, nil
}

// data takes bytes of a stream's body, nil if it is none that is recorded.
func (p *pump) data(s *h2Stream, data []byte) {
	b := &p.body
	switch {
	case len(data) == 0 || s == nil || s.rec == nil:
		return
	case b.stream != s:
		p.record()
		b.stream, b.data = s, data
		return
	case len(b.joined) == 0:
		b.joined = append(b.joined, b.data...)
	}
	b.joined = append(b.joined, data...)
}

// record hands what has gathered of a body to the recorder.
func (p *pump) record() {
	b := &p.body
	if b.stream == nil {
		return
	}
	data := b.data
	if len(b.joined) > 0 {
		data = b.joined
	}
	b.stream.chunk(p.dir, data)
	b.stream, b.data, b.joined = nil, nil, b.joined[:0]
}

// settings notes what the receiver of the other direction's header blocks can
// take, so that they can be decoded here too, within bounds.
func (p *pump) settings(h frameHeader, payload []byte) error {
	if len(payload)%6 != 0 {
		return badFrame(codeFrameSize, "SETTINGS of %d bytes", len(payload))
	}
	if h.has(flagAck) {
		return nil
	}
	for s := payload; len(s) > 0; s = s[6:] {
		if binary.BigEndian.Uint16(s) != settingHeaderTableSize {
			continue
		}
		if binary.BigEndian.Uint32(s[2:]) > maxHeaderTable {
			binary.BigEndian.PutUint32(s[2:], maxHeaderTable)
		}
		p.relay.tables[1-p.dir].Store(binary.BigEndian.Uint32(s[2:]))
	}
	return nil
}

// refuses reports whether a frame is of a stream that is not passed on, and
// gives back what it took of the window that the other streams share.
func (p *pump) refuses(h frameHeader) bool {
	if p.refused == 0 || h.stream < p.refused || h.stream%2 == 0 {
		return false
	}
	if h.kind == frameData && h.length > 0 {
		p.src.inject(appendFrame(nil, frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(h.length))))
	}
	return true
}
