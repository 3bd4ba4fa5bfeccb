package h2

import (
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	// defaultHeaderTable is the size of an HPACK table until SETTINGS change it, in bytes.
	defaultHeaderTable = 4096

	pseudoMethod    = ":method"
	pseudoScheme    = ":scheme"
	pseudoAuthority = ":authority"
	pseudoPath      = ":path"
	pseudoStatus    = ":status"

	// pseudoProtocol is used by CONNECT requests for another protocol (RFC 8441).
	pseudoProtocol = ":protocol"
)

// A headerBlock is an HTTP/2 header block that is still incomplete, because CONTINUATION frames follow.
type headerBlock struct {
	// frameHeader is the header of the block's first frame (HEADERS or PUSH_PROMISE).
	frameHeader

	// priority is the priority field of HEADERS, or empty.
	priority []byte

	// promised is the stream that PUSH_PROMISE announces.
	promised uint32

	// opensStream means that the block opens a stream, for which Admit has returned true.
	opensStream bool

	// dropped means that the block is not forwarded.
	dropped bool
}

// byteAppender is an io.Writer that appends to a byte slice.
type byteAppender struct {
	// to is the slice to which bytes are appended.
	to *[]byte
}

// Write appends p to the slice. It never fails.
func (a byteAppender) Write(p []byte) (int, error) {
	*a.to = append(*a.to, p...)
	return len(p), nil
}

// addField appends a decoded header field to the current header section, unless the section exceeds maxHeaderList
// bytes.
func (p *pump) addField(f hpack.HeaderField) {
	if p.fieldsSize += len(f.Name) + len(f.Value) + headerOverhead; p.fieldsSize <= maxHeaderList {
		p.fields = append(p.fields, f)
	}
}

// handleHeaderFrame processes a HEADERS, PUSH_PROMISE or CONTINUATION frame. keep means that the frame is forwarded
// as received. Blocks that are not forwarded are decoded too, because later ones refer to the same HPACK table.
func (p *pump) handleHeaderFrame(h frameHeader, payload []byte) (keep bool, err error) {
	if h.kind != frameContinuation {
		if payload, err = p.beginBlock(h, payload); err != nil {
			return false, err
		}
	} else if p.block == nil {
		return false, protocolErrorf(codeProtocol, "a CONTINUATION frame does not follow a HEADERS frame")
	}
	if _, err := p.dec.Write(payload); err != nil {
		return false, protocolErrorf(codeCompression, "stream %d: %v", h.stream, err)
	}
	if p.fieldsSize > maxHeaderList {
		return false, protocolErrorf(codeEnhanceYourCalm, "stream %d: the header section has more than %d bytes", h.stream, maxHeaderList)
	}
	if !h.has(flagEndHeaders) {
		return !p.reencode, nil
	}
	if err := p.dec.Close(); err != nil {
		return false, protocolErrorf(codeCompression, "stream %d: %v", h.stream, err)
	}
	return p.endBlock(), nil
}

// beginBlock starts a header block, and returns the part of the frame's payload that is HPACK data.
func (p *pump) beginBlock(h frameHeader, payload []byte) ([]byte, error) {
	payload, err := stripPadding(h, payload)
	if err != nil {
		return nil, err
	}
	b := &headerBlock{frameHeader: h}

	// The padding is gone; what precedes the fields depends on the type of the frame.
	switch {
	case h.kind == framePushPromise:
		if len(payload) < 4 || p.dir == captures.Up {
			return nil, protocolErrorf(codeProtocol, "a PUSH_PROMISE frame (%d bytes, %s) is too short, or was sent by the client", len(payload), p.dir)
		}
		b.promised, payload = binary.BigEndian.Uint32(payload)&maxStreamID, payload[4:]
	case h.has(flagPriority):
		if len(payload) < prioritySize {
			return nil, protocolErrorf(codeFrameSize, "a HEADERS frame of %d bytes is too short for its priority", len(payload))
		}
		b.priority, payload = append(b.priority, payload[:prioritySize]...), payload[prioritySize:]
	}

	// Admit refuses new streams once the recording is stopping.
	if p.dir == captures.Up && p.relay.isNewStream(h.stream) {
		if b.opensStream = p.relay.config.Admit(); !b.opensStream {
			b.dropped = true
			if p.refusedFrom == 0 {
				// The server will not see this block, but later ones may refer to it.
				p.startReencoding()
				p.refusedFrom = h.stream
			}
		}
	} else {
		b.dropped = p.refusedFrom != 0 && h.stream >= p.refusedFrom && h.stream%2 == 1
	}
	if p.relay.config.Rewrites {
		p.beginDiverted(b)
	}

	// The decoder's table may be as large as the peer permits in its SETTINGS.
	p.dec.SetAllowedMaxDynamicTableSize(max(defaultHeaderTable, p.relay.tables[p.dir].Load()))
	p.block, p.fields, p.fieldsSize = b, p.fields[:0], 0
	return payload, nil
}

// endBlock processes a header block whose frames have all arrived. It reports whether its last frame is forwarded as
// received.
func (p *pump) endBlock() (keep bool) {
	b, r := p.block, p.relay
	p.block = nil
	p.passHeldHeads()

	// A dropped block was still decoded, because it may have changed the HPACK table that later blocks
	// refer to.
	switch {
	case b.dropped:
		if r.isNewStream(b.stream) {
			r.noteRefused(b.stream)
			p.src.inject(appendFrame(nil, frameRSTStream, 0, b.stream, binary.BigEndian.AppendUint32(nil, uint32(codeRefusedStream))))
		}
		return false
	case b.kind == framePushPromise:
		if r.config.Admit() {
			p.endedExchanges += r.openStream(b.promised, p.fields, true)
		}
		if p.reencode {
			p.encodePromise(b)
			return false
		}
		return true
	case b.opensStream:
		if r.config.Origin != nil {
			p.fields = r.addressToOrigin(p.fields)
		}
		p.endedExchanges += r.openStream(b.stream, p.fields, false)
	default:
		r.noteHeaders(b.stream, p.dir, p.fields, b.has(flagEndStream))
	}

	// The head of a changed exchange is forwarded by its own goroutine.
	if r.config.Rewrites && p.divertHeaders(b) {
		return false
	}
	if b.has(flagEndStream) {
		p.endedExchanges += r.endDirection(r.findStream(b.stream), b.stream, p.dir)
	}

	// Without re-encoding, the original bytes are forwarded, and this block is done.
	if !p.reencode {
		return true
	}
	p.encodeBlock(b)
	return false
}

// passHeldHeads is called before a header block that may overtake earlier ones that are withheld. It switches to
// encoding all blocks anew then, because the receiver's HPACK table would get out of order.
func (p *pump) passHeldHeads() {
	if len(p.openings) > 0 || slices.ContainsFunc(p.held, func(h *held) bool { return h.fields != nil }) {
		p.startReencoding()
	}
	p.dropStale()
}

// encodeBlock encodes the current header section again and appends the frames to those that will be written.
func (p *pump) encodeBlock(b *headerBlock) {
	p.encBuf = p.encBuf[:0]
	for _, f := range p.fields {
		// Writing to memory cannot fail.
		_ = p.enc.WriteField(f)
	}
	if p.dir == captures.Up && len(p.openings) > 0 {
		frames := appendHeaderBlock(nil, b.flags&flagEndStream, b.stream, b.priority, p.encBuf)
		if b.opensStream {
			p.addOpening(&opening{stream: b.stream, frames: frames, ready: true})
		} else {
			p.forwardFrame(b.stream, frames)
		}
		return
	}
	p.encoded = appendHeaderBlock(p.encoded, b.flags&flagEndStream, b.stream, b.priority, p.encBuf)
}

// encodePromise encodes the header section of a PUSH_PROMISE frame again and appends the frames to those that will be
// written.
func (p *pump) encodePromise(b *headerBlock) {
	p.encBuf = p.encBuf[:0]
	for _, f := range p.fields {
		_ = p.enc.WriteField(f)
	}
	at := len(p.encoded)
	p.encoded = appendHeaderBlock(p.encoded, 0, b.stream, binary.BigEndian.AppendUint32(nil, b.promised), p.encBuf)
	p.encoded[at+3] = byte(framePushPromise)
	p.encoded[at+4] &^= flagPriority
}

// addressToOrigin rewrites the header fields of a request to a reverse proxy: scheme, authority and path then address
// the origin server.
func (r *Relay) addressToOrigin(fields []hpack.HeaderField) []hpack.HeaderField {
	out := make([]hpack.HeaderField, len(fields))
	prefix := strings.TrimSuffix(r.config.Origin.EscapedPath(), "/")
	for i, f := range fields {
		switch f.Name {
		case pseudoScheme:
			f.Value = r.config.Origin.Scheme
		case pseudoAuthority, "host":
			f.Value = r.config.Origin.Host
		case pseudoPath:
			if strings.HasPrefix(f.Value, "/") {
				f.Value = prefix + f.Value
			}
		}
		out[i] = f
	}
	return out
}

// regularFields returns the fields that are not pseudo-header fields.
func regularFields(fields []hpack.HeaderField) captures.Headers {
	out := make(captures.Headers, 0, len(fields))
	for _, f := range fields {
		if !f.IsPseudo() {
			out = append(out, captures.Header{Name: f.Name, Value: f.Value})
		}
	}
	return out
}

// fieldValue returns the value of the first field with a name, or "".
func fieldValue(fields []hpack.HeaderField, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}
