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

// A Close is the content of a WebSocket's close frame.
type Close struct {
	// Code is the close code of RFC 6455, section 7.4.1. It is 1005 if the frame has none.
	Code int `json:"code"`

	// Reason is the text in the WebSocket close frame, or "".
	Reason string `json:"reason,omitempty"`
}

// Close codes that end a WebSocket without an error.
//
// Source: RFC 6455, section 7.4.1
const (
	closeNormal    = 1000
	closeGoingAway = 1001
	closeNoStatus  = 1005
)

// String returns the code and the reason, as in "close 1001: going away".
func (c *Close) String() string {
	s := fmt.Sprintf("close %d", c.Code)
	if c.Reason != "" {
		s += ": " + c.Reason
	}
	return s
}

// isError reports whether the close code signals an error, i.e. is none of the close… constants.
func (c *Close) isError() bool {
	return c.Code != closeNormal && c.Code != closeGoingAway && c.Code != closeNoStatus
}

// OpcodeName returns the name of an opcode in RFC 6455, ignoring its flags.
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

// isControlOpcode reports whether op belongs to a control frame: close, ping or pong.
func isControlOpcode(op captures.Opcode) bool { return op.Kind() >= captures.OpClose }

// A connectionState is the decoding state of an exchange without HTTP, i.e. of WebSocket messages or of raw TCP or
// TLS data.
type connectionState struct {
	// codec is the codec of the messages so far: mixedCodec if they differ, and "" before the first.
	codec string

	// proto means that a binary message so far was protobuf and no text. Later binary messages that parse as
	// protobuf are protobuf too, even if they are text by chance.
	proto bool

	// close is the content of the first WebSocket close frame; nil if there is none so far.
	close *Close

	// closedBy is the direction of the first WebSocket close frame. It is only valid if close is not nil.
	closedBy captures.Direction
}

// A messageParts reassembles a WebSocket message from its fragments.
type messageParts struct {
	// begun means that a fragment of the message has arrived.
	begun bool

	// opcode is the WebSocket opcode of the message's first fragment.
	opcode captures.Opcode

	// data is the message's content so far, at most Options.MaxFrame bytes.
	data []byte

	// size is the size of all fragments in bytes. It exceeds len(data) if the message is too large.
	size int64
}

// feedConnection processes the next chunk of an exchange without HTTP (WebSocket, TCP or TLS) and returns the
// frames that it completes.
func (s *Stream) feedConnection(c captures.Chunk) []Frame {
	d := &s.dirs[c.Dir]
	d.at, d.t = c.Seq, c.T
	switch {
	case s.full:
		return nil
	case s.ex.Transport == captures.WebSocket:
		return s.feedMessage(d, c)
	case s.o.Split != "":
		return s.feedSplitter(c.Dir, c.Data)
	}
	f := Frame{Frame: envelope.Frame{Offset: d.bytes, Len: len(c.Data), Raw: c.Data, Data: c.Data}}
	d.bytes += int64(len(c.Data))
	return s.deliver(nil, c.Dir, f)
}

// feedMessage processes a chunk of a WebSocket, which is a whole message, a fragment, or a control frame. d is the
// state of the chunk's direction. It returns the frames that the chunk completes.
func (s *Stream) feedMessage(d *direction, c captures.Chunk) []Frame {
	op := c.Opcode
	if isControlOpcode(op) {
		return s.deliver(nil, c.Dir, controlFrame(op, d.bytes+d.parts.size, c.Data))
	}
	if s.o.Split != "" {
		return s.feedSplitter(c.Dir, c.Data)
	}

	var out []Frame
	m := &d.parts

	// A fragment that begins a message ends the previous one, and a continuation may lack its beginning if
	// recording started late.
	if op.Kind() != captures.OpContinuation {
		out = s.endMessage(out, c.Dir, fmt.Errorf("the next message begins before this message has ended: %w", io.ErrUnexpectedEOF))
		m.opcode = op &^ captures.OpFinal
	} else if !m.begun {
		m.opcode = op &^ captures.OpFinal
	}
	m.begun = true
	if m.size == 0 && op&captures.OpFinal != 0 {
		// Most messages have one fragment, which needs no copy.
		m.data = c.Data
	} else {
		m.data = append(m.data, c.Data[:min(int64(len(c.Data)), max(0, s.o.MaxFrame-int64(len(m.data))))]...)
	}
	m.size += int64(len(c.Data))
	if op&captures.OpFinal == 0 {
		return out
	}

	// The last fragment completes the message.
	var err error
	if m.opcode.Kind() == captures.OpContinuation {
		err = fmt.Errorf("the beginning of the message was not recorded: %w", io.ErrUnexpectedEOF)
	}
	return s.endMessage(out, c.Dir, err)
}

// endMessage appends the frame for the collected message, if there is one, to out. err is the reason
// why the message is incomplete, or nil.
func (s *Stream) endMessage(out []Frame, dir captures.Direction, err error) []Frame {
	d := &s.dirs[dir]
	m := d.parts
	if d.parts = (messageParts{}); !m.begun {
		return out
	}
	f := Frame{Opcode: m.opcode, Frame: envelope.Frame{Offset: d.bytes, Len: int(m.size), Raw: m.data, Data: m.data}}

	// Too large, incomplete, or whole. A whole message may contain several envelopes.
	switch {
	case m.size > int64(len(m.data)):
		f.Raw = bytes.Clone(m.data[:min(len(m.data), keptOfTooLarge)])
		f.Data = f.Raw
		f.Err = fmt.Errorf("message at %#x: the length %d is %w of %d bytes", f.Offset, m.size, envelope.ErrTooLarge, s.o.MaxFrame)
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

// controlFrame returns the frame of a ping, pong or close with the given opcode and payload; offset is its offset
// in the body.
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
		f.Err = fmt.Errorf("close frame at offset %#x: the payload has 1 byte, but a close code needs 2", offset)
	}
	return f
}

// unwrapMessage replaces the data of f, a whole WebSocket message, by its content: it undoes base64 in a text
// message, compression, and a single envelope (a prefix of flags and length). splitMessage handles several
// envelopes.
func (s *Stream) unwrapMessage(f *Frame) {
	if found, ok := s.find.Find(f.Data); ok && found.Encoding != "" {
		f.Data, f.Encoding = found.Data, found.Encoding
	}
	if f.Opcode.Kind() == captures.OpText && f.Encoding == "" {
		return
	}
	data := f.Data
	if !envelope.IsFrames(data) {
		// Clients of grpc-websocket put a zero byte before the envelopes.
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

	// Report both compressions, the outer one first.
	in := frames[0]
	if f.Encoding != "" && in.Encoding != "" {
		in.Encoding = f.Encoding + "+" + in.Encoding
	} else if in.Encoding == "" {
		in.Encoding = f.Encoding
	}
	in.Offset, in.Len = f.Offset, f.Len
	f.Frame = in
}

// splitMessage returns the frames of a binary WebSocket message that contains several envelopes, or nil for
// other messages. Each frame has the offset of its envelope and the opcode of the message.
//
// Binary data may resemble a sequence of envelopes by accident. So every envelope must contain a protobuf or
// JSON message, or the result is nil.
func (s *Stream) splitMessage(f *Frame) []Frame {
	data := f.Data
	if f.Opcode.Kind() == captures.OpText {
		return nil
	}
	if !envelope.IsFrames(data) {
		// Clients of grpc-websocket put a zero byte before the envelopes.
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

	// Ends of streams and empty messages are compatible with any data, so at least one other message is
	// required.
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

// closeConnection ends both directions of an exchange without HTTP and returns incomplete messages.
func (s *Stream) closeConnection() []Frame {
	var out []Frame
	for dir := range s.dirs {
		if d := &s.dirs[dir]; !d.done {
			d.done = true
			out = s.endMessage(out, captures.Direction(dir), fmt.Errorf("the recording ends inside the message: %w", io.ErrUnexpectedEOF))
			out = append(out, s.closeSplit(captures.Direction(dir))...)
		}
	}
	return out
}

// interpretMessage determines the content of a frame of an exchange without HTTP: close frame, end of stream or
// message.
func (s *Stream) interpretMessage(f *Frame) {
	switch {
	case f.Close != nil:
		// The side that closes first gives the reason. The other side only echoes it.
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

	// Bytes of an unknown protocol are not interpreted.
	if s.ex.Transport != captures.WebSocket && s.o.Split == "" {
		return
	}
	codec := s.messageCodec(f)
	if s.conn.codec == "" {
		s.conn.codec = codec
	} else if s.conn.codec != codec {
		s.conn.codec = mixedCodec
	}

	// The tree, if the message is protobuf.
	if codec != "proto" || s.o.NoTrees {
		return
	}
	if s.nodes >= s.o.MaxNodes {
		if f.Err == nil {
			f.Err = fmt.Errorf("frame at offset %#x: %w of %d", f.Offset, errNodes, s.o.MaxNodes)
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

// mixedCodec is the codec of an exchange whose messages have different codecs.
const mixedCodec = "mixed"

// messageCodec detects the codec of a message: json, proto, text or binary.
func (s *Stream) messageCodec(f *Frame) string {
	switch {
	case f.Err != nil && !(s.o.Split != "" && f.Partial):
		return "binary"
	case isJSONDocument(f.Data):
		return "json"
	case s.o.Split != "":
		return "proto"
	}
	text, binary := IsText(f.Data), f.Opcode.Kind() == captures.OpBinary && f.Encoding == ""
	if text && !(binary && s.conn.proto) {
		return "text"
	}

	// A payload that parses as protobuf without any error is protobuf, unless it was sent as text.
	s.scratch.Reset(f.Data, s.o.Wire)
	if s.scratch.Err() == nil && len(f.Data) > 0 && (f.Opcode.Kind() != captures.OpText || f.Encoding != "") {
		s.conn.proto = s.conn.proto || binary && !text
		return "proto"
	}
	if text {
		return "text"
	}
	if utf8.Valid(f.Data) && f.Opcode.Kind() == captures.OpText {
		return "text"
	}
	return "binary"
}

// isJSONDocument reports whether b is a JSON object or array.
func isJSONDocument(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && (b[0] == '{' || b[0] == '[') && utf8.Valid(b) && json.Valid(b)
}

// connectionStatus returns the status code and the error message of an exchange without HTTP, judged by its
// end-of-stream frame, its WebSocket close frame, or the end of the recording. code is "" while the status is
// unknown.
func (s *Stream) connectionStatus() (code, message string) {
	switch {
	case s.end != nil:
		return s.statusOfEnd(s.end)
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
