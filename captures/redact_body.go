package captures

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// How long bytes are held back at most because a secret may be passing: after
// maxHold of quiet, or maxHoldTotal of anything, they are written.
const (
	maxHold      = 250 * time.Millisecond
	maxHoldTotal = 3 * maxHold
)

// A body takes the secrets out of one direction of an exchange.
//
// Chunks go in as they pass and come out, in order, with their sizes, times
// and boundaries, as soon as it is decided that no secret begins in them that
// a later chunk would complete. Only where a compressed message or body had to
// be rewritten do sizes change; the last chunk of it takes the difference.
//
// What is done about compression:
//   - A body with a content encoding (gzip, deflate, br, zstd) is inflated on
//     the side as it passes. It is held until it ends; if it held a secret it is
//     compressed anew, without it, by the same codec.
//   - So is each compressed message of a Connect, gRPC or gRPC-Web stream
//     (its envelope gets the new length), the others being searched as they are.
//   - Of what is longer than 4 MiB compressed, all but the last 256 KiB is
//     written while it is still clean; if a secret turns up after that, the rest
//     is overwritten with the letter x, and no longer inflates. The same goes
//     for an event stream with a content encoding, which is not held for longer
//     than a quarter of a second of quiet, and for what does not inflate.
//   - What inflates to more than 64 MiB is not searched any further.
type body struct {
	r       *Redactor
	pending []pendingChunk
	in      int64 // bytes that came in
	decided int64 // bytes that will not change any more

	encoding string // of the whole body or of compressed frames; "": find out
	events   bool   // an event stream: it must not be held for long
	framed   framing
	frame    frame
	scan     *scanner
	section  *section // the compressed run that is passing
	codecs   codecs
}

type framing uint8

const (
	unframed framing = iota
	envelopes
	unsure // an event stream: some carry envelopes
)

// frame is the state between the bytes of an envelope stream.
type frame struct {
	header [5]byte
	have   int   // bytes of the header
	left   int64 // bytes of the payload
	start  int64 // position of the header
}

// Flags of an envelope.
const (
	flagCompressed = 0b0000_0001
	flagEnd        = 0b0000_0010
	flagTrailers   = 0b1000_0000
)

// A pendingChunk is one that has not been decided as a whole.
type pendingChunk struct {
	chunk      *Chunk
	start, end int64
	edits      []edit
}

// An edit replaces the bytes from start to end of the direction by data.
type edit struct {
	start, end int64
	data       []byte
}

// newBody returns a body for the direction that h describes.
func newBody(r *Redactor, h Headers) *body {
	media, _, _ := strings.Cut(strings.ToLower(h.Get("content-type")), ";")
	media = strings.TrimSpace(media)
	b := &body{r: r, events: media == "text/event-stream"}
	switch {
	case strings.HasPrefix(media, "application/connect+"):
		b.framed, b.encoding = envelopes, h.Get("connect-content-encoding")
	case strings.HasPrefix(media, "application/grpc"):
		b.framed, b.encoding = envelopes, h.Get("grpc-encoding")
	case b.events:
		b.framed, b.encoding = unsure, h.Get("connect-content-encoding")
	}
	b.scan = newScanner(r, media == "application/x-www-form-urlencoded")
	b.scan.hit = func(start, end int64, secret string) { b.replace(start, end, secret) }
	if whole := strings.ToLower(h.Get("content-encoding")); knownEncoding(whole) && whole != "identity" {
		b.framed, b.encoding = unframed, whole
		b.section = newSection(b, 0)
	}
	return b
}

// replace puts a placeholder over a secret.
func (b *body) replace(start, end int64, secret string) {
	b.edit(start, end, []byte(fill(b.r, secret, int(end-start))))
}

// fill returns n bytes in place of a secret, or of the rest of one.
func fill(r *Redactor, secret string, n int) string {
	switch {
	case secret == "":
		return strings.Repeat(".", n)
	case len(secret) == n && isPlaceholder(secret):
		return secret
	}
	return sameLength(r.tag(secret), n)
}

// write takes a chunk; ready returns those that can be stored.
func (b *body) write(c *Chunk) {
	at := b.in
	b.pending = append(b.pending, pendingChunk{chunk: c, start: at, end: at + int64(len(c.Data))})
	b.in += int64(len(c.Data))
	if b.framed == unsure {
		b.framed = envelopes
		if c.Data[0]&^(flagCompressed|flagEnd) != 0 {
			b.framed = unframed // "data:" or "event:"
		}
	}
	p := c.Data
	for len(p) > 0 {
		n := b.step(p, at)
		p, at = p[n:], at+int64(n)
	}
}

// step handles some of p, which stands at position at, and returns how much.
func (b *body) step(p []byte, at int64) int {
	switch {
	case b.section != nil && b.framed == unframed:
		b.section.feed(p, at)
		b.decided = b.section.decided()
		return len(p)
	case b.framed == unframed:
		b.search(p, at)
		return len(p)
	case b.frame.left == 0:
		return b.readHeader(p, at)
	}
	n := int(min(int64(len(p)), b.frame.left))
	b.frame.left -= int64(n)
	if b.section != nil {
		b.section.feed(p[:n], at)
		if b.section.lost {
			b.decided = b.section.decided()
		}
	} else {
		b.search(p[:n], at)
	}
	if b.frame.left == 0 {
		b.endFrame()
	}
	return n
}

// search looks for secrets in bytes that are not compressed.
func (b *body) search(p []byte, at int64) {
	if len(b.scan.buf) == 0 {
		b.scan.base = at // headers lay between
	}
	b.scan.feed(p)
	b.decided = b.scan.decided()
}

// readHeader takes bytes of an envelope's header.
func (b *body) readHeader(p []byte, at int64) int {
	f := &b.frame
	if f.have == 0 {
		f.start = at
		if p[0]&^(flagCompressed|flagEnd|flagTrailers) != 0 {
			b.framed = unframed // these are no envelopes, whatever the headers said
			return 0
		}
	}
	n := copy(f.header[f.have:], p)
	f.have += n
	if f.header[0]&flagCompressed == 0 {
		b.decided = at + int64(n)
	}
	if f.have == len(f.header) {
		f.have, f.left = 0, int64(binary.BigEndian.Uint32(f.header[1:]))
		if f.header[0]&flagCompressed != 0 && f.left > 0 {
			b.section = newSection(b, at+int64(n))
			b.decided = max(b.decided, f.start)
		} else {
			b.decided = at + int64(n)
		}
	}
	return n
}

// endFrame decides everything up to the end of the frame: a secret does not
// go on in the next one.
func (b *body) endFrame() {
	if b.section == nil {
		b.scan.finish()
		b.decided = b.scan.decided()
		return
	}
	if data, ok := b.section.finish(); ok {
		length := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		b.edit(b.frame.start+1, b.frame.start+5, length)
	}
	b.decided = b.section.at
	b.section = nil
}

// hurry decides what has been held for long enough.
func (b *body) hurry() {
	switch {
	case b.section == nil:
		if len(b.scan.buf) > 0 {
			b.scan.hurry()
			b.decided = b.scan.decided()
		}
	case b.framed == unframed && b.events:
		b.section.release()
		b.decided = b.section.decided()
	}
}

// close decides everything.
func (b *body) close() {
	if b.section != nil {
		b.section.finish()
		b.section = nil
	} else {
		b.scan.finish()
	}
	b.decided = b.in
}

// holding reports whether chunks are held back that hurry would release.
func (b *body) holding() bool {
	return len(b.pending) > 0 && (b.section == nil || b.framed == unframed && b.events)
}

// edit replaces the bytes from start to end by data, each pending chunk
// getting as much as it had and the last one the rest.
func (b *body) edit(start, end int64, data []byte) {
	for i := range b.pending {
		c := &b.pending[i]
		from, to := max(start, c.start), min(end, c.end)
		if from >= to {
			continue
		}
		n := min(len(data), int(to-from))
		if to == end {
			n = len(data)
		}
		c.edits = append(c.edits, edit{from, to, data[:n]})
		data = data[n:]
	}
}

// ready removes the chunks that are decided and applies their edits.
func (b *body) ready() []*Chunk {
	var out []*Chunk
	for len(b.pending) > 0 && b.pending[0].end <= b.decided {
		out = append(out, b.pending[0].apply())
		b.pending = b.pending[1:]
	}
	return out
}

// split cuts the chunk in two where a compressed message begins in it, and
// returns the second part, or nil: what precedes a message must not wait for it.
func (b *body) split() *Chunk {
	if len(b.pending) == 0 || b.section == nil || b.framed == unframed {
		return nil
	}
	last := &b.pending[len(b.pending)-1]
	at := b.frame.start
	if at <= last.start || at >= last.end || b.decided < at {
		return nil
	}
	c := *last.chunk
	c.Data = c.Data[at-last.start:]
	last.chunk.Data = last.chunk.Data[:at-last.start]
	b.pending = append(b.pending, pendingChunk{chunk: &c, start: at, end: last.end})
	b.pending[len(b.pending)-2].end = at
	return &c
}

func (p *pendingChunk) apply() *Chunk {
	if len(p.edits) == 0 {
		return p.chunk
	}
	slices.SortFunc(p.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out bytes.Buffer
	at := p.start
	for _, e := range p.edits {
		out.Write(p.chunk.Data[at-p.start : e.start-p.start])
		out.Write(e.data)
		at = e.end
	}
	out.Write(p.chunk.Data[at-p.start:])
	p.chunk.Data = out.Bytes()
	return p.chunk
}
