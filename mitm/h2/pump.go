package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	pumpSize = 64 << 10

	// maxHeaderFrame bounds a frame that has to be read as a whole, maxHeaderList a
	// decoded header section, maxHeaderTable HPACK's table; all in bytes.
	maxHeaderFrame = 1 << 20
	maxHeaderList  = 8 << 20
	maxHeaderTable = 1 << 20

	// headerOverhead is what HPACK adds to a field's length.
	headerOverhead = 32
)

// A pump forwards one direction of an HTTP/2 connection, frame by frame, and
// records it. What is not changed is written as it was read, many frames at a
// time: whatever has come in when the next read would wait.
type pump struct {
	relay    *Relay
	dir      captures.Direction
	src, dst *side

	// buf holds what was read: up to forwarded it was written, up to parsed
	// handled, and up to filled it is there.
	buf                       []byte
	forwarded, parsed, filled int

	// longLeft bytes of long, a frame that is longer than buf, are to come.
	longLeft int
	long     longFrame

	// reencode has encoded written, which holds frames, instead of buf.
	reencode bool
	encoded  []byte
	enc      *hpack.Encoder
	encBuf   []byte
	writeErr error

	// block is the header block that is being read; nil: none. fields are those
	// decoded so far, of fieldsSize bytes as HPACK counts them.
	block      *headerBlock
	dec        *hpack.Decoder
	fields     []hpack.HeaderField
	fieldsSize int

	// refusedFrom is the first stream that was refused, with all later ones; 0:
	// none.
	refusedFrom uint32

	data dataRun

	// endedExchanges counts those that end with what is not written yet.
	endedExchanges int
}

// A dataRun is what came together of one stream's DATA: data, in the frame itself,
// or joined, if it is not empty, from several frames.
type dataRun struct {
	stream *stream
	data   []byte
	joined []byte
}

func newPump(r *Relay, dir captures.Direction, src, dst *side) *pump {
	p := &pump{relay: r, dir: dir, src: src, dst: dst, buf: make([]byte, pumpSize)}
	p.dec = hpack.NewDecoder(defaultHeaderTable, p.addField)
	p.dec.SetMaxStringLength(maxHeaderList)
	src.buffered.bufferReads(p.flush)
	return p
}

// run forwards until the connection ends, and returns the side that broke.
func (p *pump) run() (broken *side, err error) {
	defer func() {
		if p.block != nil && p.block.opensStream {
			p.endedExchanges++
		}
		p.releaseEnded()
	}()
	err = p.parseFrames() // what was read before
	for err == nil && p.writeErr == nil {
		p.compact()
		n, readErr := p.src.conn.Read(p.buf[p.filled:])
		p.filled += n
		if err = p.parseFrames(); err == nil && readErr != nil {
			err = readErr
			p.forwardCutFrame()
		}
	}
	p.flush()
	if err == nil {
		return p.dst, p.writeErr
	}
	return p.src, err
}

// compact makes room for the next read.
func (p *pump) compact() {
	if p.filled > len(p.buf)-defaultFrameSize {
		p.flush()
	}
	if p.forwarded == p.parsed && p.parsed > 0 {
		p.filled = copy(p.buf, p.buf[p.parsed:p.filled])
		p.forwarded, p.parsed = 0, 0
	}
}

// flush records and writes what was understood. It may be called from within a
// read, so it moves nothing.
func (p *pump) flush() {
	p.recordData()
	if p.writeErr != nil {
		return
	}
	midFrame := p.longLeft > 0 && !p.long.dropped || p.block != nil && !p.reencode
	switch {
	case p.reencode && len(p.encoded) > 0:
		p.writeErr = p.dst.write(p.encoded, midFrame)
		p.encoded = p.encoded[:0]
	case !p.reencode && p.parsed > p.forwarded:
		p.writeErr = p.dst.write(p.buf[p.forwarded:p.parsed], midFrame)
	}
	p.forwarded = p.parsed
	p.releaseEnded()
}

// releaseEnded releases the exchanges whose last bytes were written.
func (p *pump) releaseEnded() {
	if n := p.endedExchanges; n > 0 {
		p.endedExchanges = 0
		p.relay.releaseExchanges(n)
	}
}

// forwardCutFrame forwards the part of a frame that came before the connection ended.
func (p *pump) forwardCutFrame() {
	rest := p.buf[p.parsed:p.filled]
	if len(rest) == 0 || p.reencode && p.block != nil || p.refusedFrom != 0 {
		return
	}
	if len(rest) > frameHeaderSize {
		if h := parseFrameHeader(rest); h.kind == frameData && !h.has(flagPadded) {
			p.addData(p.relay.findStream(h.stream), rest[frameHeaderSize:])
		}
	}
	p.forward(rest)
	p.parsed = p.filled
}

// parseFrames handles the frames that were read in full.
func (p *pump) parseFrames() error {
	for {
		rest := p.buf[p.parsed:p.filled]
		if p.longLeft > 0 {
			if len(rest) == 0 {
				return nil
			}
			p.forwardLongPart(rest[:min(len(rest), p.longLeft)])
			continue
		}
		if len(rest) < frameHeaderSize {
			return nil
		}
		h := parseFrameHeader(rest)
		if p.block != nil && (h.kind != frameContinuation || h.stream != p.block.stream) {
			return protocolErrorf(codeProtocol, "a frame of type %d within a header block", h.kind)
		}
		n := frameHeaderSize + h.length
		if n > len(p.buf) {
			if ready, err := p.beginLongFrame(h, rest); err != nil || !ready {
				return err
			}
			continue
		}
		if len(rest) < n {
			return nil
		}
		keep, err := p.handleFrame(h, rest[frameHeaderSize:n])
		if err != nil {
			return err
		}
		if keep {
			p.forward(rest[:n])
		}
		p.parsed += n
	}
}

// forward sends the next bytes of buf.
func (p *pump) forward(b []byte) {
	if p.reencode {
		p.encoded = append(p.encoded, b...)
	}
}

// startReencoding has frames written from encoded, with header blocks of the relay's
// own, instead of as they were read.
func (p *pump) startReencoding() {
	if p.reencode {
		return
	}
	p.flush()
	p.reencode = true
	p.enc = hpack.NewEncoder(byteAppender{&p.encBuf})
	p.enc.SetMaxDynamicTableSize(0) // the receiver drops its table
}

// handleFrame handles one frame and reports whether it is forwarded as it is.
func (p *pump) handleFrame(h frameHeader, payload []byte) (keep bool, err error) {
	if h.kind != frameData {
		p.recordData()
	}
	if h.kind == frameRSTStream {
		// Clients drop an answer whose end they read at once with the reset behind it,
		// as they do if both are in one TLS record: the reset gets a record of its own.
		p.flush()
	}
	switch h.kind {
	case frameHeaders, framePushPromise, frameContinuation:
		return p.handleHeaderFrame(h, payload)
	case frameSettings:
		return true, p.limitHeaderTable(h, payload)
	case frameGoAway:
		if len(payload) >= 8 {
			p.relay.noteGoAway(p.dir, errorCode(binary.BigEndian.Uint32(payload[4:])))
		}
	}
	if p.dropsFrame(h) {
		return false, nil
	}
	switch h.kind {
	case frameData:
		data, err := stripPadding(h, payload)
		if err != nil {
			return false, err
		}
		s := p.relay.findStream(h.stream)
		p.addData(s, data)
		if h.has(flagEndStream) {
			p.recordData()
			p.endedExchanges += p.relay.endDirection(s, h.stream, p.dir)
		}
	case frameRSTStream:
		if len(payload) != 4 {
			return false, protocolErrorf(codeFrameSize, "RST_STREAM of %d bytes", len(payload))
		}
		p.endedExchanges += p.relay.resetStream(h.stream, p.dir, errorCode(binary.BigEndian.Uint32(payload)))
	}
	return true, nil
}

// addData adds bytes of a stream's body to what is to be recorded; s is nil if the
// stream is not known.
func (p *pump) addData(s *stream, data []byte) {
	b := &p.data
	switch {
	case len(data) == 0 || s == nil || s.rec == nil:
		return
	case b.stream != s:
		p.recordData()
		b.stream, b.data = s, data
		return
	case len(b.joined) == 0:
		b.joined = append(b.joined, b.data...)
	}
	b.joined = append(b.joined, data...)
}

// recordData records the data that came together.
func (p *pump) recordData() {
	b := &p.data
	if b.stream == nil {
		return
	}
	data := b.data
	if len(b.joined) > 0 {
		data = b.joined
	}
	b.stream.recordChunk(p.dir, data)
	b.stream, b.data, b.joined = nil, nil, b.joined[:0]
}

// limitHeaderTable notes the header table that SETTINGS allow the other direction, so
// that its blocks can be decoded here too, and bounds it.
func (p *pump) limitHeaderTable(h frameHeader, payload []byte) error {
	if len(payload)%6 != 0 {
		return protocolErrorf(codeFrameSize, "SETTINGS of %d bytes", len(payload))
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

// dropsFrame reports whether a frame belongs to a refused stream. If so, it gives back
// what the frame took of the connection's window.
func (p *pump) dropsFrame(h frameHeader) bool {
	if p.refusedFrom == 0 || h.stream < p.refusedFrom || h.stream%2 == 0 {
		return false
	}
	if h.kind == frameData && h.length > 0 {
		p.src.inject(appendFrame(nil, frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(h.length))))
	}
	return true
}
