package h2

import (
	"errors"
	"strconv"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

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
		c.relay.releaseExchanges(c.relay.removeStream(c.stream, c.id, captures.Reset, errors.New("reset by the rule "+s.Rule)))
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

// cutStream makes the pumps discard all frames that still arrive for a stream.
func (r *Relay) cutStream(id uint32) {
	r.mu.Lock()
	r.cut[id] = struct{}{}
	r.mu.Unlock()
}

// isCut reports whether a rule has ended the stream.
func (r *Relay) isCut(id uint32) bool {
	if !r.config.Rewrites {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, cut := r.cut[id]
	return cut
}
