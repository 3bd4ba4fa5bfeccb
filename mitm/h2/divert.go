package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// maxDivertedFrame limits a DATA frame that is handled as a whole, in bytes. Receivers rarely allow more than 1 MiB.
const maxDivertedFrame = 16 << 20

// divert handles a frame if its stream may be changed by rules, was ended by a rule, or waits for the receiver's
// window. s is the stream of a DATA frame; nil if it is unknown. diverted means that the caller does not forward the
// frame.
func (p *pump) divert(s *stream, h frameHeader, payload []byte) (diverted bool, err error) {
	if h.stream != 0 && p.relay.isCut(h.stream) {
		p.divertCut(h, payload)
		return true, nil
	}
	switch h.kind {
	case frameWindowUpdate:
		return p.divertWindow(h, payload)
	case frameData:
		data, err := stripPadding(h, payload)
		if err != nil {
			return false, err
		}
		return p.divertData(s, h, data), nil
	case frameRSTStream:
		return p.divertReset(h, payload), nil
	}
	return false, nil
}

// divertCut handles a frame of a stream that a rule has ended, which is not forwarded. The client may still grant
// window for the answer, or reset it.
func (p *pump) divertCut(h frameHeader, payload []byte) {
	p.startReencoding()
	switch {
	case h.kind == frameData:
		p.src.sender.grant(0, h.length, 0)
	case p.dir == captures.Down || len(payload) != 4:
	case h.kind == frameWindowUpdate:
		p.src.sender.windowUpdate(h.stream, int64(binary.BigEndian.Uint32(payload)&maxStreamID))
	case h.kind == frameRSTStream:
		p.endedExchanges += p.relay.resetStream(h.stream, p.dir, errorCode(binary.BigEndian.Uint32(payload)))
	}
}

// divertWindow processes a WINDOW_UPDATE frame. The part that repays bytes of changed bodies is subtracted from it;
// diverted means that nothing is left to forward.
func (p *pump) divertWindow(h frameHeader, payload []byte) (diverted bool, err error) {
	if len(payload) != 4 {
		return false, protocolErrorf(codeFrameSize, "a WINDOW_UPDATE frame has %d bytes instead of 4", len(payload))
	}
	n := int64(binary.BigEndian.Uint32(payload) & maxStreamID)
	forwarded := p.src.sender.windowUpdate(h.stream, n)
	if forwarded == 0 && n > 0 {
		p.startReencoding()
		return true, nil
	}
	binary.BigEndian.PutUint32(payload, uint32(forwarded))
	return false, nil
}

// divertData handles a DATA frame, whose content without padding is data: that of a stream that rules may change is
// examined or put into its inbox, and that for which the receiver has no window is queued. s is the stream, or nil if it
// is unknown. diverted means that the caller does not forward the frame.
func (p *pump) divertData(s *stream, h frameHeader, data []byte) (diverted bool) {
	padding := h.length - len(data)
	var w *watch
	if s != nil {
		w = p.watched(s.change)
	}
	switch {
	case w != nil:
		diverted = p.watchData(s, w, h, data)
		p.checkHeld()
		return diverted
	case s != nil && s.change.diverts(p.dir) && s.change.inbox(p.dir) != nil:
		p.startReencoding()
		p.addData(s, data)
		p.recordData()
		in := s.change.inbox(p.dir)
		in.push(data, padding)
		if h.has(flagEndStream) {
			in.end(nil, nil)
		}
		return true
	case p.dst.sender.takeWindow(h.stream, h.length):
		p.checkHeld()
		return false
	}

	// What was processed before must not overtake.
	p.startReencoding()
	p.forceOpenings(h.stream)
	p.addData(s, data)
	p.flush()
	item := sendItem{data: append([]byte(nil), data...), end: h.has(flagEndStream)}
	if padding > 0 {
		p.src.sender.grant(h.stream, padding, padding)
	}
	if item.end && s != nil {
		item.sent = p.endLater(s, h.stream)
	}
	p.dst.sender.enqueueUnchanged(h.stream, item)
	p.checkHeld()
	return true
}

// endLater returns a function that ends the pump's direction of a stream, to be called once the direction's last
// frame was written.
func (p *pump) endLater(s *stream, id uint32) func() {
	return func() { p.relay.releaseExchanges(p.relay.endDirection(s, id, p.dir)) }
}

// isForwardedAlone reports whether a reset in this direction has nothing to wait for: the pump forwards responses,
// and the response's final header block has not arrived.
func (p *pump) isForwardedAlone(c *change) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.dir == captures.Down && !c.responded
}

// divertReset handles a RST_STREAM frame. A reset by the server is delayed until the data before it was forwarded;
// diverted means that.
func (p *pump) divertReset(h frameHeader, payload []byte) (diverted bool) {
	c := p.relay.changeOf(h.stream)
	if p.dir == captures.Up {
		p.abandonOpening(h.stream)
	}
	switch {
	case len(payload) != 4:
		return false
	case c == nil:
		if p.dst.sender.isWaiting(h.stream) {
			p.src.sender.grant(0, p.dst.sender.dropQueue(h.stream), 0)
		}
		return false
	case p.dir == captures.Up:
		p.dropWithheld(c)
		return false
	case !c.diverts(p.dir):
		// The server wants no more of the request.
		c.discard(captures.Up)
		c.to(captures.Up).dropQueue(h.stream)
		p.dst.sender.dropQueue(h.stream)
		return false
	case p.isForwardedAlone(c):
		return false
	}
	code := errorCode(binary.BigEndian.Uint32(payload))
	if w := p.watched(c); w != nil {
		if diverted = p.endWatchAtReset(c, w, &serverAbort{"the server reset the stream", code}); !diverted {
			// The server wants no more of the request.
			c.discard(captures.Up)
			c.to(captures.Up).dropQueue(h.stream)
		}
		return diverted
	}
	p.startReencoding()
	in := c.inbox(captures.Down)
	in.mu.Lock()
	ended := in.ended
	in.mu.Unlock()
	if ended {
		// All of the response has arrived; the server declines the rest of the request.
		c.discard(captures.Up)
		c.to(captures.Up).dropQueue(h.stream)
		go c.resetBehindResponse(code)
		return true
	}
	in.hurryUp()
	in.end(nil, &serverAbort{"the server reset the stream", code})
	return true
}

// resetBehindResponse forwards a reset of the server behind the response. The stream ends only then: a server may reset
// it twice, and the end of a stream drops what is queued for it.
func (c *change) resetBehindResponse(code errorCode) {
	<-c.inbox(captures.Down).done
	frame := resetFrame(c.id, code)
	sent := func() { c.relay.releaseExchanges(c.relay.resetStream(c.id, captures.Down, code)) }
	if !c.enqueue(captures.Down, sendItem{frame: frame, alone: true, sent: sent}) {
		c.to(captures.Down).sendControl(frame)
		sent()
	}
}

// beginDiverted prepares for a header block when rules are in use. If the block spans several frames, they are
// encoded anew at its end, because only then it is known what happens to the block.
func (p *pump) beginDiverted(b *headerBlock) {
	if !b.opensStream && p.relay.isCut(b.stream) {
		b.dropped = true
	}
	if b.dropped || !b.has(flagEndHeaders) {
		p.startReencoding()
	}
}

// divertHeaders handles a complete header block of a stream that rules may change, or whose earlier frames wait for
// the window. diverted means that the caller does not forward the block.
func (p *pump) divertHeaders(b *headerBlock) (diverted bool) {
	c := p.relay.changeOf(b.stream)
	last := b.has(flagEndStream)
	switch {
	case c == nil:
		return p.queueHeaders(b)
	case !c.diverts(p.dir):
		p.noteResponse(c)
		return p.queueHeaders(b)
	case b.opensStream:
		return p.divertRequest(c, b)
	case p.dir == captures.Down && !c.stream.answered:
		// An informational response.
		return false
	}

	if p.dir == captures.Down && !c.isOpened() {
		return p.divertResponse(c, b)
	}
	if w := p.watched(c); w != nil {
		return p.watchTrailers(c, w, b)
	}

	// p.fields is reused.
	p.startReencoding()
	p.recordData()
	if last {
		c.inbox(p.dir).end(append([]hpack.HeaderField(nil), p.fields...), nil)
	}
	return true
}

// divertResponse handles the final header block of a response that rules may change. diverted means that the caller
// does not forward the block now.
func (p *pump) divertResponse(c *change, b *headerBlock) (diverted bool) {
	status := c.status
	c.exchange.Response(status, c.header)
	bodiless := c.stream.method == "HEAD" || status == 204 || status == 304 || status/100 == 1
	if diverted, ok := p.watchResponse(c, b, bodiless); ok {
		return diverted
	}
	in := p.unwatch(c)
	p.recordData()
	p.flush()
	c.openResponse(in, append([]hpack.HeaderField(nil), p.fields...), b.has(flagEndStream), bodiless)
	return true
}

// noteResponse passes the status and headers of a response to the rules, if its body is forwarded as it comes.
func (p *pump) noteResponse(c *change) {
	if p.dir == captures.Down && c.stream.answered && !c.isOpened() {
		c.exchange.Response(c.status, c.header)
	}
}

// isOpened reports whether it was called before for this stream: the first call is for the final header block of the
// response, later ones are for trailers.
func (c *change) isOpened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.responded
	c.responded = true
	return before
}

// divertRequest asks the rules about a new request. diverted means that the caller does not forward its header block,
// because a rule answers it, or because it waits for the length of the body, or because it was forwarded here.
func (p *pump) divertRequest(c *change, b *headerBlock) (diverted bool) {
	last := b.has(flagEndStream)
	v := c.exchange.Request()
	if v.Action == rewrite.Pass {
		if diverted, ok := p.watchRequest(c, b); ok {
			return diverted
		}
	}
	in := p.unwatch(c)
	if v.Action != rewrite.Pass {
		c.unopened = true
		if last {
			in.end(nil, nil)
		}
		close(in.done)
		go c.stop(&rewrite.Stop{Verdict: v})
		return true
	}
	fields := append([]hpack.HeaderField(nil), p.fields...)
	end := c.openRequest(in, fields, last)

	// A request whose body may be replaced waits for its new length.
	if c.waitsForLength() && !end {
		p.addOpening(&opening{stream: c.id, change: c})
		go c.run(captures.Up, nil)
		return true
	}

	// The length is known, or none was declared: forward the head now and the body as it is changed.
	fields = withLength(fields, c.requestLength(end))
	c.head = nil
	p.fields = append(p.fields[:0], fields...)
	forwarded := *b
	if !end {
		forwarded.flags &^= flagEndStream
	}
	p.encodeBlock(&forwarded)
	if end {
		c.to(captures.Up).endQueue(c.id)
		p.endedExchanges += p.relay.endDirection(c.stream, c.id, captures.Up)
		return true
	}
	if o := p.findOpening(c.id); o != nil {
		o.started = func() { go c.run(captures.Up, nil) }
		return true
	}
	p.flush()
	go c.run(captures.Up, nil)
	return true
}

// requestLength returns the length to declare for a request that is forwarded before its body is complete:
// rewrite.Unknown if rules may change the body, otherwise rewrite.Unchanged.
func (c *change) requestLength(end bool) int64 {
	if end || !c.exchange.Changes(captures.Up) {
		return rewrite.Unchanged
	}
	return rewrite.Unknown
}

// queueHeaders queues the trailers of an unchanged stream behind its body, if that waits for the receiver's window.
// diverted means that they were queued.
func (p *pump) queueHeaders(b *headerBlock) (diverted bool) {
	if b.opensStream || !p.dst.sender.isWaiting(b.stream) {
		return false
	}
	p.startReencoding()
	p.flush()
	item := sendItem{frame: encodeHeaders(b.stream, p.fields, b.has(flagEndStream))}
	if s := p.relay.findStream(b.stream); s != nil && b.has(flagEndStream) {
		item.sent = p.endLater(s, b.stream)
	}
	p.dst.sender.enqueueUnchanged(b.stream, item)
	return true
}

// divertsLong reports whether a frame that is larger than the buffer is collected completely instead of being
// forwarded in parts: a DATA frame that rules may change or that has to wait.
func (p *pump) divertsLong(h frameHeader, l *longFrame) bool {
	if h.kind != frameData || h.length > maxDivertedFrame {
		return false
	}
	s := p.relay.findStream(h.stream)
	l.whole = p.relay.isCut(h.stream) || s != nil && s.change.diverts(p.dir) || p.findOpening(h.stream) != nil || !p.dst.sender.takeWindow(h.stream, h.length)
	if l.whole {
		p.startReencoding()
	}
	return l.whole
}

// divertLong handles a DATA frame larger than the buffer after all of it has arrived.
func (p *pump) divertLong(l *longFrame) {
	data, payload := l.diverted[:max(0, len(l.diverted)-l.padding)], l.diverted
	l.diverted = nil
	if l.has(flagPadded) {
		payload = append([]byte{byte(l.padding)}, payload...)
	}
	if p.relay.isCut(l.stream) {
		p.src.sender.grant(0, l.length, 0)
		return
	}
	s := p.relay.findStream(l.stream)
	if !p.divertData(s, l.frameHeader, data) {
		// The window has grown meanwhile.
		p.addData(s, data)
		p.recordData()
		p.forwardFrame(l.stream, appendFrame(nil, frameData, l.flags, l.stream, payload))
		if l.has(flagEndStream) {
			p.endedExchanges += p.relay.endDirection(s, l.stream, p.dir)
		}
	}
}
