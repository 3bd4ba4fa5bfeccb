package h2

// A longFrame is a frame that is too large for the buffer.
type longFrame struct {
	// frameHeader is the parsed header of the frame.
	frameHeader
	padding int // bytes at its end
	// dropped means that the frame is not forwarded, because its stream was refused.
	dropped bool

	// diverted is the received beginning of the payload, if whole is set.
	diverted []byte
	// whole means that the frame is a DATA frame that is collected completely before it is handled, because rules may
	// change it or it has to wait.
	whole bool
}

// beginLongFrame starts to handle a frame that does not fit into the buffer. A frame whose content the relay needs,
// such as HEADERS, gets a larger buffer; any other frame is forwarded in parts. rest are the received bytes from the
// frame's header on. ready is false if more bytes, or the larger buffer, are needed first.
func (p *pump) beginLongFrame(h frameHeader, rest []byte) (ready bool, err error) {
	switch h.kind {
	case frameHeaders, framePushPromise, frameContinuation, frameSettings, frameGoAway, frameRSTStream:
		if h.length > maxHeaderFrame {
			return false, protocolErrorf(codeFrameSize, "a frame of type %d is too long: it has %d bytes", h.kind, h.length)
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
	if p.relay.config.Rewrites && p.divertsLong(h, &l) {
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

// forwardLongPart handles the next received bytes of a frame that does not fit into the buffer.
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
