package h2

import (
	"slices"
	"time"

	"golang.org/x/net/http2/hpack"

	"unwire/mitm/rewrite"
)

const (
	// openingDelay is how long later requests wait for one whose content-length is not known yet. After that, its
	// head is forwarded without a content-length.
	openingDelay = 500 * time.Millisecond

	// maxOpenings is the number of requests of a connection that may wait to be opened.
	maxOpenings = 1000
	// maxOpeningBytes is how many bytes the frames of all waiting requests may have.
	maxOpeningBytes = 256 << 10
)

// An opening is a request whose HEADERS frame was not forwarded to the server yet, because its content-length, or
// that of an earlier request, is not known. Clients must open streams in the order of their numbers, so a request
// waits for those before it.
type opening struct {
	// stream is the number of the HTTP/2 stream.
	stream uint32

	// change is the state of the stream for the rules; nil if rules cannot change the stream.
	change *change
	// length is the length of the request's changed body in bytes, rewrite.Unknown or rewrite.Unchanged; it is valid
	// once ready is set.
	length int64

	// held has the request's header block and body as received, while no rule has matched; nil if the body goes
	// through an inbox, or was never withheld.
	held *held

	// ready means that the request waits only for earlier requests, not for its own length.
	ready bool

	// frames are the encoded frames to be forwarded: HEADERS, if its content-length cannot change, and the frames
	// that arrived for the stream since.
	frames []byte

	// blocksSince is when the next request began to wait for this one.
	blocksSince time.Time

	// started, if not nil, is called after the HEADERS frame was put into the output.
	started func()
	// done is closed when the HEADERS frame was forwarded, or when the request was withdrawn. It is nil if nothing
	// waits for that.
	done chan struct{}
}

// leave reports to whoever waits for the request that it was forwarded or withdrawn.
func (o *opening) leave() {
	if o.done != nil {
		close(o.done)
	}
}

// findOpening returns the waiting request of a stream, or nil if the stream's request does not wait.
func (p *pump) findOpening(stream uint32) *opening {
	for _, o := range p.openings {
		if o.stream == stream {
			return o
		}
	}
	return nil
}

// addOpening appends a request to those that wait to be opened at the server, and forwards all that need not wait.
func (p *pump) addOpening(o *opening) {
	if n := len(p.openings); n > 0 {
		p.openings[n-1].blocksSince = time.Now()
	}
	p.openings = append(p.openings, o)
	p.openingBytes += len(o.frames)
	if len(p.openings) > maxOpenings {
		p.forceOpenings(o.stream - 1)
	}
	p.forwardOpenings()
}

// addFrame appends an encoded frame to those of a waiting request. If all waiting frames exceed maxOpeningBytes, the
// requests are forwarded without a declared length.
func (p *pump) addFrame(o *opening, frame []byte) {
	o.frames = append(o.frames, frame...)
	if p.openingBytes += len(frame); p.openingBytes > maxOpeningBytes {
		p.forceOpenings(p.openings[len(p.openings)-1].stream)
	}
}

// forwardOpenings forwards, in order, the waiting requests that are ready and have no unready one before them. If the
// first one blocks others, a timer of openingDelay forwards it without a declared length.
func (p *pump) forwardOpenings() {
	// Nothing can be inserted into a frame that is forwarded in parts.
	if p.longLeft > 0 && !p.long.dropped && !p.long.whole {
		return
	}
	for len(p.openings) > 0 && p.openings[0].ready {
		o := p.openings[0]
		p.openings = slices.Delete(p.openings, 0, 1)
		p.openingBytes -= len(o.frames)
		p.startCopying()
		if h := o.held; h != nil {
			p.appendHead(h)
		} else if o.change != nil && o.change.head != nil {
			p.encoded = append(p.encoded, encodeHeaders(o.stream, withLength(o.change.head, o.length), false)...)
		}
		p.encoded = append(p.encoded, o.frames...)
		if o.change != nil && o.held == nil {
			// The body is written by another goroutine.
			p.flush()
		}
		if o.started != nil {
			o.started()
		}
		o.leave()
	}

	// The first one must not keep the others waiting for long.
	if len(p.openings) > 1 && p.delayed != p.openings[0] {
		first := p.openings[0]
		p.delayed = first
		time.AfterFunc(openingDelay-time.Since(first.blocksSince), func() {
			p.busy.Lock()
			defer p.busy.Unlock()
			if len(p.openings) > 1 && p.openings[0] == first {
				p.forceOpenings(first.stream)
				p.flush()
			}
		})
	}
}

// forceOpenings forwards the waiting requests up to a stream number now. Those whose length is not known yet are sent
// without content-length.
func (p *pump) forceOpenings(upTo uint32) {
	for _, o := range slices.Clone(p.openings) {
		if o.stream > upTo || o.ready {
			continue
		}
		if o.held != nil {
			p.divertWatched(o.change)
		}
		o.ready, o.length = true, rewrite.Unknown
	}
	p.forwardOpenings()
}

// abandonOpening forwards the head of a waiting request that the client resets, and of those before it, so that the
// server knows the stream that is reset.
func (p *pump) abandonOpening(stream uint32) {
	o := p.findOpening(stream)
	if o == nil {
		return
	}
	if h := o.held; h != nil && !o.ready {
		p.dropData(h)
		p.startReencoding()
		o.held, o.change.head = nil, h.fields
	}
	p.forceOpenings(stream)
}

// openWithLength forwards the head of a waiting request, now that its body has a length: in bytes, or rewrite.Unknown
// or rewrite.Unchanged. It returns when the head was forwarded, and does nothing if the request does not wait.
func (r *Relay) openWithLength(c *change, length int64) error {
	p := r.pumps[0]
	p.busy.Lock()
	o := p.findOpening(c.id)
	if o == nil {
		p.flush()
		p.busy.Unlock()
		return nil
	}
	done := make(chan struct{})
	o.done = done
	if !o.ready {
		o.ready, o.length = true, length
		p.forwardOpenings()
	}
	p.flush()
	p.busy.Unlock()
	select {
	case <-done:
		return nil
	case <-c.ctx.Done():
		return errInterrupted
	}
}

// withdraw removes a waiting request, which the server then never sees. It reports whether the request was still
// waiting.
func (r *Relay) withdraw(c *change) bool {
	p := r.pumps[0]
	p.busy.Lock()
	defer p.busy.Unlock()
	i := slices.IndexFunc(p.openings, func(o *opening) bool { return o.change == c })
	if i < 0 {
		return false
	}
	p.removeOpening(p.openings[i])
	p.flush()
	return true
}

// removeOpening removes a waiting request, which the server then never sees.
func (p *pump) removeOpening(o *opening) {
	i := slices.Index(p.openings, o)
	p.openings = slices.Delete(p.openings, i, i+1)
	p.openingBytes -= len(o.frames)
	if o.held != nil {
		p.dropData(o.held)
		// The head was decoded, and later ones may refer to it.
		p.startReencoding()
	}
	o.leave()
	p.forwardOpenings()
}

// A held is the received part of a body, perhaps with its header block, that is not forwarded yet because the rules
// can decide only when more has arrived.
type held struct {
	// change is the state of the stream for the rules.
	change *change

	// raw are the HEADERS frame as it arrived, with its 9-byte header; nil if the header block was forwarded.
	raw []byte
	// fields are the decoded header fields; nil if the header block was forwarded.
	fields []hpack.HeaderField
	// flags are the flags of the HEADERS frame.
	flags uint8
	// priority is the 5-byte priority field of the HEADERS frame; empty if it has none.
	priority []byte

	// data is the content of the DATA frames.
	data []byte
}

// headOf returns the HEADERS frames of a withheld header block, encoded anew if necessary; nil if the block was
// forwarded already.
func (p *pump) headOf(h *held) []byte {
	if h.fields == nil || !p.reencode {
		return h.raw
	}
	p.encBuf = p.encBuf[:0]
	for _, f := range h.fields {
		// Writing to memory cannot fail.
		_ = p.enc.WriteField(f)
	}
	return appendHeaderBlock(nil, h.flags&flagEndStream, h.change.id, h.priority, p.encBuf)
}

// dropData discards withheld body bytes, and returns their number to the connection's flow-control window.
func (p *pump) dropData(h *held) {
	p.heldBytes -= len(h.data)
	p.src.sender.grant(0, len(h.data), 0)
	h.data = nil
}
