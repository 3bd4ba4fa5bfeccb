package h2

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

const (
	// codeInternal (INTERNAL_ERROR) is sent to the client when a rule resets the exchange.
	codeInternal errorCode = 0x2
	// codeCancel (CANCEL) is sent to the server when a rule ends the exchange.
	codeCancel errorCode = 0x8
)

// A change is the additional state of an HTTP/2 stream whose bodies rules may change. In each direction, the frames
// are examined and forwarded as received until a rule matches one. From then on, the arriving bytes are put into a
// buffer (inbox), from which a goroutine reads; it applies the rules, and puts the changed body into the send queue
// of the receiver (sender). Header blocks of such a stream are encoded anew. If they declare a content-length, they
// wait until the length of the changed body is known.
type change struct {
	// relay is the relayed connection to which the stream belongs.
	relay *Relay
	// stream is the stream's recording and its end flags.
	stream *stream
	// id is the number of the HTTP/2 stream.
	id uint32
	// exchange decides, by the rules, what happens to the frames of the request and the response.
	exchange rewrite.Exchange
	// ctx ends when the exchange ends or a rule cuts it; it is passed to whatever waits on behalf of the stream. It is
	// nil until a direction has an inbox.
	ctx context.Context
	// cancel ends ctx; nil as long as ctx.
	cancel context.CancelFunc

	// bodies apply the rules to the request body (index captures.Up) and the response body (captures.Down). An entry
	// is nil if rules cannot affect that direction, whose frames are then forwarded as they come.
	bodies [2]*rewrite.Body

	// unopened means that a rule has ended the exchange before the request's HEADERS frame was sent to the server.
	unopened bool
	// head is the request's header section while it waits to be sent with the body's new content-length; nil if
	// nothing waits.
	head []hpack.HeaderField

	// status and header are those of the final response, once stream.answered is set. Only the pump that forwards
	// responses uses them.
	status int
	header captures.Headers

	// watches, by direction, are set while frames are only examined and forwarded as received, before any rule has
	// matched; nil otherwise. The busy of the direction's pump guards each.
	watches [2]*watch

	// first is the memory for the first direction that rules can affect. Often it is the only one.
	first directionState
	// firstOpening is the memory for the request while it waits to be opened.
	firstOpening opening

	// mu guards the fields below.
	mu sync.Mutex
	// inboxes, by direction, buffer the received body bytes once a frame has matched a rule; nil before.
	inboxes [2]*inbox
	// over means that the exchange has ended and its resources were released.
	over bool
	// responded means that the final response head has arrived from the server.
	responded bool
	// headSent means that a final response head was forwarded to the client.
	headSent bool
	// endSent means that the end of the response was put into the client's send queue.
	endSent bool
	// cut means that a rule has ended the exchange, so that nothing more is forwarded.
	cut bool
}

// A directionState is the memory for what a change has for each direction that rules can affect.
type directionState struct {
	// body applies the rules to the body.
	body rewrite.Body
	// watch examines the frames until one matches.
	watch watch
	// queue is the send queue of the stream in the direction.
	queue sendQueue
}

// newChange returns the state of a new stream that rules may change, as exchange decides.
func (r *Relay) newChange(s *stream, id uint32, exchange rewrite.Exchange) *change {
	// Every call has these, so there is one allocation for all.
	c := &change{relay: r, stream: s, id: id, exchange: exchange}
	state := &c.first
	for d := range c.bodies {
		if !exchange.Diverts(captures.Direction(d)) {
			continue
		}
		if state == nil {
			state = new(directionState)
		}
		c.to(captures.Direction(d)).openQueue(id, &state.queue)
		c.bodies[d], c.watches[d] = &state.body, &state.watch
		state.body.Dir, state.body.Exchange, state.body.Declared = captures.Direction(d), exchange, -1
		if s.rec != nil {
			state.body.Recorder = s.rec
		}
		state = nil
	}
	if s.rec != nil {
		exchange.Recorded(s.rec.ID())
	}
	return c
}

// changeOf returns the change of an open stream; nil if the stream is not open or rules cannot change it.
func (r *Relay) changeOf(id uint32) *change {
	if !r.config.Rewrites {
		return nil
	}
	if s := r.findStream(id); s != nil {
		return s.change
	}
	return nil
}

// diverts reports whether the frames of a direction must be examined by the rules instead of being forwarded as they
// come. c may be nil, for a stream that rules cannot change.
func (c *change) diverts(d captures.Direction) bool { return c != nil && c.bodies[d] != nil }

// inbox returns the buffer of received bytes for a direction, or nil if its frames are still forwarded as received.
func (c *change) inbox(d captures.Direction) *inbox {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inboxes[d]
}

// discard drops the body bytes that arrived for a direction and were not forwarded yet.
func (c *change) discard(d captures.Direction) {
	if in := c.inbox(d); in != nil {
		in.discard()
	}
}

// to returns the sender that writes frames to the receiver of a direction: the server's for captures.Up, the client's
// for captures.Down.
func (c *change) to(d captures.Direction) *sender {
	if d == captures.Up {
		return c.relay.server.sender
	}
	return c.relay.client.sender
}

// isCut reports whether the exchange was ended by a rule.
func (c *change) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// declaredLength returns the value of the content-length header, or -1.
func declaredLength(fields []hpack.HeaderField) int64 {
	if n, err := strconv.ParseInt(fieldValue(fields, "content-length"), 10, 64); err == nil && n >= 0 {
		return n
	}
	return -1
}

// openRequest prepares to forward the request's body from its inbox. last means that the HEADERS frame ends the
// request. end is true if there is no body to change. If the request declares a content-length that may change, its
// head waits in c.head.
func (c *change) openRequest(in *inbox, fields []hpack.HeaderField, last bool) (end bool) {
	method := fieldValue(fields, pseudoMethod)
	if last && (c.exchange.Framing(captures.Up).Kind != rewrite.Whole || method == "GET" || method == "HEAD") {
		close(in.done)
		return true
	}
	if last {
		in.end(nil, nil)
	}
	if c.exchange.Changes(captures.Up) && declaredLength(fields) >= 0 {
		c.head = fields
		c.bodies[captures.Up].Declared = declaredLength(fields)
	}
	return false
}

// waitsForLength reports whether the request's HEADERS frame is sent only when the length of the changed body is
// known.
func (c *change) waitsForLength() bool {
	// A client that expects 100 (Continue) sends the body only after the server has seen the head.
	return c.head != nil && fieldValue(c.head, "expect") == ""
}

// openResponse starts a goroutine that forwards the response from its inbox, beginning with its final header section
// fields. last means that the HEADERS frame ends the response, bodiless that it can have no body, such as one to
// HEAD. A head without a body is forwarded at once.
func (c *change) openResponse(in *inbox, fields []hpack.HeaderField, last, bodiless bool) {
	body := c.bodies[captures.Down]
	body.Declared = declaredLength(fields)
	if last && (c.exchange.Framing(captures.Down).Kind != rewrite.Whole || body.Declared != 0) || bodiless {
		body.Declared = -1
		c.mu.Lock()
		c.headSent = !c.cut
		if c.headSent {
			c.to(captures.Down).enqueue(c.id, c.headers(captures.Down, fields, last))
			c.endSent = last
		}
		c.mu.Unlock()
		if last {
			close(in.done)
			return
		}
	}
	if last {
		in.end(nil, nil)
	}
	go c.run(captures.Down, fields)
}

// headers encodes a header block as an item for the send queue. If last is set, the block ends its direction, which
// is marked as ended once the block was written.
func (c *change) headers(d captures.Direction, fields []hpack.HeaderField, last bool) sendItem {
	item := sendItem{frame: encodeHeaders(c.id, fields, last)}
	if last {
		item.sent = func() { c.finish(d) }
	}
	return item
}

// encodeHeaders encodes fields as HEADERS and CONTINUATION frames without references to the receiver's HPACK table.
// last sets END_STREAM.
func encodeHeaders(stream uint32, fields []hpack.HeaderField, last bool) []byte {
	var block []byte
	enc := hpack.NewEncoder(byteAppender{&block})
	enc.SetMaxDynamicTableSize(0)
	for _, f := range fields {
		// Writing to memory cannot fail.
		_ = enc.WriteField(f)
	}
	var flags uint8
	if last {
		flags = flagEndStream
	}
	return appendHeaderBlock(nil, flags, stream, nil, block)
}

// withLength returns fields with the value of content-length, if present, replaced by length. rewrite.Unknown removes
// the field, and rewrite.Unchanged keeps it.
func withLength(fields []hpack.HeaderField, length int64) []hpack.HeaderField {
	if length == rewrite.Unchanged {
		return fields
	}
	out := make([]hpack.HeaderField, 0, len(fields))
	for _, f := range fields {
		if f.Name == "content-length" {
			if length < 0 {
				continue
			}
			f.Value = strconv.FormatInt(length, 10)
		}
		out = append(out, f)
	}
	return out
}

// run reads the body of a direction from its inbox, applies the rules to it, and queues the result for the receiver
// until the body ends. head is the header section of the response, or nil.
func (c *change) run(d captures.Direction, head []hpack.HeaderField) {
	in := c.inbox(d)
	defer in.hurryUp()
	err := c.bodies[d].Run(in.hurry, in, &changeSink{c, d, head})
	if errors.As(err, new(*rewrite.Stop)) {
		close(in.done)
	} else {
		// A reset that waits for the end of the direction must come behind what is queued here.
		defer close(in.done)
	}

	var stop *rewrite.Stop
	var reset *serverAbort
	switch {
	case err == nil && len(in.trailers) > 0:
		c.enqueueEnd(d, c.headers(d, in.trailers, true))
	case err == nil:
		c.enqueueEnd(d, sendItem{end: true, sent: func() { c.finish(d) }})
	case errors.As(err, &stop):
		c.stop(stop)
	case errors.As(err, &reset):
		// The server has reset the stream behind this data.
		frame := appendFrame(nil, frameRSTStream, 0, c.id, binary.BigEndian.AppendUint32(nil, uint32(reset.code)))
		c.enqueue(d, sendItem{frame: frame, alone: true, sent: func() {
			c.relay.releaseExchanges(c.relay.resetStream(c.id, captures.Down, reset.code))
		}})
	case errors.Is(err, errInboxFull):
		go c.stop(&rewrite.Stop{Verdict: rewrite.Verdict{Action: rewrite.Reset, Rule: "none: " + err.Error()}})
	}
}

// enqueue appends an item to the send queue of a direction. It returns false if a rule has ended the exchange, or if
// the stream is gone.
func (c *change) enqueue(d captures.Direction, item sendItem) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.cut && c.to(d).enqueue(c.id, item)
}

// enqueueEnd appends the last item of a direction to its send queue, unless a rule has ended the exchange.
func (c *change) enqueueEnd(d captures.Direction, item sendItem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cut && c.to(d).enqueue(c.id, item) && d == captures.Down {
		c.endSent = true
	}
}

// finish ends a direction of the stream after its last byte was written.
func (c *change) finish(d captures.Direction) {
	c.to(d).endQueue(c.id)
	c.relay.releaseExchanges(c.relay.endDirection(c.stream, c.id, d))
}

// interrupt ends ctx, and makes it end at once if it is needed later. over means that the exchange has ended.
func (c *change) interrupt(over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = c.over || over
	if c.cancel != nil {
		c.cancel()
	}
}

// end frees the stream's buffers and send queues when its exchange has ended.
func (c *change) end() {
	c.interrupt(true)
	for d, b := range c.bodies {
		if b != nil {
			c.discard(captures.Direction(d))
			c.to(captures.Direction(d)).endQueue(c.id)
		}
	}
	c.exchange.End()
}

// drop discards the stream's send queues in both directions, because one side has reset the stream.
func (c *change) drop() {
	for d := range c.bodies {
		c.to(captures.Direction(d)).dropQueue(c.id)
	}
}

// A changeSink forwards the changed body of one direction.
type changeSink struct {
	// change is the stream whose body is forwarded.
	change *change
	// dir is the direction of the body.
	dir captures.Direction
	// head is the header section of the response, which Begin sends before the body; unused for requests.
	head []hpack.HeaderField
}

var _ rewrite.Sink = (*changeSink)(nil)

// Begin queues the header section before the body. length is the length of the body in bytes, rewrite.Unknown or
// rewrite.Unchanged, which determines the content-length that is declared.
func (w *changeSink) Begin(length int64) error {
	c := w.change
	if w.dir == captures.Up {
		return c.relay.openWithLength(c, length)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cut:
		return errInterrupted
	case c.headSent:
		return nil
	}
	c.headSent = true
	if !c.to(w.dir).enqueue(c.id, c.headers(w.dir, withLength(w.head, length), false)) {
		return errInterrupted
	}
	return nil
}

// errInterrupted is returned to the code that applies the rules when the exchange has ended meanwhile.
var errInterrupted = errors.New("the exchange was ended")

// Write forwards bytes of the body. It waits while the receiver's window is used up.
func (w *changeSink) Write(p []byte) (int, error) {
	c, to := w.change, w.change.to(w.dir)
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), maxQueued)]
		rest = rest[len(part):]
		if !to.awaitSpace(c.id) || !c.enqueue(w.dir, sendItem{data: append([]byte(nil), part...)}) {
			return len(p) - len(rest) - len(part), errInterrupted
		}
	}
	return len(p), nil
}

// stop ends the exchange because of a rule: the server gets a reset, and the client an answer or a reset.
func (c *change) stop(s *rewrite.Stop) {
	// Two rules can decide in both directions at the same time; the first one ends the stream.
	c.mu.Lock()
	if c.cut {
		c.mu.Unlock()
		return
	}
	c.cut = true
	headSent := c.headSent
	c.mu.Unlock()

	// Frames that still arrive must not reach the other side, and readers must not wait for more.
	c.relay.cutStream(c.id)
	c.interrupt(false)
	var watched [2]int64
	for d, p := range c.relay.pumps {
		if c.bodies[d] != nil {
			watched[d] = p.endWatch(c)
		}
		c.to(captures.Direction(d)).interrupt(c.id)
		c.discard(captures.Direction(d))
	}

	// The server gets a RST_STREAM only if the stream was opened: a request that still waits for its
	// length was never forwarded.
	server, client := c.to(captures.Up), c.to(captures.Down)
	if !c.unopened && !c.relay.withdraw(c) {
		server.dropQueue(c.id)
		server.sendControl(resetFrame(c.id, codeCancel))
	}
	received := c.awaitBodies(watched)

	if s.Action == rewrite.Reset || s.Answer == nil {
		client.dropQueue(c.id)
		client.sendControl(resetFrame(c.id, codeInternal))
		c.record(s.Rule, received, nil)
		c.relay.releaseExchanges(c.relay.removeStream(c.stream, c.id, captures.Reset, errors.New("a rule of unwire reset the exchange: "+s.Rule)))
		return
	}

	if c.hasResponse() {
		c.record(s.Rule, received, nil)
		c.endRequest()
	} else {
		c.answer(s, headSent, received)
	}
}

// hasResponse reports whether the whole response was forwarded, or waits in the client's send queue.
func (c *change) hasResponse() bool {
	c.mu.Lock()
	queued := c.endSent
	c.mu.Unlock()
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	return queued || c.stream.ended[captures.Down]
}

// endRequest tells a client that has received the whole response to send no more of the request. Nothing else may
// follow a complete response.
//
// Source: RFC 9113, section 8.1
func (c *change) endRequest() {
	client, frame := c.to(captures.Down), resetFrame(c.id, codeNone)
	sent := func() { c.relay.releaseExchanges(c.relay.removeStream(c.stream, c.id, captures.Complete, nil)) }
	if !client.enqueue(c.id, sendItem{frame: frame, alone: true, sent: sent}) {
		client.sendControl(frame)
		sent()
	}
}

// answer sends the answer of a rule that ends the exchange. headSent means that the server's head was already
// forwarded: then its status stays, and only the end of the body is replaced. received is the number of body bytes
// received, by direction.
func (c *change) answer(s *rewrite.Stop, headSent bool, received [2]int64) {
	client, a := c.to(captures.Down), s.Answer
	body := a.Tail
	if !headSent {
		body = a.Body
		fields := append([]hpack.HeaderField{{Name: pseudoStatus, Value: strconv.Itoa(a.Status)}}, hpackFields(a.Header)...)
		client.enqueue(c.id, sendItem{frame: encodeHeaders(c.id, fields, false)})
	}
	c.recordAnswer(s, headSent)
	c.record(s.Rule, received, body)
	client.enqueue(c.id, sendItem{data: body, end: len(a.Trailers) == 0})

	// The exchange ends when the last frame was written, not when it was queued: flow control may hold
	// it back.
	sent := func() {
		client.endQueue(c.id)
		c.relay.releaseExchanges(c.relay.removeStream(c.stream, c.id, captures.Complete, nil))
	}
	if len(a.Trailers) > 0 {
		client.enqueue(c.id, sendItem{frame: encodeHeaders(c.id, hpackFields(a.Trailers), true), sent: sent})
	} else {
		client.enqueue(c.id, sendItem{sent: sent})
	}
}

// awaitBodies waits until neither direction forwards anything, and returns how many body bytes were received in each.
// watched are these numbers for directions whose frames were still forwarded as received.
func (c *change) awaitBodies(watched [2]int64) (received [2]int64) {
	c.mu.Lock()
	responded, inboxes := c.responded, c.inboxes
	c.mu.Unlock()
	received = watched
	for d, in := range inboxes {
		if in == nil {
			continue
		}
		if d == int(captures.Up) || responded {
			<-in.done
		}
		in.mu.Lock()
		received[d] = in.received
		in.mu.Unlock()
	}
	return received
}

// record stores in the recording that the rule with a name replaced the received bytes that were not forwarded: those
// of the request by nothing, those of the response by body. received is the number of body bytes received, by
// direction.
func (c *change) record(rule string, received [2]int64, body []byte) {
	rec := c.stream.rec
	if rec == nil {
		return
	}
	for d, b := range c.bodies {
		if b == nil {
			continue
		}
		data := body
		if d == int(captures.Up) {
			data = nil
		}
		if at := b.Offset(); at < received[d] || len(data) > 0 {
			rec.Edit(captures.Direction(d), at, received[d], rule, data)
		}
	}
}

// recordAnswer records the status and headers of a response that a rule supplied. headSent means that the server's
// own head was already forwarded, so that only trailers are recorded.
func (c *change) recordAnswer(s *rewrite.Stop, headSent bool) {
	rec := c.stream.rec
	if rec == nil {
		return
	}
	head := captures.ForwardedHead{Status: s.Answer.Status, Headers: s.Answer.Header, Trailers: s.Answer.Trailers}
	if !headSent || len(head.Trailers) > 0 {
		rec.ForwardHead(captures.Down, s.Rule, head)
	}
}

// maxCut is the number of streams ended by rules whose late frames are dropped. Late frames arrive within a round trip
// or two, in which far fewer streams end.
const maxCut = 16 << 10

// cutStream makes the pumps discard all frames that still arrive for a stream.
func (r *Relay) cutStream(id uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hasCut.Store(true)
	r.cut[id] = struct{}{}
	if len(r.cutOrder) < maxCut {
		r.cutOrder = append(r.cutOrder, id)
		return
	}
	delete(r.cut, r.cutOrder[r.cutNext])
	r.cutOrder[r.cutNext] = id
	r.cutNext = (r.cutNext + 1) % maxCut
}

// isCut reports whether a rule has ended the stream.
func (r *Relay) isCut(id uint32) bool {
	if !r.hasCut.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, cut := r.cut[id]
	return cut
}

// resetFrame returns an encoded RST_STREAM frame with an error code.
func resetFrame(stream uint32, code errorCode) []byte {
	return appendFrame(nil, frameRSTStream, 0, stream, binary.BigEndian.AppendUint32(nil, uint32(code)))
}

// hpackFields converts header fields for HPACK, with names in lower case as HTTP/2 requires.
func hpackFields(h captures.Headers) []hpack.HeaderField {
	out := make([]hpack.HeaderField, len(h))
	for i, f := range h {
		out[i] = hpack.HeaderField{Name: strings.ToLower(f.Name), Value: f.Value}
	}
	return out
}
