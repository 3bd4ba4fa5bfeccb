package h2

import (
	"context"
	"slices"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

// maxHeld is how many body bytes, over all streams, one direction of a connection withholds at most while it waits
// for the rest of a frame or of a body.
const maxHeld = 32 << 10

// maxSpareHead is the size, in bytes, up to which the memory of a withheld header block is kept for the next one.
const maxSpareHead = 4 << 10

// A watch is the state of one direction of a stream that rules may change, while no frame has matched a rule. The pump
// examines each frame as it arrives and forwards the bytes as they came, so that it costs little that rules match
// nothing. The first frame that does not pass, or cannot be examined at once, ends the watch: the bytes that were not
// forwarded, and all that follow, go through an inbox (see change).
//
// A frame of which a part is missing is withheld, and so is a body whose declared length a rule may change, together
// with its head. The other side can always send what is missing: a watch ends if the windows become small.
//
// Shape: the pump's busy is locked while a watch is used.
type watch struct {
	// how is the way in which frames are examined: each alone, or the whole body at once. It is valid if begun is
	// set.
	how rewrite.Watch

	// begun means that how was determined: for a request from the start, for a response when its head has arrived.
	begun bool

	// held are the received bytes that are not forwarded yet; nil if there are none.
	held *held
	// firstHeld is the memory for the first held of the direction. Most calls have only one.
	firstHeld held
}

// hold makes h the withheld part, and returns it.
func (w *watch) hold(h held) *held {
	if w.held = &w.firstHeld; w.firstHeld.change != nil {
		w.held = new(held)
	}
	*w.held = h
	return w.held
}

// watched returns the watch of a stream in the pump's direction. It is nil if rules cannot change the stream (c is
// nil), or if the direction's bytes go through an inbox.
func (p *pump) watched(c *change) *watch {
	if c == nil {
		return nil
	}
	return c.watches[p.dir]
}

// watchRequest handles the header block of a request whose body frames are examined before they are forwarded as
// received. diverted means that the block is withheld or handled otherwise, so that the caller does not forward it.
// ok is false if the body must go through an inbox instead.
func (p *pump) watchRequest(c *change, b *headerBlock) (diverted, ok bool) {
	w, body := c.watches[captures.Up], c.bodies[captures.Up]
	last := b.has(flagEndStream)
	if c.exchange.Changes(captures.Up) {
		body.Declared = declaredLength(p.fields)
	}
	w.how, w.begun = body.Watch(), true
	switch method := fieldValue(p.fields, pseudoMethod); {
	case w.how == rewrite.WatchNot:
		return false, false
	case last && (c.exchange.Framing(captures.Up).Kind != rewrite.Whole || method == "GET" || method == "HEAD"):
		return false, true
	case last:
		return false, body.ExamineBody(nil)
	case w.how != rewrite.WatchBody:
		return false, true
	// A client that expects 100 (Continue) sends the body only after the server has seen the head.
	case fieldValue(p.fields, "expect") != "":
		return false, false
	case body.Declared < 0:
		// The server may decide by the head whether it wants the body.
		return false, true
	// The client waits for window that the server grants only after it has seen the head.
	case !p.dst.sender.canWithhold(c.id, 0, p.heldBytes):
		return false, false
	}
	w.hold(p.holdHead(c, b))
	c.firstOpening = opening{stream: c.id, change: c, held: w.held}
	p.addOpening(&c.firstOpening)
	return true, true
}

// watchResponse handles the final header block of a response whose body frames are examined before they are forwarded
// as received. bodiless means that the response can have no body. diverted means that the caller does not forward the
// block now. ok is false if the body must go through an inbox instead.
func (p *pump) watchResponse(c *change, b *headerBlock, bodiless bool) (diverted, ok bool) {
	w, body := c.watches[captures.Down], c.bodies[captures.Down]
	last := b.has(flagEndStream)
	body.Declared = declaredLength(p.fields)
	w.how, w.begun = body.Watch(), true
	switch {
	case w.how == rewrite.WatchNot:
		return false, false
	case last && (body.Declared != 0 || c.exchange.Framing(captures.Down).Kind != rewrite.Whole) || bodiless:
		body.Declared = -1
	case last:
		if !body.ExamineBody(nil) {
			return false, false
		}
	case w.how == rewrite.WatchBody && !p.dst.sender.canWithhold(c.id, 0, p.heldBytes):
		return false, false
	case w.how == rewrite.WatchBody:
		p.held = append(p.held, w.hold(p.holdHead(c, b)))
		return true, true
	}
	return !p.sendsHead(c), true
}

// sendsHead is called before the header block of a response is forwarded, and records that. It returns false if a
// rule has ended the exchange, so that the block must not be forwarded.
func (p *pump) sendsHead(c *change) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		p.startReencoding()
		return false
	}
	c.headSent = true
	return true
}

// holdHead returns the current header block as a held, to be forwarded later.
func (p *pump) holdHead(c *change, b *headerBlock) held {
	p.startCopying()
	if p.spareFields == nil {
		p.spareFields = []hpack.HeaderField{}
	}
	h := held{
		change: c, raw: append(p.spareRaw[:0], p.blockFrame...), fields: append(p.spareFields[:0], p.fields...),
		flags: b.flags, priority: b.priority,
	}
	p.spareRaw, p.spareFields = nil, nil
	return h
}

// appendHead appends the HEADERS frames of a withheld header block to those that are written next, unless the block was
// forwarded already. The memory of the block is used for the next one.
func (p *pump) appendHead(h *held) {
	p.encoded = append(p.encoded, p.headOf(h)...)
	if cap(h.raw) <= maxSpareHead && cap(h.fields) <= maxSpareHead/headerOverhead {
		p.spareRaw, p.spareFields = h.raw, h.fields
	}
	h.raw, h.fields = nil, nil
}

// watchData examines a DATA frame of a watched direction; data is its content without padding. diverted is false if
// the caller forwards the frame as it came, and true if its bytes were withheld, forwarded in part, or put into an
// inbox.
func (p *pump) watchData(s *stream, w *watch, h frameHeader, data []byte) (diverted bool) {
	c := s.change
	body := c.bodies[p.dir]
	last := h.has(flagEndStream)
	switch {
	case !w.begun:
		// Data before the head of the response is an error of the server, which the client is left to find.
		return false
	case w.how == rewrite.WatchNothing:
		if p.dst.sender.takeWindow(h.stream, h.length) {
			body.Skip(len(data))
			return false
		}
	case w.how == rewrite.WatchFrames:
		if diverted, ok := p.watchFrames(s, w, h, data); ok {
			return diverted
		}
	case last && len(data) == h.length && p.bodyPasses(w, body, h, data):
		if p.forwardHeld(c, w, h.length) {
			return false
		}
		p.addData(s, data)
		p.recordData()
		return true
	case !last && len(data) == h.length && p.withholds(w, len(data), h.stream):
		p.holdData(s, w, data)
		return true
	}

	in := p.divertWatched(c)
	p.addData(s, data)
	p.recordData()
	in.push(data, h.length-len(data))
	if last {
		in.end(nil, nil)
	}
	return true
}

// holdData withholds body bytes of a stream until more of the frame or body has arrived. They are recorded already.
func (p *pump) holdData(s *stream, w *watch, data []byte) {
	p.startCopying()
	p.addData(s, data)
	p.recordData()
	if w.held == nil {
		p.held = append(p.held, w.hold(held{change: s.change}))
	}
	w.held.data = append(w.held.data, data...)
	p.heldBytes += len(data)
}

// dataOf returns the withheld body bytes followed by data.
func (w *watch) dataOf(data []byte) []byte {
	if w.held == nil || len(w.held.data) == 0 {
		return data
	}
	return slices.Concat(w.held.data, data)
}

// heldLen returns the number of withheld body bytes.
func (w *watch) heldLen() int {
	if w.held == nil {
		return 0
	}
	return len(w.held.data)
}

// bodyPasses reports whether the rules leave a body unchanged that is complete with this last frame, and the
// receiver's window allows to forward it at once. If so, the window was taken.
func (p *pump) bodyPasses(w *watch, body *rewrite.Body, h frameHeader, data []byte) bool {
	mark := body.Mark()
	if !body.ExamineBody(w.dataOf(data)) {
		return false
	}
	if !p.dst.sender.takeWindow(h.stream, h.length+w.heldLen()) {
		body.Reset(mark)
		return false
	}
	return true
}

// withholds reports whether n more body bytes of a stream may be withheld within the limits and without blocking the
// sender.
func (p *pump) withholds(w *watch, n int, stream uint32) bool {
	n += w.heldLen()
	all := p.heldBytes - w.heldLen() + n
	return n <= rewrite.MaxWatched && all <= maxHeld && p.dst.sender.canWithhold(stream, n, all)
}

// watchFrames examines the complete envelopes in DATA and forwards them as received if no rule matches one; an
// incomplete envelope is withheld. diverted means that the caller does not forward the DATA frame. ok is false if a
// rule matches, or if the bytes must go through an inbox for another reason.
func (p *pump) watchFrames(s *stream, w *watch, h frameHeader, data []byte) (diverted, ok bool) {
	body, last := s.change.bodies[p.dir], h.has(flagEndStream)
	all := w.dataOf(data)
	mark := body.Mark()
	passed, ok := body.ExamineFrames(all)
	if !ok {
		return false, false
	}
	rest := len(all) - passed
	if rest == 0 && p.dst.sender.takeWindow(h.stream, h.length+w.heldLen()) {
		return !p.forwardHeld(s.change, w, h.length), true
	}

	// What is complete is forwarded, and the rest withheld.
	if !last && len(data) == h.length && rest <= len(data) && passed >= w.heldLen() && p.restWithheld(w, h.stream, rest, passed) {
		p.forwardHeld(s.change, w, passed-w.heldLen())
		p.forwardFrame(h.stream, appendFrame(nil, frameData, 0, h.stream, data[:len(data)-rest]))
		p.addData(s, data[:len(data)-rest])
		p.holdData(s, w, data[len(data)-rest:])
		return true, true
	}
	if !last && passed == 0 && len(data) == h.length && p.withholds(w, len(data), h.stream) {
		p.holdData(s, w, data)
		return true, true
	}
	body.Reset(mark)
	return false, false
}

// restWithheld takes passed bytes from the receiver's window, and reports whether the rest bytes of an incomplete
// envelope behind them may be withheld. If it returns false, no window was taken.
func (p *pump) restWithheld(w *watch, stream uint32, rest, passed int) bool {
	all := p.heldBytes - w.heldLen() + rest
	return passed > 0 && rest <= rewrite.MaxWatched && all <= maxHeld &&
		p.dst.sender.canWithhold(stream, rest+passed, all+passed) && p.dst.sender.takeWindow(stream, passed)
}

// forwardHeld forwards the withheld header block and body bytes of a stream, behind which the caller forwards n bytes.
// The caller has already taken all of these from the receiver's windows. ok is false if a rule has ended the exchange
// before the head was forwarded, so that nothing may be forwarded; then the bytes are returned to the windows.
func (p *pump) forwardHeld(c *change, w *watch, n int) (ok bool) {
	h := w.held
	if h == nil {
		return true
	}
	data, size := h.data, len(h.data)
	w.held, h.data = nil, nil
	p.heldBytes -= size
	var frames []byte
	for len(data) > 0 {
		n := min(len(data), defaultFrameSize)
		frames = appendFrame(frames, frameData, 0, c.id, data[:n])
		data = data[n:]
	}
	if o := p.findOpening(c.id); o != nil && o.held == h {
		o.ready = true
		p.addFrame(o, frames)
		p.forwardOpenings()
		return true
	}
	p.removeHeld(h)
	if h.fields != nil {
		if !p.sendsHead(c) {
			p.dst.sender.returnWindow(c.id, size+n)
			p.src.sender.grant(0, size+n, 0)
			return false
		}
		p.startCopying()
		p.appendHead(h)
	}
	p.forwardFrame(c.id, frames)
	return true
}

// removeHeld removes h from the pump's list of withheld parts.
func (p *pump) removeHeld(h *held) {
	if i := slices.Index(p.held, h); i >= 0 {
		p.held = slices.Delete(p.held, i, i+1)
	}
}

// divertWatched ends the watch of a stream, because a rule matches or bytes have to wait. The withheld bytes are put
// into a new inbox, from which a goroutine forwards them after the rules have changed them.
func (p *pump) divertWatched(c *change) *inbox {
	h := p.watched(c).held
	in := p.unwatch(c)

	// What is withheld is the beginning of the inbox.
	var head []hpack.HeaderField
	o := p.findOpening(c.id)
	if h != nil {
		p.removeHeld(h)
		p.heldBytes -= len(h.data)
		in.push(h.data, 0)
		if head = h.fields; o != nil && o.held == h {
			o.held, c.head = nil, h.fields
		}
	}

	// The head, and what was forwarded before, must not be overtaken.
	if o != nil && o.ready {
		o.started = func() { go c.run(p.dir, nil) }
		return in
	}
	p.flush()
	go c.run(p.dir, head)
	return in
}

// unwatch ends the watch of a stream, and returns the new inbox into which its body bytes are put from now on.
func (p *pump) unwatch(c *change) *inbox {
	p.startReencoding()
	p.src.sender.grant(c.id, 0, p.dst.sender.stopPassing(c.id))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		if c.ctx, c.cancel = context.WithCancel(context.Background()); c.over || c.cut {
			c.cancel()
		}
	}
	in := newInbox(c.ctx, &p.relay.waiting, c.id, p.src.sender)
	in.received = c.bodies[p.dir].Offset()
	c.watches[p.dir], c.inboxes[p.dir] = nil, in
	if c.over {
		in.discard()
	}
	return in
}

// watchTrailers handles trailers of a watched direction. diverted means that the caller does not forward them,
// because they go through an inbox.
func (p *pump) watchTrailers(c *change, w *watch, b *headerBlock) (diverted bool) {
	last := b.has(flagEndStream)
	passes := w.heldLen() == 0 && w.how != rewrite.WatchBody
	if w.how == rewrite.WatchBody && last {
		passes = p.bodyPasses(w, c.bodies[p.dir], frameHeader{stream: c.id}, nil)
	}
	if passes {
		return !p.forwardHeld(c, w, 0)
	}

	// A block that does not end the stream is an error of the sender; it must not overtake what is withheld.
	in := p.divertWatched(c)
	p.recordData()
	if last {
		in.end(append([]hpack.HeaderField(nil), p.fields...), nil)
	}
	return true
}

// endWatch discards the withheld bytes of a stream whose exchange a rule has ended, and writes everything that was
// forwarded before. A request that waits to be opened is withdrawn. It returns how many body bytes were received.
func (p *pump) endWatch(c *change) (received int64) {
	p.busy.Lock()
	defer p.busy.Unlock()
	c.mu.Lock()
	w := c.watches[p.dir]
	c.watches[p.dir] = nil
	c.mu.Unlock()
	if w == nil {
		return 0
	}
	// The head that replaces the server's clears the client's HPACK table. A withheld head was decoded, and later
	// ones may refer to it.
	p.startReencoding()
	p.dst.sender.stopPassing(c.id)
	received = c.bodies[p.dir].Offset()
	if h := w.held; h != nil {
		received += int64(len(h.data))
		p.removeHeld(h)
		if o := p.findOpening(c.id); o != nil && o.held == h {
			c.unopened = true
			p.removeOpening(o)
		} else {
			p.dropData(h)
		}
	}
	p.flush()
	return received
}

// endWatchAtReset handles the withheld part of a response that the server resets with err. If no rule can apply to it
// any more, it is forwarded before the reset. diverted means that the reset is forwarded later, behind data that goes
// through an inbox.
func (p *pump) endWatchAtReset(c *change, w *watch, err error) (diverted bool) {
	if w.held == nil {
		return false
	}
	if whole := w.held.fields != nil; whole || !p.dst.sender.takeWindow(c.id, w.heldLen()) {
		// Rules still decide about the complete frames.
		in := p.divertWatched(c)
		in.hurryUp()
		in.end(nil, err)
		return true
	}
	diverted = !p.forwardHeld(c, w, 0)
	p.flush()
	return diverted
}

// dropWithheld discards the withheld body bytes of a request that the client resets.
func (p *pump) dropWithheld(c *change) {
	if w := p.watched(c); w != nil && w.held != nil {
		p.removeHeld(w.held)
		p.dropData(w.held)
		w.held = nil
	}
}

// dropStale discards the withheld parts of streams that have ended.
func (p *pump) dropStale() {
	for _, h := range slices.Clone(p.held) {
		if p.relay.findStream(h.change.id) != h.change.stream {
			p.removeHeld(h)
			p.dropData(h)
			if h.fields != nil {
				// The head was decoded, and later ones may refer to it.
				p.startReencoding()
			}
		}
	}
}

// forwardAtEnd is called when the server's connection ends. It forwards the withheld bytes of each response, unless a
// rule matches a complete frame in them; then they are discarded. Rules do not apply to the incomplete frame at the end,
// nor to a body that is longer than declared.
func (p *pump) forwardAtEnd() {
	p.dropStale()
	for _, h := range slices.Clone(p.held) {
		w, body := p.watched(h.change), h.change.bodies[p.dir]
		passes := w != nil
		switch {
		case !passes || w.how != rewrite.WatchBody:
		case int64(len(h.data)) == body.Declared:
			passes = body.ExamineBody(h.data)
		case h.change.exchange.Framing(p.dir).Kind == rewrite.Envelopes:
			_, passes = body.ExamineFrames(h.data)
		}
		if passes && p.dst.sender.takeWindow(h.change.id, len(h.data)) {
			p.forwardHeld(h.change, w, 0)
		}
	}
}

// recheckHeld makes the pump withhold less, soon, because the receiver has reduced the windows of streams. The caller
// may have locked another pump.
func (p *pump) recheckHeld() {
	if !p.rechecks.CompareAndSwap(false, true) {
		return
	}
	go func() {
		p.busy.Lock()
		defer p.busy.Unlock()
		p.rechecks.Store(false)
		p.divertHeld(func(h *held) bool { return !p.dst.sender.canWithhold(h.change.id, len(h.data), p.heldBytes) })
		p.flush()
	}()
}

// checkHeld puts all withheld bytes into inboxes, which grant them back as window, if the withheld bytes leave the
// sender too little of the connection's window.
func (p *pump) checkHeld() {
	if p.heldBytes == 0 || p.dst.sender.leavesWindow(p.heldBytes) {
		return
	}
	p.divertHeld(func(*held) bool { return true })
}

// divertHeld puts the withheld parts that match a condition into inboxes.
func (p *pump) divertHeld(matches func(*held) bool) {
	p.dropStale()
	for _, h := range slices.Clone(p.held) {
		if p.watched(h.change) != nil && matches(h) {
			p.divertWatched(h.change)
		}
	}
	for _, o := range slices.Clone(p.openings) {
		if o.held != nil && !o.ready && matches(o.held) {
			p.divertWatched(o.change)
		}
	}
}
