package h2

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	// pumpSize is the size of a pump's read buffer in bytes.
	pumpSize = 64 << 10

	// maxHeaderFrame is the largest payload, in bytes, of a frame that must be read completely.
	maxHeaderFrame = 1 << 20
	// maxHeaderList is the largest size of a decoded header section in bytes.
	maxHeaderList = 8 << 20
	// maxHeaderTable is the largest size of an HPACK table in bytes.
	maxHeaderTable = 1 << 20

	// headerOverhead is the number of bytes that HPACK counts for each field in addition to name and
	// value.
	headerOverhead = 32
)

// A pump forwards and records one direction of an HTTP/2 connection. Unchanged bytes are written as they were
// read, many frames at a time: everything that has arrived before the next read would block.
type pump struct {
	// relay is the relayed connection.
	relay *Relay
	// dir is the direction in which the pump forwards.
	dir captures.Direction
	// src is the side from which frames are read.
	src *side
	// dst is the side to which they are written.
	dst *side

	// busy is locked while the pump does anything but read, and by others who use its state meanwhile.
	busy sync.Mutex

	// buf contains the bytes that were read from src.
	buf []byte
	// forwarded is the index in buf up to which bytes were written.
	forwarded int
	// parsed is the index in buf up to which frames were processed.
	parsed int
	// filled is the index in buf behind the last valid byte.
	filled int

	// longLeft is how many payload bytes of long have not arrived yet; 0 if there is no such frame.
	longLeft int
	// long is the current frame that is larger than buf, valid while longLeft is not 0.
	long longFrame

	// copying means that the frames in encoded are written instead of the bytes in buf, because some frames are
	// withheld.
	copying bool
	// reencode means that, in addition, the relay encodes all header blocks anew.
	reencode bool
	// encoded are the encoded frames that will be written next, while copying is set.
	encoded []byte
	// enc encodes header blocks into encBuf; nil until reencode is set.
	enc *hpack.Encoder
	// encBuf is the HPACK data of the header block that is being encoded.
	encBuf []byte
	// writeErr is the first error of writing to dst; nothing is written after it.
	writeErr error

	// block is the header block whose frames have not all arrived yet; nil if there is none.
	block *headerBlock
	// dec is the HPACK decoder for the header blocks of src.
	dec *hpack.Decoder
	// fields are the decoded header fields of the current block.
	fields []hpack.HeaderField
	// fieldsSize is the size of fields in bytes, with 32 for each field as HPACK counts it.
	fieldsSize int

	// refusedFrom is the first stream that was refused; later ones are refused too. 0 if none was.
	refusedFrom uint32

	// data are the received body bytes that were not recorded yet.
	data dataRun

	// blockFrame is the frame that is being handled, with its 9-byte header. It refers to buf.
	blockFrame []byte

	// spareRaw and spareFields are the memory of the last header block that was withheld, for the next one.
	spareRaw    []byte
	spareFields []hpack.HeaderField

	// held are the parts of bodies that are withheld until rules can decide about them, except those of requests in
	// openings.
	held []*held
	// heldBytes is the number of body bytes that are withheld, including those of requests in openings.
	heldBytes int
	// rechecks means that recheckHeld has started a goroutine that has not begun its work.
	rechecks atomic.Bool
	// openings are the requests that wait to be opened at the server, in the order of their stream numbers.
	openings []*opening
	// openingBytes is the total length of the frames in openings, in bytes.
	openingBytes int
	// delayed is the request for which the timer of openingDelay was started last; nil before.
	delayed *opening

	// endedExchanges is the number of exchanges whose last bytes were processed but not written yet. Config.Release
	// is called for them after the next write.
	endedExchanges int
}

// A dataRun is consecutive data of one stream: data within a frame, or, if not empty, joined from several
// frames.
type dataRun struct {
	// stream is the stream of the data; nil if there is none.
	stream *stream
	// data are the bytes of the first frame; they refer to the read buffer.
	data []byte
	// joined has all bytes once they come from several frames; empty before.
	joined []byte
}

// newPump returns the pump that reads from src and writes to dst.
func newPump(r *Relay, dir captures.Direction, src, dst *side) *pump {
	p := &pump{relay: r, dir: dir, src: src, dst: dst, buf: make([]byte, pumpSize)}
	p.dec = hpack.NewDecoder(defaultHeaderTable, p.addField)
	p.dec.SetMaxStringLength(maxHeaderList)
	src.buffered.bufferReads(p.flushBeforeRead)
	return p
}

// run forwards frames until a read or a write fails, and returns the side that failed with the error.
func (p *pump) run() (broken *side, err error) {
	p.busy.Lock()
	defer p.busy.Unlock()
	defer func() {
		if p.block != nil && p.block.opensStream {
			p.endedExchanges++
		}
		p.releaseEnded()
	}()
	// Process what was read together with the preface.
	err = p.parseFrames()
	for err == nil && p.writeErr == nil {
		p.compact()
		p.busy.Unlock()
		n, readErr := p.src.conn.Read(p.buf[p.filled:])
		p.busy.Lock()
		p.filled += n
		if err = p.parseFrames(); err == nil && readErr != nil {
			err = readErr
			p.forwardAtEnd()
			p.forwardCutFrame()
		}
	}
	p.flush()
	if err == nil {
		return p.dst, p.writeErr
	}
	return p.src, err
}

// compact frees space in the buffer for the next read.
func (p *pump) compact() {
	if p.filled > len(p.buf)-defaultFrameSize {
		p.flush()
	}
	if p.forwarded == p.parsed && p.parsed > 0 {
		p.filled = copy(p.buf, p.buf[p.parsed:p.filled])
		p.forwarded, p.parsed = 0, 0
	}
}

// flushBeforeRead writes everything processed so far, before a read that may block.
func (p *pump) flushBeforeRead() {
	p.busy.Lock()
	defer p.busy.Unlock()
	p.flush()
	if !p.reencode && len(p.held) == 0 && len(p.openings) == 0 {
		p.copying = false
	}
}

// flush records and writes everything processed so far. It can be called during a read, so it does not move bytes in
// the buffer.
func (p *pump) flush() {
	p.recordData()
	if p.writeErr != nil {
		return
	}
	midFrame := p.longLeft > 0 && !p.long.dropped && !p.long.whole || p.block != nil && !p.reencode
	switch {
	case p.copying && len(p.encoded) > 0:
		p.writeErr = p.dst.write(p.encoded, midFrame)
		p.encoded = p.encoded[:0]
	case !p.copying && p.parsed > p.forwarded:
		p.writeErr = p.dst.write(p.buf[p.forwarded:p.parsed], midFrame)
	}
	p.forwarded = p.parsed
	p.releaseEnded()
}

// releaseEnded calls Config.Release for each exchange whose last bytes were written.
func (p *pump) releaseEnded() {
	if n := p.endedExchanges; n > 0 {
		p.endedExchanges = 0
		p.relay.releaseExchanges(n)
	}
}

// forwardCutFrame forwards the received part of the frame in which the connection ended, unless rules may change it.
func (p *pump) forwardCutFrame() {
	rest := p.buf[p.parsed:p.filled]
	if len(rest) == 0 || p.reencode && p.block != nil || p.refusedFrom != 0 || len(p.held) > 0 || len(p.openings) > 0 {
		return
	}
	if len(rest) > frameHeaderSize {
		h := parseFrameHeader(rest)
		if p.relay.changeOf(h.stream).diverts(p.dir) || p.relay.isCut(h.stream) {
			return
		}
		if h.kind == frameData && !h.has(flagPadded) {
			p.addData(p.relay.findStream(h.stream), rest[frameHeaderSize:])
		}
	}
	p.forward(rest)
	p.parsed = p.filled
}

// parseFrames processes all complete frames in the buffer.
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
		// Only CONTINUATION frames of the same stream may follow an unfinished header block (RFC
		// 9113, section 6.10).
		if p.block != nil && (h.kind != frameContinuation || h.stream != p.block.stream) {
			return protocolErrorf(codeProtocol, "a frame of type %d interrupts a header block", h.kind)
		}
		n := frameHeaderSize + h.length
		if n > len(p.buf) {
			if ready, err := p.beginLongFrame(h, rest); err != nil || !ready {
				return err
			}
			continue
		}

		// The frame must be complete before it is handled.
		if len(rest) < n {
			return nil
		}
		p.blockFrame = rest[:n]
		keep, err := p.handleFrame(h, rest[frameHeaderSize:n])
		if err != nil {
			return err
		}
		if keep {
			p.forwardFrame(h.stream, rest[:n])
		}
		p.parsed += n
	}
}

// forward marks the next processed bytes as to be forwarded: while copying is set, it appends them to encoded;
// otherwise they are written from the read buffer.
func (p *pump) forward(b []byte) {
	if p.copying {
		p.encoded = append(p.encoded, b...)
	}
}

// forwardFrame forwards complete frames of a stream. If the stream's request is not opened at the server yet, they
// are appended behind its HEADERS frame.
func (p *pump) forwardFrame(stream uint32, b []byte) {
	if len(p.openings) > 0 {
		if o := p.findOpening(stream); o != nil {
			p.addFrame(o, b)
			return
		}
	}
	p.forward(b)
}

// startCopying makes the pump write the frames in encoded from now on, so that single frames can be withheld.
func (p *pump) startCopying() {
	if p.copying {
		return
	}
	// What was processed before is written together with what follows, since each write costs more than the copy.
	p.encoded = append(p.encoded[:0], p.buf[p.forwarded:p.parsed]...)
	p.forwarded = p.parsed
	p.copying = true
}

// startReencoding makes the pump encode all header blocks anew from now on, because the receiver's HPACK table would
// no longer match the sender's.
func (p *pump) startReencoding() {
	if p.reencode {
		return
	}
	p.startCopying()
	p.reencode = true
	p.enc = hpack.NewEncoder(byteAppender{&p.encBuf})
	// Do not use the receiver's HPACK table.
	p.enc.SetMaxDynamicTableSize(0)
}

// handleFrame processes a complete frame. keep means that it is forwarded as received.
func (p *pump) handleFrame(h frameHeader, payload []byte) (keep bool, err error) {
	if h.kind != frameData {
		p.recordData()
	}
	if h.kind == frameRSTStream {
		// Clients discard a response if they read its end and the reset from one TLS record. So the reset gets a
		// record of its own.
		p.flush()
	}
	switch h.kind {
	case frameHeaders, framePushPromise, frameContinuation:
		return p.handleHeaderFrame(h, payload)
	case frameSettings:
		return true, p.readSettings(h, payload)
	case frameGoAway:
		if len(payload) >= 8 {
			p.relay.noteGoAway(p.dir, errorCode(binary.BigEndian.Uint32(payload[4:])))
		}
	}
	if p.dropsFrame(h) {
		return false, nil
	}
	var s *stream
	if h.kind == frameData {
		s = p.relay.findStream(h.stream)
	}
	if p.relay.config.Rewrites {
		if diverted, err := p.divert(s, h, payload); err != nil || diverted {
			return false, err
		}
	}
	switch h.kind {
	case frameData:
		data, err := stripPadding(h, payload)
		if err != nil {
			return false, err
		}
		p.addData(s, data)
		if h.has(flagEndStream) {
			p.recordData()
			p.endedExchanges += p.relay.endDirection(s, h.stream, p.dir)
		}
	case frameRSTStream:
		if len(payload) != 4 {
			return false, protocolErrorf(codeFrameSize, "a RST_STREAM frame has %d bytes instead of 4", len(payload))
		}
		p.endedExchanges += p.relay.resetStream(h.stream, p.dir, errorCode(binary.BigEndian.Uint32(payload)))
	}
	return true, nil
}

// addData collects body bytes of a stream for the recording. s is nil if the stream is unknown; then nothing is
// recorded.
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

// recordData records the body bytes that addData has collected.
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

// readSettings processes a SETTINGS frame: it stores, and limits, the HPACK table size for the other
// direction, which is needed for decoding, and stores the initial window of streams.
func (p *pump) readSettings(h frameHeader, payload []byte) error {
	if len(payload)%6 != 0 {
		return protocolErrorf(codeFrameSize, "a SETTINGS frame has %d bytes, which is not a multiple of 6", len(payload))
	}
	if h.has(flagAck) {
		return nil
	}
	for s := payload; len(s) > 0; s = s[6:] {
		if p.src.sender != nil && binary.BigEndian.Uint16(s) == settingInitialWindow {
			if p.src.sender.setInitial(int64(binary.BigEndian.Uint32(s[2:]))) {
				p.relay.pumps[1-p.dir].recheckHeld()
			}
		}
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

// dropsFrame reports whether a frame belongs to a stream that was refused and is therefore not forwarded. The length
// of a DATA frame is then returned to the connection's flow-control window.
func (p *pump) dropsFrame(h frameHeader) bool {
	if p.refusedFrom == 0 || h.stream < p.refusedFrom || h.stream%2 == 0 {
		return false
	}
	if h.kind == frameData && h.length > 0 {
		p.src.inject(appendFrame(nil, frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(h.length))))
	}
	return true
}
