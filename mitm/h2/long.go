package h2

// A longFrame is one that does not fit into the buffer.
type longFrame struct {
	frameHeader
	pad     int  // what of its end is padding
	refused bool // it is not passed on
}

// tooLong handles a frame that the buffer has no room for: one that must be
// read as a whole gets more room, any other passes in pieces. It is not ready
// while more of the frame is needed to begin.
func (p *pump) tooLong(h frameHeader, rest []byte) (ready bool, err error) {
	switch h.kind {
	case frameHeaders, framePushPromise, frameContinuation, frameSettings, frameGoAway, frameRSTStream:
		if h.length > maxHeaderFrame {
			return false, badFrame(codeFrameSize, "a frame of type %d of %d bytes", h.kind, h.length)
		}
		p.flush()
		p.buf = append(make([]byte, 0, frameHeaderSize+maxHeaderFrame), p.buf...)
		p.buf = p.buf[:cap(p.buf)]
		return false, nil
	}
	head := frameHeaderSize
	l := longFrame{frameHeader: h}
	if h.kind == frameData && h.has(flagPadded) {
		if len(rest) == head {
			return false, nil
		}
		l.pad = int(rest[head])
		head++
	}
	if h.kind != frameData {
		p.record()
	}
	if l.refused = p.refuses(h); !l.refused {
		p.pass(rest[:head])
	}
	p.long, p.left = l, h.length-(head-frameHeaderSize)
	p.parsed += head
	return true, nil
}

// piece handles a part of a frame that is longer than the buffer.
func (p *pump) piece(b []byte) {
	p.left -= len(b)
	p.parsed += len(b)
	l := &p.long
	if l.refused {
		return
	}
	p.pass(b)
	if l.kind != frameData {
		return
	}
	s := p.relay.stream(l.stream)
	p.data(s, b[:max(0, min(len(b), len(b)+p.left-l.pad))])
	if p.left == 0 && l.has(flagEndStream) {
		p.record()
		p.ended += p.relay.sideEnded(s, l.stream, p.dir)
	}
}
