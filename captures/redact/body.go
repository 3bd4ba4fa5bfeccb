package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/captures/redact/internal/syntax"
	"unwire/decode/envelope"
)

// A BodyFilter replaces the secrets in one direction of an exchange by placeholders.
//
// The caller writes each recorded chunk. Chunks are returned in order, with unchanged size and time, once they
// cannot contain the beginning of a secret that a later chunk completes. Sizes change only if a compressed
// message or body was rewritten; its last chunk gets the difference.
//
// Compressed data is treated as follows:
//   - A body with a content encoding (gzip, deflate, br, zstd) is decompressed in parallel. It is held back until it
//     ends; if it contains a secret, the secret is replaced and the body is compressed again with the same codec.
//   - Each compressed message of a Connect, gRPC or gRPC-Web stream is treated in the same way (its envelope gets the
//     new length). Uncompressed messages are searched directly.
//   - If more than 4 MiB of compressed data has arrived, all but the last 256 KiB is released while no secret was
//     found. If one is found later, all bytes that were not released are overwritten with the letter x and can no
//     longer be decompressed. The same applies to a compressed event stream, which is held back for at most a quarter
//     of a second without new data, and to data that cannot be decompressed.
//   - Data that decompresses to more than 256 MiB is not searched beyond that size.
//   - A body that begins as a gzip or zstd file does is treated like a compressed body, even without a header that
//     declares the compression.
//   - Decompressed data may itself have a content encoding, envelopes or compressed messages; the same rules apply to
//     it. The base64 of gRPC-Web's text form counts as a content encoding.
//
// An envelope with unknown flags is still parsed, because its length is known. If its length is impossible, the
// stream does not consist of envelopes, and the bytes from there on are searched directly. The bytes of a
// compressed message that cannot be decompressed are also searched directly. Both cases are reported in
// unsearched.
type BodyFilter struct {
	// r finds the secrets and computes the placeholders.
	r *Redactor

	// pending are the chunks that were written to the filter but not returned to the caller yet.
	pending []pendingChunk
	// in is the number of bytes written to the filter so far.
	in int64
	// decided is the number of bytes, from the beginning of the body, that will not change any more.
	decided int64

	// encoding is the content encoding of the whole body or of compressed messages; "" means that it must be
	// detected.
	encoding string
	// events means that the body is an event stream, which must not be held back for long.
	events bool
	// framed is whether the body consists of envelopes, as in gRPC and Connect streams.
	framed framing
	// frame is the state of reading the current envelope; it is used if the body consists of envelopes.
	frame frame

	// scan searches bytes that are not compressed.
	scan scanner
	// section is the compressed body or message that is being received; nil if there is none.
	section *section

	// codecs keeps decoders for reuse.
	codecs codecs
	// edited means that a secret in the body was replaced.
	edited bool
	// sniff means that compression must be detected from the first bytes.
	sniff bool
	// first are the first bytes, while they are too few to detect compression.
	first []byte

	// messages means that each chunk is a WebSocket message or a part of one.
	messages bool

	// unsearched are the ranges of the body that could not be searched for secrets; their direction is not
	// set.
	unsearched []Unsearched

	// opaqueFrom is the position in the body from which on nothing can be searched; it is valid if opaque is
	// set.
	opaqueFrom int64
	// opaque is the reason why nothing from the position opaqueFrom on can be searched for secrets; "" if
	// there is none.
	opaque string
}

// A framing says whether a body consists of envelopes: messages after a 5-byte prefix, as in Connect and gRPC.
type framing uint8

const (
	unframed framing = iota
	envelopes
	// unsure means that the first byte must decide: some clients send an event stream or a single message in
	// envelopes.
	unsure
)

// maxEnvelope is the length in bytes above which an envelope with unknown flags is regarded as invalid.
const maxEnvelope = 64 << 20

// A frame is the state of reading an envelope: its 5-byte prefix, then its payload.
type frame struct {
	// prefix collects the 5-byte prefix of the envelope, which may arrive in parts.
	prefix envelope.PrefixReader
	// flags is the flags byte of the envelope's prefix.
	flags envelope.Flags
	// left is the number of payload bytes that have not been read yet.
	left int64
	// start is the position of the envelope's prefix in the body.
	start int64
	// length is the length of the envelope's payload in bytes.
	length int64
}

// A pendingChunk is a chunk that is held back because it may contain the beginning of a secret. start and end
// are its positions in the body.
type pendingChunk struct {
	// chunk is the chunk that is held back.
	chunk *captures.Chunk
	// start is the position of the chunk's first byte in the body.
	start int64
	// end is the position after the chunk's last byte in the body.
	end int64

	// edits are the replacements to be made in the chunk.
	edits []Edit
}

// An Edit replaces the bytes from Start to End of one direction of an exchange by Data.
type Edit struct {
	// Start is the offset of the first replaced byte in its direction of the exchange.
	Start int64
	// End is the offset after the last replaced byte in its direction of the exchange.
	End int64
	// Data are the bytes that replace the range.
	Data []byte
}

// NewBodyFilter returns the filter for a body. h are the headers of its request or response, of which the
// content type and the content encoding matter. u is the URL of the call, which may say that the call issues secrets;
// "" if it is not known.
func NewBodyFilter(r *Redactor, h captures.Headers, u string) *BodyFilter {
	return newBodyFilter(r, h, r.finderFor(u))
}

// newBodyFilter implements NewBodyFilter with a Finder.
func newBodyFilter(r *Redactor, h captures.Headers, finder *syntax.Finder) *BodyFilter {
	media := mediaType(h)
	b := r.newFilter()
	b.scan.syntax = finder
	b.events = media == "text/event-stream"
	switch {
	case strings.HasPrefix(media, "application/connect+"):
		b.framed, b.encoding = envelopes, h.Get("connect-content-encoding")
	case strings.HasPrefix(media, "application/grpc"):
		b.framed, b.encoding = envelopes, h.Get("grpc-encoding")
	case b.events, isMessage(media):
		b.framed, b.encoding = unsure, h.Get("connect-content-encoding")
	}
	b.scan.form = media == "application/x-www-form-urlencoded"
	switch outer, inner := peel(h, media); {
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

// NewMessageFilter returns the filter for one direction of a WebSocket. Each message is searched on its own; a
// secret that spans several fragments of a message is found.
func NewMessageFilter(r *Redactor) *BodyFilter {
	b := newBodyFilter(r, nil, r.messages)
	b.messages = true
	return b
}

// writeMessage implements Write for a WebSocket message or a fragment of one. Control messages, which may come
// between fragments, are redacted at once and do not count in positions.
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

// mediaType returns the content type in lower case, without parameters.
func mediaType(h captures.Headers) string {
	media, _, _ := strings.Cut(strings.ToLower(h.Get("content-type")), ";")
	return strings.TrimSpace(media)
}

// isMessage reports whether a body with this content type is a single JSON or protobuf message, which some
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
	// grpcWebText is the content type of gRPC-Web's text form, in which envelopes are encoded as base64.
	grpcWebText = "application/grpc-web-text"

	// maxEncodings is the largest number of nested content encodings of a body that are decoded.
	maxEncodings = 3
)

// peel returns the outermost content encoding of a body with headers h ("" if there is none), and headers that
// describe the body inside that encoding. media is the media type in h.
func peel(h captures.Headers, media string) (outer string, inner captures.Headers) {
	isEncoding := func(f captures.Header) bool { return strings.EqualFold(f.Name, "content-encoding") }
	if !slices.ContainsFunc(h, isEncoding) && !strings.HasPrefix(media, grpcWebText) {
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
	case !strings.HasPrefix(media, grpcWebText):
		return "", inner
	}
	return base64Text, append(captures.Headers{{Name: "content-type", Value: "application/grpc-web"}}, inner...)
}

// replace schedules the replacement of the bytes from start to end by a placeholder for secret.
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
	if !b.sniff {
		b.read(c.Data, at)
		return
	}
	b.first = append(b.first, c.Data...)
	if len(b.first) >= leastSniffed {
		b.endSniffing()
	}
}

// leastSniffed is the number of bytes by which compression is detected.
const leastSniffed = 4

// endSniffing detects compression by the first bytes, and processes them.
func (b *BodyFilter) endSniffing() {
	p := b.first
	b.sniff, b.first = false, nil
	b.guessEncoding(p)
	b.read(p, 0)
}

// read processes the bytes p, whose position in the body is at.
func (b *BodyFilter) read(p []byte, at int64) {
	for len(p) > 0 {
		n := b.step(p, at)
		p, at = p[n:], at+int64(n)
	}
}

// guessEncoding detects from the first bytes p whether a body whose headers declare no compression is a gzip or
// zstd file.
func (b *BodyFilter) guessEncoding(p []byte) {
	if len(p) < leastSniffed || p[0] == 0x1f && p[2] != 8 {
		return // a gzip member is deflated, there is no other way
	}
	if b.encoding = envelope.Sniff(p); b.encoding != "" {
		b.section = newSection(b, 0)
		b.section.guessed = true
	}
}

// mayBeFlags reports whether c, the first byte of a body that may or may not consist of envelopes, can be the
// flags of an envelope. An event stream without envelopes begins with text ("data:"), and a JSON or protobuf
// message never begins with such a byte.
func (b *BodyFilter) mayBeFlags(c byte) bool {
	if b.events {
		return c < ' ' && c != '\r' && c != '\n' || c == byte(envelope.Trailer)
	}
	return envelope.Flags(c)&^(envelope.Compressed|envelope.EndStream) == 0
}

// step processes some bytes at the beginning of p, whose position in the body is at, and returns how many.
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

// search searches uncompressed bytes, whose position in the body is at.
func (b *BodyFilter) search(p []byte, at int64) {
	if len(b.scan.buf) == 0 {
		b.scan.base = at // headers lay between
	}
	b.scan.feed(p)
	b.decided = b.scan.decided()
}

// readHeader collects bytes of an envelope's 5-byte prefix from p, whose position is at, and returns how many
// it has used.
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

// endFrame ends the current envelope. All bytes up to its end are decided, because a secret does not continue
// in the next message.
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

// FlushHeld releases chunks that have been held back too long, without waiting for the possible rest of a
// secret. A recorder calls it when no data has arrived for a quarter of a second.
//
// Limits: the first 2 KiB of a call that issues secrets stay held back while they are nothing but a token, because the
// rest of the token could not be recognized without them.
func (b *BodyFilter) FlushHeld() {
	if b.section == nil && !b.events && b.scan.awaitsWhole() {
		return
	}
	b.flush()
}

// flush implements FlushHeld for whatever is held back.
func (b *BodyFilter) flush() {
	if b.sniff {
		b.endSniffing()
	}
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

// Close ends the body, so that Ready returns all remaining chunks. If the body was truncated, bytes at its end
// that may be the beginning of a secret are replaced.
func (b *BodyFilter) Close(truncated bool) {
	if b.sniff {
		b.endSniffing()
	}
	if truncated && b.section == nil {
		b.flush()
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

// edit schedules the replacement of the bytes from start to end by data. Each pending chunk in the range keeps
// its size, except the last one, which gets the difference.
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
	decided := b.scan.firstSplit(b.decided)
	n := 0
	for n < len(b.pending) && b.pending[n].end <= decided {
		n++
	}
	if n == 0 {
		return nil
	}
	out := make([]*captures.Chunk, n)
	for i := range out {
		out[i] = b.pending[i].apply()
	}

	// Reuse the memory if nothing is left in it.
	if n == len(b.pending) {
		clear(b.pending)
		n, b.pending = 0, b.pending[:0]
	}
	b.pending = b.pending[n:]
	return out
}

// Split is called after Write. If a compressed message begins inside the last chunk, Split divides the chunk
// there and returns the second part, so that the first one can be stored at once. Otherwise it returns nil.
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

// apply makes the scheduled edits and returns the chunk.
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
