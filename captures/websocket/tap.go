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
	// maxPart is how much of an inflated message is held until it is recorded in
	// parts, in bytes.
	maxPart = 64 << 10

	// maxHeld is how much of a compressed message is kept as it came, in bytes, so that
	// it can be recorded so if it does not inflate.
	maxHeld = 64 << 10
)

// A tap records the two directions of a WebSocket.
type tap struct {
	rec     captures.Recording
	readers [2]*reader // by direction

	// began is when the exchange of rec began, from when that of the handshake did.
	began time.Duration

	mu sync.Mutex

	// beginRest begins the exchange of bytes that are no frames; rest is that, nil until
	// there are some.
	beginRest func() captures.Recording
	restBegun bool
	rest      captures.Recording

	// problems are why directions are parsed no further.
	problems []string
}

// newTap returns the tap of a WebSocket that the server accepted with a header section.
func newTap(rec captures.Recording, answer captures.Headers, beginRest func() captures.Recording) *tap {
	t := &tap{rec: rec, beginRest: beginRest}
	deflates, p := deflateOf(answer)
	for dir, noTakeover := range []bool{p.ClientNoContextTakeover, p.ServerNoContextTakeover} {
		t.readers[dir] = &reader{tap: t, dir: captures.Direction(dir), deflates: deflates, noTakeover: noTakeover}
	}
	return t
}

// deflateOf returns whether an answer agrees to permessage-deflate, and how. Parameters
// that make no sense are ignored: frames that do not fit are found out later.
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

// write takes bytes of a direction that have passed.
func (t *tap) write(dir captures.Direction, at moment, p []byte) {
	r := t.readers[dir]
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at = at; at.known {
		r.at.t = max(0, at.t-t.began)
	}
	r.write(p)
}

// process records which program made the connection.
func (t *tap) process(p captures.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.Process(p); t.rest != nil {
		t.rest.Process(p)
	}
}

// noteProblem notes why a direction is parsed no further.
func (t *tap) noteProblem(dir captures.Direction, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Sprintf("not parsed any further %s: %v; the bytes from there on are in an exchange of their own", dir, err))
}

// writeRest records bytes that are no frames.
func (t *tap) writeRest(dir captures.Direction, at moment, p []byte) {
	if len(p) == 0 {
		return
	}
	t.mu.Lock()
	if !t.restBegun {
		t.restBegun, t.rest = true, t.beginRest()
	}
	rest := t.rest
	t.mu.Unlock()
	if rest != nil {
		at.chunk(rest, dir, p)
	}
}

// end ends the recording.
func (t *tap) end(at moment, o captures.Outcome, errText string) {
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
	if t.rest != nil {
		at.end(t.rest, o, errText)
	}
	if errText != "" {
		t.problems = append([]string{errText}, t.problems...)
	}
	at.end(t.rec, o, strings.Join(t.problems, "; "))
}

// A reader takes the frames of one direction apart.
type reader struct {
	tap        *tap
	dir        captures.Direction
	deflates   bool
	noTakeover bool

	mu    sync.Mutex
	ended bool

	// at is when the bytes that are written passed, from the beginning of the exchange.
	at moment

	// err is why nothing is parsed any more; gaveUp says that it was noted.
	err    error
	gaveUp bool

	// head is what has come of a frame's header; left bytes are to come of the payload
	// of frame, masked of which were unmasked.
	head    []byte
	frame   ws.Header
	inFrame bool
	left    int64
	offset  int

	// message is the opcode of the message that is passing; 0: none. begun says that a
	// part of it was recorded.
	message    captures.Opcode
	compressed bool
	begun      bool

	// payload is the payload of a control frame, plain what was unmasked.
	payload []byte
	plain   []byte

	// inflater is nil until a message is compressed; inflated was inflated and not yet
	// recorded.
	inflater *inflater
	inflated []byte

	// messageSize is what the message has inflated to so far, totalSize what all have,
	// and wireSize what they had on the wire.
	messageSize, totalSize, wireSize int64

	// empty says that the message has had no payload so far.
	empty bool

	// held is what came in earlier writes and could not be recorded yet, as it came.
	held []byte
}

var (
	errReserved = errors.New("reserved bits are set")
	errTooLarge = fmt.Errorf("a message inflates to more than %d MiB", maxInflated>>20)
	errRatio    = fmt.Errorf("the messages inflate to more than %d times their size", maxRatio)
)

// write takes the next bytes.
func (r *reader) write(p []byte) {
	if r.ended {
		return
	}
	from := 0 // what is before was recorded
	for at := 0; at < len(p) && r.err == nil; {
		var n int
		var done bool
		if n, done, r.err = r.step(p[at:]); r.err != nil {
			break
		}
		at += n
		if done {
			r.held, from = r.held[:0], at
		}
	}
	switch {
	case r.err != nil:
		r.giveUp(p[from:])
	case len(r.held)+len(p)-from > maxHeld:
		// The beginning of a long message: what inflates of it is recorded.
		r.held = r.held[:0]
	default:
		r.held = append(r.held, p[from:]...)
	}
}

// giveUp records bytes that cannot be parsed, with those before that are held.
func (r *reader) giveUp(p []byte) {
	if !r.gaveUp {
		r.gaveUp = true
		r.tap.noteProblem(r.dir, r.err)
		r.stopInflating()
		r.tap.writeRest(r.dir, r.at, r.held)
		r.held = nil
	}
	r.tap.writeRest(r.dir, r.at, p)
}

// step takes some of p, which is not empty, and returns how much. done says that all
// up to there is recorded.
func (r *reader) step(p []byte) (n int, done bool, err error) {
	if !r.inFrame {
		if n = r.readHeader(p); !r.inFrame {
			return n, false, nil
		}
		if err = r.beginFrame(); err != nil || r.left > 0 {
			return n, false, err
		}
		done, err = r.takePayload(nil)
		return n, done, err
	}
	n = int(min(int64(len(p)), r.left))
	r.left -= int64(n)
	done, err = r.takePayload(p[:n])
	return n, done, err
}

// readHeader takes bytes of a frame's header, and parses it once it is complete.
func (r *reader) readHeader(p []byte) (n int) {
	for len(r.head) < headerSize(r.head) && n < len(p) {
		r.head = append(r.head, p[n])
		n++
	}
	if len(r.head) < headerSize(r.head) {
		return n
	}
	// Errors are those of a length above 2^63, which no frame has.
	r.frame, r.err = ws.ReadHeader(bytes.NewReader(r.head))
	r.head, r.inFrame = r.head[:0], true
	return n
}

// headerSize is how long a frame's header is, as far as its beginning says.
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

// beginFrame checks the header that was read. Masks are not checked: what is masked, or
// not, against the rules is as readable.
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
	first := h.OpCode == ws.OpText || h.OpCode == ws.OpBinary
	if h.Rsv2() || h.Rsv3() || h.Rsv1() && !(first && r.deflates) {
		return errReserved
	}
	r.left, r.offset = h.Length, 0
	switch {
	case h.OpCode.IsControl():
		r.payload = r.payload[:0]
	case first:
		r.message, r.compressed, r.begun = captures.Opcode(h.OpCode), h.Rsv1(), false
		r.messageSize, r.empty = 0, true
		if r.compressed {
			r.beginInflating()
		}
	}
	return nil
}

// beginInflating prepares for a compressed message.
func (r *reader) beginInflating() {
	switch {
	case r.inflater == nil:
		r.inflater = newInflater(r.takeInflated)
	case r.noTakeover:
		r.inflater.reset()
	}
}

// takePayload takes bytes of a frame's payload; none may be left. done says that all so
// far is recorded.
func (r *reader) takePayload(p []byte) (done bool, err error) {
	if r.frame.Masked && len(p) > 0 {
		r.plain = append(r.plain[:0], p...)
		p = r.plain
		ws.Cipher(p, r.frame.Mask, r.offset)
		r.offset = (r.offset + len(p)) % 4
	}
	over := r.left == 0
	r.inFrame = !over
	switch {
	case r.frame.OpCode.IsControl():
		if r.payload = append(r.payload, p...); over {
			r.at.message(r.tap.rec, r.dir, captures.Opcode(r.frame.OpCode)|captures.OpFinal, r.payload)
		}
		return over && (r.message == 0 || !r.compressed), nil
	case r.compressed:
		return r.takeCompressed(p, over && r.frame.Fin)
	}
	if last := over && r.frame.Fin; last || len(p) > 0 {
		r.record(p, last)
	}
	return true, nil
}

// takeCompressed takes bytes of a compressed message.
func (r *reader) takeCompressed(p []byte, last bool) (done bool, err error) {
	r.wireSize += int64(len(p))
	r.empty = r.empty && len(p) == 0
	if err := r.inflater.feed(p); err != nil {
		return false, err
	}
	if !last {
		return false, nil
	}
	if !r.empty { // else there is not even an empty block
		if err := r.inflater.feed(messageTail); err != nil {
			return false, err
		}
	}
	r.flushInflated(true)
	return true, nil
}

// takeInflated takes what was inflated of a message.
func (r *reader) takeInflated(p []byte) error {
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

// flushInflated records what was inflated and is not recorded.
func (r *reader) flushInflated(last bool) {
	if last || len(r.inflated) > 0 {
		r.record(r.inflated, last)
	}
	r.inflated = r.inflated[:0]
}

// record records a part of the message that is passing.
func (r *reader) record(p []byte, last bool) {
	op := captures.OpContinuation
	if !r.begun {
		r.begun = true
		if op = r.message; r.compressed {
			op |= captures.OpCompressed
		}
	}
	if last {
		op |= captures.OpFinal
		r.message = 0
	}
	r.at.message(r.tap.rec, r.dir, op, p)
}

// end records the rest of a message that was cut off.
func (r *reader) end() {
	if r.ended {
		return
	}
	r.ended = true
	r.stopInflating()
}

// stopInflating ends the inflater, and records what it has inflated.
func (r *reader) stopInflating() {
	if r.inflater != nil {
		r.inflater.stop()
		r.flushInflated(false)
	}
}
