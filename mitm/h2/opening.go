package h2

import (
	"slices"
	"time"

	"golang.org/x/net/http2/hpack"

	"unwire/mitm/rewrite"
)

const (
	// openingDelay is how long the streams that a client opens wait for the body of an earlier request, whose length
	// must be declared in its head. Then that head is forwarded without a length.
	openingDelay = 500 * time.Millisecond

	// maxOpenings and maxOpeningBytes limit the requests that wait and their frames.
	maxOpenings     = 1000
	maxOpeningBytes = 256 << 10
)

// An opening is a request whose head was not forwarded yet, because its length or that of an earlier request is not
// known. Clients must open streams in the order of their numbers, so requests wait for those before them.
type opening struct {
	stream uint32

	// change is nil if the stream is not changed. length is for its declared length.
	change *change
	length int64

	// held is the head and the body, if the body is still watched. It is nil otherwise.
	held *held

	// ready means that the request waits only for those before it.
	ready bool

	// frames are what is forwarded: the head, if it needs no length, and frames behind it.
	frames []byte

	// blocksSince is when the next request began to wait for this one.
	blocksSince time.Time

	// started, if not nil, is called after the head was written. done is closed then, or when the opening is withdrawn.
	started func()
	done    chan struct{}
}

// findOpening returns the opening of a stream, or nil.
func (p *pump) findOpening(stream uint32) *opening {
	for _, o := range p.openings {
		if o.stream == stream {
			return o
		}
	}
	return nil
}

// addOpening appends a request to those that wait.
func (p *pump) addOpening(o *opening) {
	o.done = make(chan struct{})
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

// addFrame appends a frame of a request that waits.
func (p *pump) addFrame(o *opening, frame []byte) {
	o.frames = append(o.frames, frame...)
	if p.openingBytes += len(frame); p.openingBytes > maxOpeningBytes {
		p.forceOpenings(p.openings[len(p.openings)-1].stream)
	}
}

// forwardOpenings forwards the requests that wait for none before them.
func (p *pump) forwardOpenings() {
	// Nothing can be inserted into a frame that is forwarded in parts.
	if p.longLeft > 0 && !p.long.dropped && !p.long.whole {
		return
	}
	for len(p.openings) > 0 && p.openings[0].ready {
		o := p.openings[0]
		p.openings = p.openings[1:]
		p.openingBytes -= len(o.frames)
		p.startCopying()
		if h := o.held; h != nil {
			p.encoded = append(p.encoded, p.headOf(h)...)
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
		close(o.done)
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

// forceOpenings forwards the requests that wait up to a stream. The length of those that are not ready is not declared.
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

// abandonOpening forwards the head of a request that the client resets, and those before it, so that the server knows
// the stream.
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

// openWithLength forwards the head of a request whose body has the given length, or rewrite.Unknown or
// rewrite.Unchanged. It waits until the head was forwarded.
func (r *Relay) openWithLength(c *change, length int64) error {
	p := r.pumps[0]
	p.busy.Lock()
	o := p.findOpening(c.id)
	if o != nil && !o.ready {
		o.ready, o.length = true, length
		p.forwardOpenings()
	}
	p.flush()
	p.busy.Unlock()
	if o == nil {
		return nil
	}
	select {
	case <-o.done:
		return nil
	case <-c.ctx.Done():
		return errInterrupted
	}
}

// withdraw removes a request that waits. It reports whether it waited.
func (r *Relay) withdraw(c *change) bool {
	p := r.pumps[0]
	p.busy.Lock()
	defer p.busy.Unlock()
	i := slices.IndexFunc(p.openings, func(o *opening) bool { return o.change == c })
	if i < 0 {
		return false
	}
	o := p.openings[i]
	p.openings = slices.Delete(p.openings, i, i+1)
	p.openingBytes -= len(o.frames)
	if o.held != nil {
		p.dropData(o.held)
		// The head was decoded, and later ones may refer to it.
		p.startReencoding()
	}
	close(o.done)
	p.forwardOpenings()
	p.flush()
	return true
}

// A held is what has arrived of a direction that is watched, and is not forwarded yet.
type held struct {
	change *change

	// raw is the frame of the head as it arrived, and fields are its fields; nil if the head was forwarded.
	raw      []byte
	fields   []hpack.HeaderField
	flags    uint8
	priority []byte

	// data is the content of the DATA frames.
	data []byte
}

// headOf returns the frames of a head that was held; none if it was forwarded.
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

// dropData discards the data of a held, and lets the other side send as much again on the connection.
func (p *pump) dropData(h *held) {
	p.heldBytes -= len(h.data)
	p.src.sender.grant(0, len(h.data), 0)
	h.data = nil
}
