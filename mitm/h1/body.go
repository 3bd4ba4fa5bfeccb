package h1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/mitm/rewrite"
)

const (
	// Limits of chunked encoding: maxChunkLine and maxTrailers are the largest sizes in bytes of a line with a
	// chunk's length and of the trailer section. maxSizeDigits hex digits (60 bits) of a length always fit into
	// an int64.
	maxChunkLine  = 4 << 10
	maxTrailers   = 64 << 10
	maxSizeDigits = 15
)

// A bodyKind is the way in which the end of an HTTP/1 body is determined: by length, chunks, or the end
// of the connection.
type bodyKind uint8

const (
	// bodyLength means a declared length (or no body), bodyChunked chunked encoding, and bodyUntilClose that
	// the end of the connection ends the body.
	bodyLength bodyKind = iota
	bodyChunked
	bodyUntilClose
)

// A body follows the received bytes of one message's body to find its end. It does not store them.
type body struct {
	// kind is the way in which the end of the body is determined.
	kind bodyKind

	// done means that the end of the body was found.
	done bool

	// padded permits spaces after the length of a chunk, which some servers send.
	padded bool

	// left is the number of bytes that are still missing of the body, or of the current chunk.
	left int64

	// state is the element of chunked encoding that is expected next.
	state chunkState
	// digits is the number of digits of the current chunk's length so far.
	digits int
	// line is the number of bytes so far of the line with the chunk's length.
	line int

	// section is the trailer section received so far.
	section []byte
	// trailers are the parsed fields of the trailer section, when it is complete.
	trailers captures.Headers
}

// A chunkState is the element of a chunked body to which the next byte belongs.
type chunkState uint8

const (
	// chunkSize is a digit of a chunk's length, or the character that ends it.
	chunkSize chunkState = iota
	// chunkPad is a space after the length.
	chunkPad
	// chunkExt is a byte of a chunk extension.
	chunkExt
	// chunkSizeLF is the LF at the end of the line with the length.
	chunkSizeLF
	// chunkData is a byte of the chunk's content.
	chunkData
	// The CR after the content.
	chunkDataCR
	// The LF after that CR.
	chunkDataLF
	// The trailer section.
	chunkTrailer
)

// noTrailers are the fields that are refused in a trailer section, because they would change how the message was
// already read.
//
// Source: RFC 9110, section 6.5.1
var noTrailers = []string{"connection", "content-length", "host", "transfer-encoding"}

// scan follows the body through p, the next received bytes. It returns how many bytes of p belong to the body,
// including its framing, and the content in them. content is a part of p if it is contiguous; otherwise it is
// copied to scratch, which must be at least as long as p.
//
// Errors: *Malformed. The bytes before the error are valid.
func (b *body) scan(p, scratch []byte) (n int, content []byte, err error) {
	switch {
	case b.done:
		return 0, nil, nil
	case b.kind == bodyUntilClose:
		return len(p), p, nil
	case b.kind == bodyLength:
		n = int(min(int64(len(p)), b.left))
		b.left -= int64(n)
		b.done = b.left == 0
		return n, p[:n], nil
	}
	return b.scanChunks(p, scratch)
}

// scanChunks implements scan for a chunked body.
func (b *body) scanChunks(p, scratch []byte) (n int, content []byte, err error) {
	copied := 0
	for n < len(p) && !b.done {
		if b.state != chunkData {
			if err := b.step(p[n]); err != nil {
				return n, content, err
			}
			n++
			continue
		}
		// Copy the content only from its second piece on: most reads contain one.
		m := int(min(int64(len(p)-n), b.left))
		switch {
		case content == nil:
			content = p[n : n+m]
		default:
			if copied == 0 {
				copied = copy(scratch, content)
			}
			copied += copy(scratch[copied:], p[n:n+m])
			content = scratch[:copied]
		}
		n += m
		if b.left -= int64(m); b.left == 0 {
			b.state = chunkDataCR
		}
	}
	return n, content, nil
}

// step processes one byte of chunked encoding, other than content.
//
// Source: RFC 9112, section 7.1
func (b *body) step(c byte) error {
	// The limit applies to lines, not to the data of a chunk.
	if b.line++; b.line > maxChunkLine && b.state < chunkData {
		return malformed("the line with the size of a chunk is longer than %d bytes", maxChunkLine)
	}

	// A state machine for one byte of chunked framing (RFC 9112, section 7.1).
	switch b.state {
	case chunkSize, chunkPad:
		return b.stepSize(c)
	case chunkExt:
		switch {
		case c == '\r':
			b.state = chunkSizeLF
		case c < ' ' && c != '\t' || c == 0x7f:
			return malformed("a chunk extension has a control character")
		}
	case chunkSizeLF:
		return b.endSize(c)
	case chunkDataCR:
		if c != '\r' {
			return malformed("a chunk is longer than its size")
		}
		b.state = chunkDataLF
	case chunkDataLF:
		if c != '\n' {
			return malformed("a chunk does not end in CRLF")
		}

		// The next chunk starts with fresh counters.
		b.state, b.digits, b.line = chunkSize, 0, 0
	case chunkTrailer:
		return b.stepTrailer(c)
	case chunkData: // has no step
	}
	return nil
}

// stepSize processes one byte of the line with a chunk's length.
func (b *body) stepSize(c byte) error {
	digit := int64(-1)
	switch lower := c | 0x20; {
	case isDigit(c):
		digit = int64(c - '0')
	case 'a' <= lower && lower <= 'f':
		digit = int64(lower-'a') + 10
	}
	switch {
	case digit >= 0 && b.state == chunkSize:
		if b.digits++; b.digits > maxSizeDigits {
			return malformed("the size of a chunk has more than %d digits", maxSizeDigits)
		}
		b.left = b.left<<4 | digit
	case b.digits == 0:
		return malformed("a chunk has no size")
	case c == '\r':
		b.state = chunkSizeLF
	case c == ';':
		b.state = chunkExt
	case b.padded && (c == ' ' || c == '\t'):
		b.state = chunkPad
	default:
		return malformed("the size of a chunk is not a number in hexadecimal digits")
	}
	return nil
}

// endSize processes the byte after the CR of a line with a chunk's length. The chunk with length 0 is the last
// one.
func (b *body) endSize(c byte) error {
	switch {
	case c != '\n':
		return malformed("the line with the size of a chunk does not end in CRLF")
	case b.left > 0:
		b.state = chunkData
	default:
		b.state = chunkTrailer
	}
	return nil
}

// stepTrailer processes one byte of the trailer section. At the section's end it parses the section.
func (b *body) stepTrailer(c byte) error {
	if len(b.section) == maxTrailers {
		return malformed("the trailer section is longer than %d bytes", maxTrailers)
	}
	b.section = append(b.section, c)
	n := len(b.section)
	if c != '\n' {
		if n > 1 && b.section[n-2] == '\r' {
			return malformed("the trailer section has a CR without LF")
		}
		return nil
	}
	// A bare LF is refused, because not all recipients accept it as the end of a line.
	if n < 2 || b.section[n-2] != '\r' {
		return malformed("a trailer line ends in LF without CR")
	}
	// The section ends with an empty line.
	if n > 2 && b.section[n-3] != '\n' {
		return nil
	}
	if n > 2 {
		fields, err := parseFields(string(b.section))
		if err != nil {
			return err
		}
		for _, f := range fields {
			if slices.Contains(noTrailers, strings.ToLower(f.Name)) {
				return malformed("the trailer section has the field %s, which trailers must not contain", f.Name)
			}
		}
		b.trailers = fields
	}
	b.done = true
	return nil
}

// betweenChunks reports whether no part of the current chunk has arrived, so that a new chunk may be inserted here. For
// a body without chunks, it is always true.
func (b *body) betweenChunks() bool {
	return b.kind != bodyChunked || b.done || b.state == chunkSize && b.digits == 0
}

// incomplete returns the error for a body that has ended too early.
func (b *body) incomplete() error {
	if b.kind == bodyLength {
		return fmt.Errorf("the body ended %d bytes before its declared length", b.left)
	}
	return errors.New("the body ended before its last chunk")
}

// errClientGone ends a relay or an exchange whose client has left.
var errClientGone = errors.New("the client closed the connection")

// A bodyEnd connects a received body with the relay: it reads more of it, and records and forwards it.
type bodyEnd interface {
	// scratch returns the memory for body content that arrives in several chunks, which is as large as the buffer.
	scratch() []byte

	// fill reads more bytes into the buffer.
	fill() error

	// note records body content that has arrived, and that the body is complete if body.done is set.
	note(content []byte)

	// forward writes p as it was received. Its first bytes, head of them, are the head of the message, and content is
	// the length of the body content behind it.
	forward(p []byte, head, content int) error
}

// A received is a body that rules may change, as it was received. It reads the content of the body, without the
// chunked encoding.
type received struct {
	// in is the buffer into which the body arrives.
	in *input
	// body finds the end of the body.
	body *body
	// end reads, records and forwards the body.
	end bodyEnd

	// left are bytes of the body that were received but not returned by Read yet.
	left []byte
	// err is the error that ended reading, returned after left; nil before.
	err error
}

// Read returns the next received content, and records it.
func (r *received) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		switch {
		case r.err == io.EOF:
			// The client ended its direction within the body, so the body is not complete.
			return 0, errClientGone
		case r.err != nil:
			return 0, r.err
		case r.body.done:
			return 0, io.EOF
		case len(r.in.buffered()) == 0:
			if r.err = r.end.fill(); r.err != nil {
				continue
			}
		}
		// Rules get the content without the chunked encoding. The capture stores it before any change.
		n, content, bad := r.body.scan(r.in.buffered(), r.end.scratch())
		r.end.note(content)
		r.left, r.err = content, bad
		r.in.consume(n)
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// apply forwards the rest of the body to out, as changed by rules.
//
// Errors: *rewrite.Stop; the error that ended reading; those of out.
func (r *received) apply(ctx context.Context, rules *rewrite.Body, out rewrite.Sink) error {
	err := rules.Run(ctx, r, out)
	if r.err == nil || errors.As(err, new(*rewrite.Stop)) {
		return err
	}
	return r.err
}

// A watch forwards a body as it was received, while no frame matches a rule, so that it costs little that rules match
// nothing. The relay examines each frame in the buffer. The first frame that a rule matches, or that cannot be examined
// at once, ends the watch: the bytes that were not forwarded, and all that follow, go through received.apply.
//
// An incomplete frame is withheld, and so is a body that is a single frame, together with its head. The buffer grows for
// that by twice rewrite.MaxWatched at most.
type watch struct {
	*received

	// rules are the rules for the body.
	rules *rewrite.Body
	// how is the way in which frames are examined.
	how rewrite.Watch

	// head is the length of the head of the message in bytes, which precedes the body in the buffer; 0 when it was
	// forwarded.
	head int
	// headFirst means that the head does not wait for body content.
	headFirst bool

	// raw is the number of buffered bytes of the body behind the head that were recorded and not forwarded yet.
	raw int
	// content is the body content in these bytes.
	content []byte
	// copied means that content is a copy, and not a part of the buffer.
	copied bool
}

// run forwards the body until the watch ends. over is false if the rest goes through received.apply: then head and raw
// are the lengths of what was not forwarded.
//
// Errors: *Malformed; those of bodyEnd.
func (w *watch) run() (over bool, err error) {
	if w.how == rewrite.WatchNot {
		return false, nil
	}
	for {
		n, content, bad := w.body.scan(w.in.buffered()[w.head+w.raw:], w.end.scratch())
		w.end.note(content)
		w.add(n, content)
		mark := w.rules.Mark()
		passes, ok := w.examine()
		switch {
		case bad != nil && w.head > 0 && w.rules.Dir == captures.Up:
			// Nothing of a malformed request was forwarded.
			return true, bad
		case !ok || bad != nil && w.how != rewrite.WatchNothing:
			w.rules.Reset(mark)
			w.left, w.received.err = w.content, bad
			return false, nil
		case passes:
			if err := w.forward(w.raw, len(w.content)); err != nil {
				w.rules.Reset(mark)
				return true, err
			}
			if bad != nil || w.body.done {
				return true, bad
			}
		case w.head > 0 && w.headFirst:
			if err := w.forward(0, 0); err != nil {
				return true, err
			}
		}

		// More bytes may move the buffer.
		w.keep()
		switch err := w.end.fill(); {
		case err != nil && w.how == rewrite.WatchNothing:
			return true, err
		case err != nil:
			w.left, w.received.err = w.content, err
			return false, nil
		}
	}
}

// add appends n bytes of the body, with content in them, to those that are examined next.
func (w *watch) add(n int, content []byte) {
	w.raw += n
	if len(w.content) == 0 {
		w.content, w.copied = content, false
		return
	}
	w.content = append(w.content, content...)
}

// keep copies the content that is not forwarded yet, so that it stays when the buffer changes.
func (w *watch) keep() {
	if len(w.content) > 0 && !w.copied {
		w.content, w.copied = append(make([]byte, 0, 2*len(w.content)), w.content...), true
	}
}

// examine reports whether everything that has arrived is forwarded as it is (passes), or waits for more. ok is false if
// the watch must end.
func (w *watch) examine() (passes, ok bool) {
	switch {
	case w.how == rewrite.WatchNothing:
		w.rules.Skip(len(w.content))
		return true, true
	case w.how == rewrite.WatchBody && w.body.done:
		ok = w.rules.ExamineBody(w.content)
		return ok, ok
	case w.how == rewrite.WatchBody:
		return false, w.raw <= 2*rewrite.MaxWatched
	}

	// A frame that has arrived must not wait for the rest of another one.
	passed, ok := w.rules.ExamineFrames(w.content)
	switch {
	case ok && passed == len(w.content) && w.body.betweenChunks():
		return true, true
	case passed == 0 && !w.body.done:
		return false, ok && w.raw <= 2*rewrite.MaxWatched
	}
	return false, false
}

// forward forwards the head, unless it was forwarded before, and raw buffered bytes behind it, with content bytes of
// content.
func (w *watch) forward(raw, content int) error {
	n := w.head + raw
	if err := w.end.forward(w.in.buffered()[:n], w.head, content); err != nil {
		return err
	}
	w.in.consume(n)
	if w.head, w.raw = 0, w.raw-raw; w.raw == 0 {
		w.content = nil
	}
	return nil
}
