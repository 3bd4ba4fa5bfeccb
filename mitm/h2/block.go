package h2

import (
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2/hpack"

	"unwire/captures"
)

const (
	hpackDefault = 4096 // bytes of a table, before anybody says otherwise

	pseudoMethod    = ":method"
	pseudoScheme    = ":scheme"
	pseudoAuthority = ":authority"
	pseudoPath      = ":path"
	pseudoStatus    = ":status"
)

// A headerBlock is one that has begun and not ended.
type headerBlock struct {
	frameHeader
	priority []byte // of HEADERS, if it has one
	promised uint32 // of PUSH_PROMISE
	opens    bool   // a stream, which was counted
	refused  bool   // it is not passed on
}

type appender struct{ to *[]byte }

func (a appender) Write(p []byte) (int, error) {
	*a.to = append(*a.to, p...)
	return len(p), nil
}

// emit takes one decoded field.
func (p *pump) emit(f hpack.HeaderField) {
	if p.size += len(f.Name) + len(f.Value) + headerOverhead; p.size <= maxHeaderList {
		p.fields = append(p.fields, f)
	}
}

// headers handles a frame of a header block: it is decoded whatever becomes of
// it, since the next one builds on it.
func (p *pump) headers(h frameHeader, payload []byte) (keep bool, err error) {
	if h.kind != frameContinuation {
		if payload, err = p.beginBlock(h, payload); err != nil {
			return false, err
		}
	} else if p.block == nil {
		return false, badFrame(codeProtocol, "CONTINUATION of nothing")
	}
	if _, err := p.dec.Write(payload); err != nil {
		return false, badFrame(codeCompression, "stream %d: %v", h.stream, err)
	}
	if p.size > maxHeaderList {
		return false, badFrame(codeCalm, "stream %d: a header section of more than %d bytes", h.stream, maxHeaderList)
	}
	if !h.has(flagEndHeaders) {
		return !p.recode, nil
	}
	if err := p.dec.Close(); err != nil {
		return false, badFrame(codeCompression, "stream %d: %v", h.stream, err)
	}
	return p.endBlock(), nil
}

// beginBlock returns the part of the payload that belongs to the block.
func (p *pump) beginBlock(h frameHeader, payload []byte) ([]byte, error) {
	payload, err := unpad(h, payload)
	if err != nil {
		return nil, err
	}
	b := &headerBlock{frameHeader: h}
	switch {
	case h.kind == framePushPromise:
		if len(payload) < 4 || p.dir == captures.Up {
			return nil, badFrame(codeProtocol, "PUSH_PROMISE of %d bytes %s", len(payload), p.dir)
		}
		b.promised, payload = binary.BigEndian.Uint32(payload)&maxStreamID, payload[4:]
	case h.has(flagPriority):
		if len(payload) < prioritySize {
			return nil, badFrame(codeFrameSize, "HEADERS of %d bytes with a priority", len(payload))
		}
		b.priority, payload = append(b.priority, payload[:prioritySize]...), payload[prioritySize:]
	}
	if p.dir == captures.Up && p.relay.isNew(h.stream) {
		if b.opens = p.relay.config.Enter(); !b.opens {
			b.refused = true
			if p.refused == 0 {
				p.rewrite() // the server will not see this block, on which later ones may build
				p.refused = h.stream
			}
		}
	} else {
		b.refused = p.refused != 0 && h.stream >= p.refused && h.stream%2 == 1
	}
	p.dec.SetAllowedMaxDynamicTableSize(max(hpackDefault, p.relay.tables[p.dir].Load()))
	p.block, p.fields, p.size = b, p.fields[:0], 0
	return payload, nil
}

// endBlock acts on a whole section, and reports whether it is passed on as it is.
func (p *pump) endBlock() (keep bool) {
	b, r := p.block, p.relay
	p.block = nil
	switch {
	case b.refused:
		if r.isNew(b.stream) {
			r.skip(b.stream)
			p.src.inject(appendFrame(nil, frameRSTStream, 0, b.stream, binary.BigEndian.AppendUint32(nil, uint32(codeRefused))))
		}
		return false
	case b.kind == framePushPromise:
		if r.config.Enter() {
			p.ended += r.open(b.promised, p.fields, true)
		}
		return true
	case b.opens:
		if r.config.Origin != nil {
			p.fields = r.forOrigin(p.fields)
		}
		p.ended += r.open(b.stream, p.fields, false)
	default:
		r.section(b.stream, p.dir, p.fields, b.has(flagEndStream))
	}
	if b.has(flagEndStream) {
		p.ended += r.sideEnded(r.stream(b.stream), b.stream, p.dir)
	}
	if !p.recode {
		return true
	}
	p.encBuf = p.encBuf[:0]
	for _, f := range p.fields {
		_ = p.enc.WriteField(f) // to memory
	}
	p.out = appendHeaderBlock(p.out, b.flags&flagEndStream, b.stream, b.priority, p.encBuf)
	return false
}

// forOrigin makes a request that a client sent to the proxy, as to a server,
// one for the origin behind it.
func (r *Relay) forOrigin(fields []hpack.HeaderField) []hpack.HeaderField {
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

// plainFields are those of a section that are no pseudo-header fields.
func plainFields(fields []hpack.HeaderField) captures.Headers {
	out := make(captures.Headers, 0, len(fields))
	for _, f := range fields {
		if !f.IsPseudo() {
			out = append(out, captures.Header{Name: f.Name, Value: f.Value})
		}
	}
	return out
}

// field returns the first value of a name, or "".
func field(fields []hpack.HeaderField, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}
