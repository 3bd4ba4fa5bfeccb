package h2

// A longFrame is a frame that is too large for the buffer.
type longFrame struct {
	frameHeader
	padding int // bytes at its end
	dropped bool

	// diverted are the parts of a DATA frame that is handled as a whole, not forwarded in parts.
	diverted []byte
	whole    bool
}

// beginLongFrame handles a frame that is larger than the buffer: one that must be
// read as a whole gets a larger buffer, any other is forwarded in parts. It is not
// ready while more of the frame is needed to begin.
func (p *pump) beginLongFrame(h frameHeader, rest []byte) (ready bool, err error) {
	switch h.kind {
	case frameHeaders, framePushPromise, frameContinuation, frameSettings, frameGoAway, frameRSTStream:
		if h.length > maxHeaderFrame {
			return false, protocolErrorf(codeFrameSize, "a frame of type %d of %d bytes", h.kind, h.length)
		}
		p.flush()
		p.buf = append(make([]byte, 0, frameHeaderSize+maxHeaderFrame), p.buf...)
		p.buf = p.buf[:cap(p.buf)]
		return false, nil
	}

	// Large frames are forwarded in parts; only the header, and the padding length of DATA, must be
	// complete.
	head := frameHeaderSize
	l := longFrame{frameHeader: h}
	if h.kind == frameData && h.has(flagPadded) {
		if len(rest) == head {
			return false, nil
		}
		l.padding = int(rest[head])
		head++
	}

	// Earlier data is recorded first, to keep the order of events.
	if h.kind != frameData {
		p.recordData()
	}
	if p.relay.config.Rewrite != nil && p.divertsLong(h, &l) {
		p.long, p.longLeft = l, h.length-(head-frameHeaderSize)
		p.parsed += head
		return true, nil
	}
	if l.dropped = p.dropsFrame(h); !l.dropped {
		p.forward(rest[:head])
	}
	p.long, p.longLeft = l, h.length-(head-frameHeaderSize)
	p.parsed += head
	return true, nil
}

// forwardLongPart forwards a part of a frame that is longer than the buffer.
func (p *pump) forwardLongPart(b []byte) {
	p.longLeft -= len(b)
	p.parsed += len(b)
	l := &p.long
	if l.dropped {
		return
	}
	if l.whole {
		if l.diverted = append(l.diverted, b...); p.longLeft == 0 {
			p.divertLong(l)
		}
		return
	}
	p.forward(b)
	if p.longLeft == 0 && len(p.openings) > 0 {
		defer p.forwardOpenings()
	}
	if l.kind != frameData {
		return
	}
	s := p.relay.findStream(l.stream)
	p.addData(s, b[:max(0, min(len(b), len(b)+p.longLeft-l.padding))])
	if p.longLeft == 0 && l.has(flagEndStream) {
		p.recordData()
		p.endedExchanges += p.relay.endDirection(s, l.stream, p.dir)
	}
}
