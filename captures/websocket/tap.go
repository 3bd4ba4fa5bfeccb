package websocket

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gobwas/httphead"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsflate"

	"unwire/captures"
)

const (
	// maxPart is the number of decompressed bytes from which on a part of a message is recorded as a chunk.
	maxPart = 64 << 10

	// maxPending limits the compressed bytes that are kept until they are decompressed. If a message cannot be
	// decompressed, they are recorded unchanged.
	maxPending = 64 << 10
)

// A frameRecorder parses the WebSocket frames of both directions and records the messages in them.
type frameRecorder struct {
	// rec receives the messages.
	rec captures.Recording
	// readers parse the WebSocket frames of the two directions.
	readers [2]*reader

	// began is the duration from the start of the handshake's exchange to the start of this WebSocket's
	// exchange.
	began time.Duration

	// mu guards unparsed, unparsedBegun and problems.
	mu sync.Mutex

	// beginUnparsed starts recording another exchange, for bytes that are not valid WebSocket frames.
	beginUnparsed func() captures.Recording
	// unparsedBegun means that beginUnparsed was called, even if it failed.
	unparsedBegun bool
	// unparsed is the exchange that receives bytes that are not valid WebSocket frames; nil until it is
	// needed, or if it could not be begun.
	unparsed captures.Recording

	// problems are the reasons why the parsing of a direction ended.
	problems []string
}

// newFrameRecorder returns a recorder for a WebSocket that the server has accepted with the response headers
// answer. Messages are recorded in rec; beginRest starts an exchange for bytes that are not valid frames.
func newFrameRecorder(rec captures.Recording, answer captures.Headers, beginRest func() captures.Recording) *frameRecorder {
	t := &frameRecorder{rec: rec, beginUnparsed: beginRest}
	deflates, p := deflateOf(answer)
	for dir, noTakeover := range []bool{p.ClientNoContextTakeover, p.ServerNoContextTakeover} {
		t.readers[dir] = &reader{recorder: t, dir: captures.Direction(dir), deflates: deflates, noTakeover: noTakeover}
	}
	return t
}

// deflateOf returns whether the server agreed to permessage-deflate, and its parameters. Invalid parameters are
// ignored: if frames do not match them, the reader detects that.
func deflateOf(answer captures.Headers) (agreed bool, p wsflate.Parameters) {
	for _, f := range answer {
		if !strings.EqualFold(f.Name, "sec-websocket-extensions") {
			continue
		}
		options, _ := httphead.ParseOptions([]byte(f.Value), nil)
		for _, o := range options {
			if string(o.Name) == wsflate.ExtensionName {
				_ = p.Parse(o)
				return true, p
			}
		}
	}
	return false, p
}

// write parses and records bytes of one direction that arrived at a time.
func (t *frameRecorder) write(dir captures.Direction, at timestamp, p []byte) {
	r := t.readers[dir]
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at = at; at.known {
		r.at.t = max(0, at.t-t.began)
	}
	r.write(p)
}

// process records which client program made the connection.
func (t *frameRecorder) process(p captures.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.Process(p); t.unparsed != nil {
		t.unparsed.Process(p)
	}
}

// noteProblem records the error that ended the parsing of a direction.
func (t *frameRecorder) noteProblem(dir captures.Direction, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Sprintf("unwire could not parse the rest of the WebSocket data in the direction %s: %v; that data is stored as a separate exchange", dir, err))
}

// writeUnparsed records bytes that are not valid frames in an exchange of their own.
func (t *frameRecorder) writeUnparsed(dir captures.Direction, at timestamp, p []byte) {
	if len(p) == 0 {
		return
	}
	t.mu.Lock()
	if !t.unparsedBegun {
		t.unparsedBegun, t.unparsed = true, t.beginUnparsed()
	}
	rest := t.unparsed
	t.mu.Unlock()
	if rest != nil {
		at.chunk(rest, dir, p)
	}
}

// end ends the recording of the WebSocket.
func (t *frameRecorder) end(at timestamp, o captures.Outcome, errText string) {
	if at.known {
		at.t = max(0, at.t-t.began)
	}
	for _, r := range t.readers {
		r.mu.Lock()
		r.end()
		r.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unparsed != nil {
		at.end(t.unparsed, o, errText)
	}
	if errText != "" {
		t.problems = append([]string{errText}, t.problems...)
	}
	at.end(t.rec, o, strings.Join(t.problems, "; "))
}

// A reader parses the WebSocket frames of one direction, and passes messages to its recorder.
type reader struct {
	// recorder receives the messages of the direction.
	recorder *frameRecorder
	// dir is the direction whose frames are parsed.
	dir captures.Direction
	// deflates means that compression with permessage-deflate was agreed.
	deflates bool
	// noTakeover means that each compressed message begins with an empty sliding window.
	noTakeover bool

	// mu guards the fields below, because bytes may arrive while the WebSocket is ended.
	mu sync.Mutex

	// ended means that the WebSocket has ended; further bytes are ignored.
	ended bool

	// at is the time of the bytes that are being written.
	at timestamp

	// err is the reason why parsing ended; nil while it continues.
	err error
	// stopped means that the end of parsing was reported.
	stopped bool

	// head is the part of the current frame's header that has arrived.
	head []byte
	// frame is the header of the current WebSocket frame; it is valid if inFrame is set.
	frame ws.Header
	// inFrame means that the header of the current frame is complete, but not its payload.
	inFrame bool
	// payloadLeft is the number of bytes of the current frame's payload still to come.
	payloadLeft int64
	// offset is the number of payload bytes already unmasked, modulo 4: the position in the 4-byte masking
	// key.
	offset int

	// message is the opcode of the current message; 0 if there is none.
	message captures.Opcode
	// compressed means that the current message is compressed.
	compressed bool
	// partRecorded means that a part of the current message was recorded.
	partRecorded bool

	// controlPayload is the payload of the current control frame so far.
	controlPayload []byte
	// unmasked is a reused buffer for unmasked payload bytes.
	unmasked []byte

	// inflater decompresses messages; nil until the first compressed message.
	inflater *inflater
	// inflated are decompressed bytes of the current message that were not recorded yet.
	inflated []byte

	// messageSize is the decompressed size of the current message so far, in bytes.
	messageSize int64
	// totalSize is the decompressed size of all compressed messages so far, in bytes; it is compared with
	// wireSize to detect decompression bombs.
	totalSize int64
	// wireSize is the compressed size of all compressed messages so far, in bytes.
	wireSize int64

	// empty means that the current message has no payload so far.
	empty bool

	// pending are raw bytes that arrived earlier and were not recorded yet. They are kept in case parsing
	// fails.
	pending []byte
}

var (
	// errReserved, errTooLarge and errRatio are the reasons why frames are not parsed any further.
	errReserved = errors.New("the WebSocket frame has reserved bits set")
	errTooLarge = fmt.Errorf("a WebSocket message decompresses to more than %d MiB", maxInflated>>20)
	errRatio    = fmt.Errorf("the WebSocket messages decompress to more than %d times their size", maxRatio)
)

// write parses the next bytes of the direction, and records the messages in them.
func (r *reader) write(p []byte) {
	if r.ended {
		return
	}
	// The bytes before from were recorded.
	from := 0
	for at := 0; at < len(p) && r.err == nil; {
		var n int
		var done bool
		if n, done, r.err = r.parseNext(p[at:]); r.err != nil {
			break
		}
		at += n
		if done {
			r.pending, from = r.pending[:0], at
		}
	}
	switch {
	case r.err != nil:
		r.stopParsing(p[from:])
	case len(r.pending)+len(p)-from > maxPending:
		// A long message began: what was decompressed of it is recorded, so its raw bytes are no longer needed.
		r.pending = r.pending[:0]
	default:
		r.pending = append(r.pending, p[from:]...)
	}
}

// stopParsing records the pending bytes and p as unparsed, because they are not valid WebSocket frames, and
// stops parsing the direction.
func (r *reader) stopParsing(p []byte) {
	if !r.stopped {
		r.stopped = true
		r.recorder.noteProblem(r.dir, r.err)
		r.stopInflating()
		r.recorder.writeUnparsed(r.dir, r.at, r.pending)
		r.pending = nil
	}
	r.recorder.writeUnparsed(r.dir, r.at, p)
}

// parseNext parses some bytes at the beginning of p, which is not empty, and returns how many. done means that
// everything up to there was recorded.
func (r *reader) parseNext(p []byte) (n int, done bool, err error) {
	if !r.inFrame {
		if n = r.readHeader(p); !r.inFrame {
			return n, false, nil
		}
		// A frame without payload ends with its header.
		if err = r.beginFrame(); err != nil || r.payloadLeft > 0 {
			return n, false, err
		}
		done, err = r.addPayload(nil)
		return n, done, err
	}
	n = int(min(int64(len(p)), r.payloadLeft))
	r.payloadLeft -= int64(n)
	done, err = r.addPayload(p[:n])
	return n, done, err
}

// readHeader collects the bytes of a frame header, and parses the header once it is complete. It
// returns how many bytes of p it has used.
func (r *reader) readHeader(p []byte) (n int) {
	for len(r.head) < headerSize(r.head) && n < len(p) {
		r.head = append(r.head, p[n])
		n++
	}
	if len(r.head) < headerSize(r.head) {
		return n
	}
	// It fails only for a length above 2^63, which is invalid.
	r.frame, r.err = ws.ReadHeader(bytes.NewReader(r.head))
	r.head, r.inFrame = r.head[:0], true
	return n
}

// headerSize returns the size of a WebSocket frame header in bytes, as far as head, its first bytes, determines
// it.
func headerSize(head []byte) int {
	if len(head) < ws.MinHeaderSize {
		return ws.MinHeaderSize
	}
	n := ws.MinHeaderSize
	switch head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

// beginFrame validates the frame header and prepares for the payload. It does not check whether the frame
// should be masked: both are readable.
func (r *reader) beginFrame() error {
	if r.err != nil {
		return r.err
	}
	h := r.frame
	state := ws.StateExtended
	if r.message != 0 {
		state = state.Set(ws.StateFragmented)
	}
	if err := ws.CheckHeader(h, state); err != nil {
		return err
	}

	// RSV1 marks a compressed message, and is set only in its first frame.
	first := h.OpCode == ws.OpText || h.OpCode == ws.OpBinary
	if h.Rsv2() || h.Rsv3() || h.Rsv1() && !(first && r.deflates) {
		return errReserved
	}
	r.payloadLeft, r.offset = h.Length, 0
	switch {
	case h.OpCode.IsControl():
		r.controlPayload = r.controlPayload[:0]
	case first:
		r.message, r.compressed, r.partRecorded = captures.Opcode(h.OpCode), h.Rsv1(), false
		r.messageSize, r.empty = 0, true
		if r.compressed {
			r.beginInflating()
		}
	}
	return nil
}

// beginInflating prepares the decompression of a compressed message.
func (r *reader) beginInflating() {
	switch {
	case r.inflater == nil:
		r.inflater = newInflater(r.addInflated)
	case r.noTakeover:
		r.inflater.reset()
	}
}

// addPayload processes payload bytes of the current frame; p may be empty. done means that everything so far
// was recorded.
func (r *reader) addPayload(p []byte) (done bool, err error) {
	if r.frame.Masked && len(p) > 0 {
		r.unmasked = append(r.unmasked[:0], p...)
		p = r.unmasked
		ws.Cipher(p, r.frame.Mask, r.offset)
		r.offset = (r.offset + len(p)) % 4
	}

	// The frame ends here if no payload is left.
	over := r.payloadLeft == 0
	r.inFrame = !over
	switch {
	case r.frame.OpCode.IsControl():
		if r.controlPayload = append(r.controlPayload, p...); over {
			r.at.message(r.recorder.rec, r.dir, captures.Opcode(r.frame.OpCode)|captures.OpFinal, r.controlPayload)
		}
		return over && (r.message == 0 || !r.compressed), nil
	case r.compressed:
		return r.addCompressed(p, over && r.frame.Fin)
	}
	if last := over && r.frame.Fin; last || len(p) > 0 {
		r.record(p, last)
	}
	return true, nil
}

// addCompressed decompresses bytes of the current message. last means that the message ends; done is as for
// addPayload.
func (r *reader) addCompressed(p []byte, last bool) (done bool, err error) {
	r.wireSize += int64(len(p))
	r.empty = r.empty && len(p) == 0
	if err := r.inflater.feed(p); err != nil {
		return false, err
	}
	if !last {
		return false, nil
	}
	// A message without any payload has not even an empty block.
	if !r.empty {
		if err := r.inflater.feed(messageTail); err != nil {
			return false, err
		}
	}
	r.flushInflated(true)
	return true, nil
}

// addInflated receives decompressed bytes of the current message, and records them as a chunk when there are
// enough.
func (r *reader) addInflated(p []byte) error {
	r.messageSize += int64(len(p))
	r.totalSize += int64(len(p))
	switch {
	case r.messageSize > maxInflated:
		return errTooLarge
	case r.totalSize > minRatioSize && r.totalSize > maxRatio*r.wireSize:
		return errRatio
	}
	if r.inflated = append(r.inflated, p...); len(r.inflated) >= maxPart {
		r.record(r.inflated, false)
		r.inflated = r.inflated[:0]
	}
	return nil
}

// flushInflated records the decompressed bytes that were not recorded yet.
func (r *reader) flushInflated(last bool) {
	if last || len(r.inflated) > 0 {
		r.record(r.inflated, last)
	}
	r.inflated = r.inflated[:0]
}

// record records a part of the current message; last marks its end.
func (r *reader) record(p []byte, last bool) {
	op := captures.OpContinuation
	if !r.partRecorded {
		r.partRecorded = true
		if op = r.message; r.compressed {
			op |= captures.OpCompressed
		}
	}
	if last {
		op |= captures.OpFinal
		r.message = 0
	}
	r.at.message(r.recorder.rec, r.dir, op, p)
}

// end records the incomplete rest of a message that was cut off, because the WebSocket has ended.
func (r *reader) end() {
	if r.ended {
		return
	}
	r.ended = true
	r.stopInflating()
}

// stopInflating ends the decompressor, and records the data decompressed so far.
func (r *reader) stopInflating() {
	if r.inflater != nil {
		r.inflater.stop()
		r.flushInflated(false)
	}
}

// edit records that a rule replaced bytes of messages before they were forwarded; see captures.Recording.
func (t *frameRecorder) edit(dir captures.Direction, start, end int64, rule string, data []byte) {
	t.rec.Edit(dir, start, end, rule, data)
}
