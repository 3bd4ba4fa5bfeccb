package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode/envelope"
)

// A BodyFilter redacts the secrets in one direction of an exchange.
//
// The caller writes each recorded chunk. Chunks are returned in order, with unchanged size and time, once they cannot contain the beginning of a secret that a later chunk completes. Sizes change only if a compressed message or body was rewritten; its last chunk gets the difference.
//
// What is done about compression:
//   - A body with a content encoding (gzip, deflate, br, zstd) is decompressed in parallel. It is held back until it ends; if it contains a secret, the secret is replaced and the body is compressed again with the same codec.
//   - Each compressed message of a Connect, gRPC or gRPC-Web stream is treated in the same way (its envelope gets the new length). Uncompressed messages are searched directly.
//   - Of what is longer than 4 MiB compressed, all but the last 256 KiB is
//     written while it is still clean; if a secret turns up after that, the rest
//     is overwritten with the letter x, and no longer inflates. The same goes
//     for an event stream with a content encoding, which is not held for longer
//     than a quarter of a second of quiet, and for what does not inflate.
//   - Data that decompresses to more than 256 MiB is not searched beyond that size.
//   - A body that begins as a gzip or zstd file does is treated like a compressed body, even without a header that declares the compression.
//   - Inside a content encoding the same rules apply to further content encodings,
//     envelopes, compressed messages. The base64 of gRPC-Web's text form counts
//     as a content encoding.
//
// An envelope with unknown flags is still parsed, because its length is known. If its length is impossible, the stream does not consist of envelopes: the bytes from there on are searched directly. The bytes of a compressed message that cannot be decompressed are also searched directly. Both cases are reported in unsearched.
type BodyFilter struct {
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
	edited   bool // something was replaced
	sniff    bool // the first bytes may be of a compressed file

	// messages means that each chunk is a WebSocket message or a part of one.
	messages bool

	// unsearched lists the byte ranges that could not be searched for secrets. Their direction is not
	// set.
	unsearched []Unsearched

	opaqueFrom int64  // with opaque: where it begins
	opaque     string // why nothing can be looked into any more; "": it can
}

type framing uint8

const (
	unframed framing = iota
	envelopes
	unsure // an event stream or one message: some carry envelopes
)

// maxEnvelope is the length from which on that of an envelope with unknown flags
// is not believed.
const maxEnvelope = 64 << 20

// frame is the state between the bytes of an envelope stream.
type frame struct {
	prefix envelope.PrefixReader
	flags  envelope.Flags
	left   int64 // bytes of the payload
	start  int64 // position of the prefix
	length int64 // of the payload
}

// A pendingChunk is a chunk that may still contain the beginning of a secret.
type pendingChunk struct {
	chunk      *captures.Chunk
	start, end int64
	edits      []Edit
}

// An Edit replaces the bytes from Start to End of one direction of an exchange
// by Data.
type Edit struct {
	// Start and End are the offsets of the replaced bytes, and Data replaces them.
	Start, End int64
	Data       []byte
}

// NewBodyFilter returns the filter for the direction that h describes.
func NewBodyFilter(r *Redactor, h captures.Headers) *BodyFilter {
	media := mediaType(h)
	b := &BodyFilter{r: r, events: media == "text/event-stream"}
	switch {
	case strings.HasPrefix(media, "application/connect+"):
		b.framed, b.encoding = envelopes, h.Get("connect-content-encoding")
	case strings.HasPrefix(media, "application/grpc"):
		b.framed, b.encoding = envelopes, h.Get("grpc-encoding")
	case b.events, isMessage(media):
		b.framed, b.encoding = unsure, h.Get("connect-content-encoding")
	}
	b.scan = newScanner(r, media == "application/x-www-form-urlencoded")
	b.scan.hit = func(start, end int64, secret string) { b.replace(start, end, secret) }
	b.scan.split = b.scan.hit
	switch outer, inner := peel(h); {
	case outer == "":
		b.sniff = b.framed == unframed && h != nil
	case outer != base64Text && !envelope.Known(outer):
		b.framed = unframed
		b.giveUp(0, fmt.Sprintf("unknown content encoding %q", outer))
	default:
		b.framed, b.encoding = unframed, outer
		b.section = newSection(b, 0)
		b.section.nest(inner)
	}
	return b
}

// NewMessageFilter returns the filter for a direction of a WebSocket. Each message is
// searched by itself; a secret that is spread over its parts is found.
func NewMessageFilter(r *Redactor) *BodyFilter {
	b := NewBodyFilter(r, nil)
	b.messages = true
	return b
}

// writeMessage is Write for a message of a WebSocket, or a part of one. A control message
// may stand between the parts of another one: it takes no position among their bytes.
func (b *BodyFilter) writeMessage(c *captures.Chunk) {
	if c.Opcode.Kind() >= captures.OpClose {
		c.Data = b.r.Bytes(c.Data)
		b.pending = append(b.pending, pendingChunk{chunk: c, start: b.in, end: b.in})
		return
	}
	start := b.in
	b.in += int64(len(c.Data))
	b.pending = append(b.pending, pendingChunk{chunk: c, start: start, end: b.in})
	b.search(c.Data, start)
	if c.Opcode&captures.OpFinal != 0 {
		b.scan.finish()
		b.decided = b.in
	}
}

func mediaType(h captures.Headers) string {
	media, _, _ := strings.Cut(strings.ToLower(h.Get("content-type")), ";")
	return strings.TrimSpace(media)
}

// isMessage reports whether a body of this type is one message, which some
// clients put into an envelope.
func isMessage(media string) bool {
	switch media {
	case "application/json", "application/proto", "application/protobuf", "application/x-protobuf",
		"application/vnd.google.protobuf", "application/x-google-protobuf":
		return true
	}
	return false
}

const (
	// grpcWebText is the type of envelopes in base64.
	grpcWebText = "application/grpc-web-text"

	// maxEncodings is how many content encodings of a body are undone.
	maxEncodings = 3
)

// peel returns the outermost encoding of a body with headers h ("" if there is none), and the headers
// of the body inside that encoding.
func peel(h captures.Headers) (outer string, inner captures.Headers) {
	isEncoding := func(f captures.Header) bool { return strings.EqualFold(f.Name, "content-encoding") }
	if !slices.ContainsFunc(h, isEncoding) && !strings.HasPrefix(mediaType(h), grpcWebText) {
		return "", h
	}
	var encodings []string
	for _, f := range h {
		if !isEncoding(f) {
			inner = append(inner, f)
			continue
		}
		for e := range strings.SplitSeq(strings.ToLower(f.Value), ",") {
			if e = strings.TrimSpace(e); e != "" && e != "identity" {
				encodings = append(encodings, e)
			}
		}
	}
	switch n := len(encodings); {
	case n > maxEncodings:
		return strings.Join(encodings[:maxEncodings], ", ") + ", …", nil
	case n > 0:
		return encodings[n-1], append(inner, captures.Header{Name: "content-encoding", Value: strings.Join(encodings[:n-1], ",")})
	case !strings.HasPrefix(mediaType(h), grpcWebText):
		return "", inner
	}
	return base64Text, append(captures.Headers{{Name: "content-type", Value: "application/grpc-web"}}, inner...)
}

// replace schedules the replacement of a secret by a placeholder.
func (b *BodyFilter) replace(start, end int64, secret string) {
	b.edit(start, end, []byte(fill(b.r, secret, int(end-start))))
}

// Write adds a chunk. Afterwards Ready returns the chunks that can be stored.
func (b *BodyFilter) Write(c *captures.Chunk) {
	if b.messages {
		b.writeMessage(c)
		return
	}
	at := b.in
	b.pending = append(b.pending, pendingChunk{chunk: c, start: at, end: at + int64(len(c.Data))})
	b.in += int64(len(c.Data))
	if b.framed == unsure && len(c.Data) > 0 {
		b.framed = envelopes
		if !b.mayBeFlags(c.Data[0]) {
			b.framed = unframed
		}
	}
	if b.sniff && len(c.Data) > 0 {
		b.sniff = false
		b.guessEncoding(c.Data)
	}
	p := c.Data
	for len(p) > 0 {
		n := b.step(p, at)
		p, at = p[n:], at+int64(n)
	}
}

// guessEncoding detects compression by the first bytes of a body whose headers declare none.
func (b *BodyFilter) guessEncoding(p []byte) {
	if len(p) < 4 || p[0] == 0x1f && p[2] != 8 {
		return // a gzip member is deflated, there is no other way
	}
	if b.encoding = envelope.Sniff(p); b.encoding != "" {
		b.section = newSection(b, 0)
		b.section.guessed = true
	}
}

// mayBeFlags reports whether the first byte of a body that may or may not have
// envelopes is that of an envelope: an event begins with text ("data:"), and no
// message with a field number of 0.
func (b *BodyFilter) mayBeFlags(c byte) bool {
	if b.events {
		return c < ' ' && c != '\r' && c != '\n' || c == byte(envelope.Trailer)
	}
	return envelope.Flags(c)&^(envelope.Compressed|envelope.EndStream) == 0
}

// step processes the beginning of p, whose first byte has position at in the body, and returns how many
// bytes it has processed.
func (b *BodyFilter) step(p []byte, at int64) int {
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
func (b *BodyFilter) search(p []byte, at int64) {
	if len(b.scan.buf) == 0 {
		b.scan.base = at // headers lay between
	}
	b.scan.feed(p)
	b.decided = b.scan.decided()
}

// readHeader collects bytes of an envelope's 5-byte header, and returns how many it has used.
func (b *BodyFilter) readHeader(p []byte, at int64) int {
	f := &b.frame
	if len(f.prefix.Pending()) == 0 {
		f.start, b.decided = at, at
	}
	n, prefix, whole := f.prefix.Feed(p)
	if !whole {
		return n
	}
	f.flags, f.length, f.left = prefix.Flags, int64(prefix.Length), int64(prefix.Length)
	// Unknown flags mean that the headers are wrong about the framing.
	unknown := f.flags&^(envelope.Compressed|envelope.EndStream|envelope.Trailer) != 0
	compressed := f.flags&envelope.Compressed != 0
	if f.length > maxEnvelope && !(compressed && !unknown) {
		b.search(prefix.Append(nil), f.start) // it may be text
	}

	// Large or compressed envelopes need a section that is searched as a whole.
	switch {
	case unknown && f.length > maxEnvelope:
		f.left, b.framed = 0, unframed
		b.giveUp(f.start, "not envelopes, as the headers say")
	case (compressed || unknown) && f.left > 0:
		b.section = newSection(b, at+int64(n))
		b.section.detect = !compressed
		b.decided = f.start
	case f.length <= maxEnvelope:
		b.decided = at + int64(n)
	}
	return n
}

// endFrame decides everything up to the end of the frame: a secret does not
// go on in the next one.
func (b *BodyFilter) endFrame() {
	if b.section == nil {
		b.scan.finish()
		b.decided = b.scan.decided()
		return
	}
	if data, ok := b.section.finish(); ok {
		prefix := envelope.Prefix{Flags: b.frame.flags, Length: uint32(len(data))}
		b.edit(b.frame.start, b.frame.start+envelope.PrefixLen, prefix.Append(nil))
	}
	b.decided = b.section.at
	b.section = nil
}

// FlushHeld releases the chunks that have been held back for too long, without waiting for a possible
// end of a secret.
func (b *BodyFilter) FlushHeld() {
	switch {
	case b.section == nil:
		if len(b.scan.buf) > 0 {
			b.scan.flush()
			b.decided = b.scan.decided()
		}
		b.scan.endSplits()
		if pending := b.frame.prefix.Pending(); len(pending) > 0 && envelope.Flags(pending[0])&^(envelope.EndStream|envelope.Trailer) == 0 {
			b.decided = b.in // a prefix whose length will not change
		}
	case b.framed == unframed && b.events:
		b.section.release()
		b.decided = b.section.decided()
	}
}

// Close decides everything. If the body was truncated, what is held back at its
// end is treated as the beginning of a secret that it may be.
func (b *BodyFilter) Close(truncated bool) {
	if truncated && b.section == nil {
		b.FlushHeld()
	}
	pending := b.frame.prefix.Pending()
	if len(pending) > 0 || b.frame.left > 0 && (b.section == nil || b.section.detect) {
		b.note(Unsearched{Start: b.frame.start, End: b.in, Reason: endsInEnvelope, cut: b.frame.length <= maxEnvelope})
	}
	if b.section != nil {
		b.section.finish()
		b.section = nil
	} else {
		if len(pending) > 0 {
			b.search(pending, b.frame.start)
		}
		b.scan.finish()
		b.scan.endSplits()
	}
	if b.opaque != "" && b.in > b.opaqueFrom {
		b.note(Unsearched{Start: b.opaqueFrom, End: b.in, Reason: b.opaque})
	}
	b.decided = b.in
}

// Holding reports whether chunks are held back that FlushHeld would release.
func (b *BodyFilter) Holding() bool {
	return len(b.pending) > 0 && (b.section == nil || b.framed == unframed && b.events)
}

// edit replaces the bytes from start to end by data. Each pending chunk in the range keeps its size;
// the last one gets the difference.
func (b *BodyFilter) edit(start, end int64, data []byte) {
	b.edited = true
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
		c.edits = append(c.edits, Edit{from, to, data[:n]})
		data = data[n:]
	}
}

// Ready returns the chunks that were searched completely, with secrets replaced, and removes them from
// the filter.
func (b *BodyFilter) Ready() []*captures.Chunk {
	var out []*captures.Chunk
	decided := b.scan.firstSplit(b.decided)
	for len(b.pending) > 0 && b.pending[0].end <= decided {
		out = append(out, b.pending[0].apply())
		b.pending = b.pending[1:]
	}
	return out
}

// Split splits the current chunk at the beginning of a compressed message and returns the second part,
// or nil if no such message begins in it. The part before the message can then be stored at once.
func (b *BodyFilter) Split() *captures.Chunk {
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

func (p *pendingChunk) apply() *captures.Chunk {
	if len(p.edits) == 0 {
		return p.chunk
	}
	slices.SortFunc(p.edits, func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
	var out bytes.Buffer
	at := p.start
	for _, e := range p.edits {
		if e.Start < at { // it overlaps the one before, and both keep the length
			if e.End <= at {
				continue
			}
			e.Data, e.Start = e.Data[at-e.Start:], at
		}
		out.Write(p.chunk.Data[at-p.start : e.Start-p.start])
		out.Write(e.Data)
		at = e.End
	}
	out.Write(p.chunk.Data[at-p.start:])
	p.chunk.Data = out.Bytes()
	return p.chunk
}
