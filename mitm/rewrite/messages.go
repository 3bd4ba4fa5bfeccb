package rewrite

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/gobwas/ws"

	"unwire/captures"
)

// maxDeflateWindow is the size of the window of permessage-deflate, in bytes.
const maxDeflateWindow = 32 << 10

// deflateTail are the bytes that a sender omits at the end of a compressed WebSocket message, followed
// by an empty last block, at which package flate stops reading.
const deflateTail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

// A messageReader reads the messages of one direction of a WebSocket.
//
// Source: RFC 6455, section 5; RFC 7692, section 7
type messageReader struct {
	// body is the body to which the messages belong.
	body *Body
	// r is the source of the received bytes.
	r io.Reader

	// window is the end of the decompressed messages so far, at most 32 KiB, to which the next compressed message may
	// refer.
	window []byte

	// diverged means that the receiver's window differs from the sender's, because a compressed message was
	// changed: later ones are compressed again, without a window.
	diverged bool

	// lost means that the window is not known any more. Nothing is changed from then on.
	lost bool
}

// runMessages applies rules to the messages of a WebSocket.
func (b *Body) runMessages(ctx context.Context, r io.Reader) error {
	if err := b.begin(Unknown); err != nil {
		return err
	}
	m := &messageReader{body: b, r: r}
	for {
		err := m.next(ctx)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// readHeader reads the header of a WebSocket frame, and also returns its bytes.
func (m *messageReader) readHeader() (h ws.Header, raw []byte, err error) {
	raw = make([]byte, 2, ws.MaxHeaderSize)
	if n, err := io.ReadFull(m.r, raw); err != nil {
		return h, raw[:n], err
	}
	more := 0
	switch raw[1] & 0x7f {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if raw[1]&0x80 != 0 {
		more += 4
	}
	n, err := io.ReadFull(m.r, raw[2:2+more])
	if raw = raw[:2+n]; err != nil {
		return h, raw, io.ErrUnexpectedEOF
	}
	if h, err = ws.ReadHeader(bytes.NewReader(raw)); err != nil {
		// A length above 2^63: isValid refuses all reserved bits.
		h.Rsv = ws.Rsv(true, true, true)
	}
	return h, raw, nil
}

// A gathering is a WebSocket message of which some frames have not arrived yet.
type gathering struct {
	// frame is the message, as it is passed to the rules when it is complete.
	frame *Frame
	// wire are the bytes of the frames as they arrived.
	wire []byte
	// payload is the unmasked content so far, perhaps compressed.
	payload []byte
	// masked means that the sender masks the payload, as clients do.
	masked bool
	// compressed means that the payload is compressed (permessage-deflate).
	compressed bool
	// reserved is the number of bytes that the message has added to the count of all bytes being collected.
	reserved int64
}

// next processes one message, and the control frames between its fragments.
func (m *messageReader) next(ctx context.Context) error {
	b := m.body
	g := &gathering{}
	defer func() { assembled.Add(-g.reserved) }()
	for {
		h, raw, err := m.readHeader()
		switch {
		case err != nil:
			return m.cut(ctx, append(g.wire, raw...), err)
		case !m.lost && !isValid(h, g.frame != nil):
			// What follows has no known boundaries, so the rest of the connection is forwarded as it is.
			b.Exchange.Passed(b.Dir, "the data does not consist of WebSocket frames")
			if err := b.write(ctx, append(g.wire, raw...)); err != nil {
				return err
			}
			if err := b.copy(ctx, m.r); err != nil {
				return err
			}
			return io.EOF
		case h.OpCode.IsControl() || m.lost:
			// A control frame may come between the fragments of a message, and must not wait for its end.
			if err := m.passFrame(ctx, h, raw); err != nil || g.frame == nil {
				return err
			}
			continue
		}
		over, err := m.gather(ctx, g, h, raw)
		switch {
		case err != nil:
			return err
		case over:
			return nil
		case h.Fin:
			return m.finish(ctx, g)
		}
	}
}

// gather reads the payload of a frame. over means that the message was passed on unchanged.
func (m *messageReader) gather(ctx context.Context, g *gathering, h ws.Header, raw []byte) (over bool, err error) {
	b := m.body
	if g.frame == nil {
		g.frame, g.masked, g.compressed = &Frame{Opcode: captures.OpFinal | captures.Opcode(h.OpCode)}, h.Masked, h.Rsv1()
	}
	g.reserved += h.Length
	if total := assembled.Add(h.Length); total > maxAssembled || int64(len(g.payload))+h.Length > MaxFrame {
		b.Exchange.Passed(b.Dir, "a message is larger than the limit for changes")
		// After a compressed message that was not decompressed, the window for later messages is unknown.
		m.lost = m.lost || g.compressed || m.diverged
		if err := b.write(ctx, g.wire); err != nil {
			return true, err
		}
		b.at += int64(len(g.payload))
		return true, m.passRest(ctx, h, raw)
	}
	p, release, err := readFrame(nil, m.r, int(h.Length))
	release()
	g.wire = append(append(g.wire, raw...), p...)
	if err != nil || int64(len(p)) < h.Length {
		return true, m.cut(ctx, g.wire, err)
	}
	if h.Masked {
		ws.Cipher(p, h.Mask, 0)
	}
	g.payload = append(g.payload, p...)
	return false, nil
}

// passRest forwards a frame and the remaining frames of its message unchanged.
func (m *messageReader) passRest(ctx context.Context, h ws.Header, raw []byte) error {
	for {
		if err := m.passFrame(ctx, h, raw); err != nil || h.Fin && !h.OpCode.IsControl() {
			return err
		}
		var err error
		if h, raw, err = m.readHeader(); err != nil {
			return m.cut(ctx, raw, err)
		}
	}
}

// finish decides about a message that has arrived completely.
func (m *messageReader) finish(ctx context.Context, g *gathering) error {
	b, f := m.body, g.frame
	f.Received, f.Raw, f.Data = g.wire, g.payload, g.payload
	if g.compressed {
		f.Opcode |= captures.OpCompressed
		data, err := m.inflate(g.payload)
		if err != nil {
			b.Exchange.Passed(b.Dir, "a message does not decompress: "+err.Error())
			m.lost = true
			return b.write(ctx, g.wire)
		}
		f.Data = data
	}
	return m.decide(ctx, f, g.masked)
}

// isValid reports whether a header may follow within or outside of a message. Whether a message may be compressed
// is not checked: a receiver that did not agree to that refuses it.
func isValid(h ws.Header, within bool) bool {
	state := ws.StateExtended
	if within {
		state = state.Set(ws.StateFragmented)
	}
	return ws.CheckHeader(h, state) == nil && !h.Rsv2() && !h.Rsv3()
}

// cut forwards the received part of a frame that was cut off.
func (m *messageReader) cut(ctx context.Context, p []byte, err error) error {
	if werr := m.body.write(ctx, p); werr != nil {
		return werr
	}
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// passFrame forwards unchanged a frame whose header was already read.
func (m *messageReader) passFrame(ctx context.Context, h ws.Header, raw []byte) error {
	if err := m.body.write(ctx, raw); err != nil {
		return err
	}
	_, err := m.body.passFrame(ctx, nil, m.r, h.Length)
	return err
}

// inflate decompresses a message (permessage-deflate).
func (m *messageReader) inflate(p []byte) ([]byte, error) {
	r := flate.NewReaderDict(io.MultiReader(bytes.NewReader(p), bytes.NewReader([]byte(deflateTail))), m.window)
	data, err := io.ReadAll(io.LimitReader(r, MaxFrame+1))
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case len(data) > MaxFrame:
		return nil, fmt.Errorf("a line or message has more than %d bytes", MaxFrame)
	}
	if !m.body.framing.NoTakeover {
		m.window = append(m.window, data...)
		m.window = append([]byte(nil), m.window[max(0, len(m.window)-maxDeflateWindow):]...)
	}
	return data, nil
}

// decide applies the rules to a message, and forwards the result.
func (m *messageReader) decide(ctx context.Context, f *Frame, masked bool) error {
	b := m.body
	f.Dir, f.Number = b.Dir, b.number
	b.number++
	start := b.at
	b.at += int64(len(f.Data))
	v := b.Exchange.Frame(ctx, f)
	messages := [][]byte{f.Data}

	// Reset and Answer end the exchange, so no further message is forwarded.
	switch v.Action {
	case Answer, Reset:
		b.record(start, v.Rule, nil)
		return &Stop{v}
	case Replace:
		messages = v.Messages
	case Pass:
	}

	// An unchanged message keeps its bytes, unless they refer to a window that the receiver does not have.
	compressed := f.Opcode&captures.OpCompressed != 0
	changed := len(messages) != 1 || !bytes.Equal(messages[0], f.Data)
	if changed {
		b.record(start, v.Rule, bytes.Join(messages, nil))
		m.diverged = m.diverged || compressed && !b.framing.NoTakeover
	} else if !m.diverged || !compressed {
		return b.write(ctx, f.Received)
	}

	// New messages get fresh frames, masked if the sender is a client (RFC 6455).
	var out []byte
	for _, p := range messages {
		frame, err := encodeMessage(p, ws.OpCode(f.Opcode.Kind()), compressed, masked)
		if err != nil {
			return err
		}
		out = append(out, frame...)
	}
	return b.write(ctx, out)
}

// encodeMessage encodes a message as a single WebSocket frame.
func encodeMessage(p []byte, op ws.OpCode, compressed, masked bool) ([]byte, error) {
	h := ws.Header{Fin: true, OpCode: op}
	if compressed {
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		// permessage-deflate removes the tail of a flushed block (RFC 7692, section 7.2.1).
		// Writing to memory cannot fail.
		_, _ = w.Write(p)
		_ = w.Flush()
		p = bytes.TrimSuffix(packed.Bytes(), []byte(deflateTail[:4]))
		h.Rsv = ws.Rsv(true, false, false)
	}
	if h.Length = int64(len(p)); masked {
		h.Masked = true
		if _, err := rand.Read(h.Mask[:]); err != nil {
			return nil, err
		}
		// The payload may be a rule's, which other messages use, too.
		p = bytes.Clone(p)
		ws.Cipher(p, h.Mask, 0)
	}
	var out bytes.Buffer
	if err := ws.WriteHeader(&out, h); err != nil {
		return nil, err
	}
	out.Write(p)
	return out.Bytes(), nil
}
