package decode

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode/envelope"
)

// A Close is what a close frame of a WebSocket says.
type Close struct {
	Code   int    `json:"code"` // 1005 where the frame has none
	Reason string `json:"reason,omitempty"`
}

// Close codes that end a WebSocket well.
//
// Source: RFC 6455, section 7.4.1
const (
	closeNormal    = 1000
	closeGoingAway = 1001
	closeNoStatus  = 1005
)

// String returns the code and the reason.
func (c *Close) String() string {
	s := fmt.Sprintf("close %d", c.Code)
	if c.Reason != "" {
		s += ": " + c.Reason
	}
	return s
}

// isError reports a code that is none of an ordinary end.
func (c *Close) isError() bool {
	return c.Code != closeNormal && c.Code != closeGoingAway && c.Code != closeNoStatus
}

// OpcodeName is the name of an opcode without its flags, as RFC 6455 has it.
func OpcodeName(op captures.Opcode) string {
	switch op.Kind() {
	case captures.OpContinuation:
		return "continuation"
	case captures.OpText:
		return "text"
	case captures.OpBinary:
		return "binary"
	case captures.OpClose:
		return "close"
	case captures.OpPing:
		return "ping"
	case captures.OpPong:
		return "pong"
	}
	return fmt.Sprintf("opcode %d", op.Kind())
}

// isControlOpcode reports an opcode of a control frame.
func isControlOpcode(op captures.Opcode) bool { return op.Kind() >= captures.OpClose }

// A connectionState is what is known of an exchange without HTTP.
type connectionState struct {
	codec    string // of its messages so far
	close    *Close // the first
	closedBy captures.Direction
}

// A messageParts is what has come of a message of a WebSocket.
type messageParts struct {
	begun  bool
	opcode captures.Opcode
	data   []byte
	size   int64 // more than data has if the message is too large
}

// feedConnection is Feed for an exchange that has no HTTP in it.
func (s *Stream) feedConnection(c captures.Chunk) []Frame {
	d := &s.dirs[c.Dir]
	d.at, d.t = c.Seq, c.T
	switch {
	case s.full:
		return nil
	case s.ex.Transport == captures.WebSocket:
		return s.feedMessage(d, c)
	case s.o.Split != "":
		return s.split(c.Dir, c.Data)
	}
	f := Frame{Frame: envelope.Frame{Offset: d.bytes, Len: len(c.Data), Raw: c.Data, Data: c.Data}}
	d.bytes += int64(len(c.Data))
	return s.deliver(nil, c.Dir, f)
}

// feedMessage takes a chunk of a WebSocket: a message, or a part of one.
func (s *Stream) feedMessage(d *direction, c captures.Chunk) []Frame {
	op := c.Opcode
	if isControlOpcode(op) {
		return s.deliver(nil, c.Dir, controlFrame(op, d.bytes+d.parts.size, c.Data))
	}
	if s.o.Split != "" {
		return s.split(c.Dir, c.Data)
	}

	var out []Frame
	m := &d.parts
	if op.Kind() != captures.OpContinuation {
		out = s.endMessage(out, c.Dir, fmt.Errorf("another message begins before this one has ended: %w", io.ErrUnexpectedEOF))
		m.opcode = op &^ captures.OpFinal
	} else if !m.begun {
		m.opcode = op &^ captures.OpFinal
	}
	m.begun = true
	if m.size == 0 && op&captures.OpFinal != 0 {
		m.data = c.Data // as most: it is not copied
	} else {
		m.data = append(m.data, c.Data[:min(int64(len(c.Data)), max(0, s.o.MaxFrame-int64(len(m.data))))]...)
	}
	m.size += int64(len(c.Data))
	if op&captures.OpFinal == 0 {
		return out
	}
	var err error
	if m.opcode.Kind() == captures.OpContinuation {
		err = fmt.Errorf("it continues a message whose beginning was not recorded: %w", io.ErrUnexpectedEOF)
	}
	return s.endMessage(out, c.Dir, err)
}

// endMessage delivers what has come of a message, if one has begun. Err says why it is
// not whole.
func (s *Stream) endMessage(out []Frame, dir captures.Direction, err error) []Frame {
	d := &s.dirs[dir]
	m := d.parts
	if d.parts = (messageParts{}); !m.begun {
		return out
	}
	f := Frame{Opcode: m.opcode, Frame: envelope.Frame{Offset: d.bytes, Len: int(m.size), Raw: m.data, Data: m.data}}
	switch {
	case m.size > int64(len(m.data)):
		f.Raw = bytes.Clone(m.data[:min(len(m.data), keptOfTooLarge)])
		f.Data = f.Raw
		f.Err = fmt.Errorf("message at %#x: length %d is %w of %d bytes", f.Offset, m.size, envelope.ErrTooLarge, s.o.MaxFrame)
	case err != nil:
		f.Partial, f.Err = true, fmt.Errorf("message at %#x: %w", f.Offset, err)
	default:
		if frames := s.splitMessage(&f); frames != nil {
			for i := range frames {
				out = s.deliver(out, dir, frames[i])
			}
			d.bytes += m.size
			return out
		}
		s.unwrapMessage(&f)
	}
	d.bytes += m.size
	return s.deliver(out, dir, f)
}

// controlFrame is the frame of a ping, a pong or a close.
func controlFrame(op captures.Opcode, offset int64, data []byte) Frame {
	f := Frame{Opcode: op &^ captures.OpFinal, Frame: envelope.Frame{Offset: offset, Len: len(data), Raw: data, Data: data}}
	if op.Kind() != captures.OpClose {
		return f
	}
	f.Close = &Close{Code: closeNoStatus}
	switch {
	case len(data) >= 2:
		f.Close.Code, f.Close.Reason = int(binary.BigEndian.Uint16(data)), strings.ToValidUTF8(string(data[2:]), "\uFFFD")
	case len(data) == 1:
		f.Err = fmt.Errorf("close frame at %#x: 1 byte, which is no code", offset)
	}
	return f
}

// unwrapMessage undoes what a whole message is wrapped in: base64 in a text, a
// compression of the payload, one envelope. splitMessage has seen to several.
func (s *Stream) unwrapMessage(f *Frame) {
	if found, ok := s.find.Find(f.Data); ok && found.Encoding != "" {
		f.Data, f.Encoding = found.Data, found.Encoding
	}
	if f.Opcode.Kind() == captures.OpText && f.Encoding == "" {
		return
	}
	data := f.Data
	if !envelope.IsFrames(data) {
		// Clients of grpc-websocket put a 0 before the envelopes.
		if len(data) == 0 || data[0] != 0 || !envelope.IsFrames(data[1:]) {
			return
		}
		data = data[1:]
	}
	list, ok := envelope.Split(data)
	if !ok || len(list) != 1 {
		return
	}
	dec := envelope.NewDecoder(envelope.Options{Framed: true, MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated})
	frames, err := dec.Feed(data)
	if err != nil || len(frames) != 1 {
		return
	}
	in := frames[0]
	if f.Encoding != "" && in.Encoding != "" {
		in.Encoding = f.Encoding + "+" + in.Encoding
	} else if in.Encoding == "" {
		in.Encoding = f.Encoding
	}
	in.Offset, in.Len = f.Offset, f.Len
	f.Frame = in
}

// splitMessage returns the frames of a whole binary message of a WebSocket that holds
// several envelopes; nil of another one. Each has the place of its envelope, and the opcode
// of the message.
//
// What is no message of protobuf or JSON in one of its envelopes is none at all: binary
// data may look like a run of envelopes by chance.
func (s *Stream) splitMessage(f *Frame) []Frame {
	data := f.Data
	if f.Opcode.Kind() == captures.OpText {
		return nil
	}
	if !envelope.IsFrames(data) {
		// Clients of grpc-websocket put a 0 before the envelopes.
		if len(data) == 0 || data[0] != 0 || !envelope.IsFrames(data[1:]) {
			return nil
		}
		data = data[1:]
	}
	list, ok := envelope.Split(data)
	if !ok || len(list) < 2 {
		return nil
	}
	dec := envelope.NewDecoder(envelope.Options{Framed: true, MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated})
	envelopes, err := dec.Feed(data)
	if err != nil || len(envelopes) != len(list) {
		return nil
	}
	start := f.Offset + int64(f.Len-len(data))
	frames, plain := make([]Frame, len(envelopes)), false
	for i, in := range envelopes {
		in.Offset += start
		frames[i] = Frame{Opcode: f.Opcode, Frame: in}
		if in.Flags&(envelope.EndStream|envelope.Trailer) != 0 || len(in.Data) == 0 && in.Err == nil {
			continue
		}
		if codec := s.messageCodec(&frames[i]); codec != "proto" && codec != "json" {
			return nil
		}
		plain = true
	}
	if !plain {
		return nil
	}
	return frames
}

// closeConnection returns what is still open of an exchange that has no HTTP in it.
func (s *Stream) closeConnection() []Frame {
	var out []Frame
	for dir := range s.dirs {
		if d := &s.dirs[dir]; !d.done {
			d.done = true
			out = s.endMessage(out, captures.Direction(dir), fmt.Errorf("the recording ends before the message does: %w", io.ErrUnexpectedEOF))
			out = append(out, s.closeSplit(captures.Direction(dir))...)
		}
	}
	return out
}

// interpretMessage finds out what the data of a frame is whose exchange has no HTTP.
func (s *Stream) interpretMessage(f *Frame) {
	switch {
	case f.Close != nil:
		// The side that closes first says why.
		if s.conn.close == nil {
			s.conn.close, s.conn.closedBy = f.Close, f.Dir
		}
		return
	case isControlOpcode(f.Opcode):
		return
	case f.Framed && f.Flags&(envelope.EndStream|envelope.Trailer) != 0:
		if end, err := s.endOf(f, &s.dirs[f.Dir]); end != nil {
			if f.End = end; f.Err == nil {
				f.Err = err
			}
			if f.Dir == captures.Down && !f.Partial {
				s.end = end
			}
			return
		}
	}
	if s.ex.Transport != captures.WebSocket && s.o.Split == "" {
		return
	}
	codec := s.messageCodec(f)
	if s.conn.codec == "" {
		s.conn.codec = codec
	} else if s.conn.codec != codec {
		s.conn.codec = mixedCodec
	}
	if codec != "proto" || s.o.NoTrees {
		return
	}
	if s.nodes >= s.o.MaxNodes {
		if f.Err == nil {
			f.Err = fmt.Errorf("frame at %#x: %w of %d", f.Offset, errNodes, s.o.MaxNodes)
		}
		return
	}
	f.Tree = s.parse(f.Data)
	if f.Err == nil {
		f.Err = f.Tree.Err()
	}
	if !s.o.NoInner {
		f.Inner = s.inner(f)
	}
}

// mixedCodec is the codec of an exchange whose messages have several.
const mixedCodec = "mixed"

// messageCodec says what a message is: json, proto, text or binary.
func (s *Stream) messageCodec(f *Frame) string {
	switch {
	case f.Err != nil && !(s.o.Split != "" && f.Partial):
		return "binary"
	case isJSONDocument(f.Data):
		return "json"
	case s.o.Split != "":
		return "proto"
	case IsText(f.Data):
		return "text"
	}
	s.scratch.Reset(f.Data, s.o.Wire)
	if s.scratch.Err() == nil && len(f.Data) > 0 && (f.Opcode.Kind() != captures.OpText || f.Encoding != "") {
		return "proto"
	}
	if utf8.Valid(f.Data) && f.Opcode.Kind() == captures.OpText {
		return "text"
	}
	return "binary"
}

// isJSONDocument reports an object or an array of JSON.
func isJSONDocument(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && (b[0] == '{' || b[0] == '[') && utf8.Valid(b) && json.Valid(b)
}

// connectionStatus is Status for an exchange that has no HTTP in it.
func (s *Stream) connectionStatus() (code, message string) {
	switch {
	case s.end != nil:
		return s.ended(s.end)
	case s.conn.close != nil && s.conn.close.isError():
		by := "client"
		if s.conn.closedBy == captures.Down {
			by = "server"
		}
		return "unknown", "the " + by + " ended the WebSocket: " + s.conn.close.String()
	case s.ex.Outcome == captures.Complete:
		return "ok", ""
	}
	return "", ""
}
