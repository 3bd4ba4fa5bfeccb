package rewrite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"unwire/captures"
	"unwire/decode/envelope"
)

// Lengths that a Body passes to Sink.Begin in addition to real ones.
const (
	// Unchanged means that the declared length of the body still applies.
	Unchanged = -1
	// Unknown means that the length of the forwarded body is not known before its end.
	Unknown = -2
)

// A Sink receives the body that is forwarded, possibly changed.
type Sink interface {
	// Begin is called once, before Write. length is that of the body in bytes, Unchanged or Unknown.
	Begin(length int64) error

	// Write forwards bytes. It must not keep p.
	Write(p []byte) (int, error)
}

// copySize is the size of the buffer for large bodies that are not changed, in bytes.
const copySize = 32 << 10

// assembled is the number of bytes, over all bodies of the process, in frames that are being collected at the moment.
var assembled atomic.Int64

// A Body applies rules to the body of one direction.
type Body struct {
	// Dir is the direction of the body.
	Dir captures.Direction

	// Exchange decides what happens to each frame of the body.
	Exchange Exchange

	// Recorder records the changes; nil records nothing.
	Recorder Recorder

	// Declared is the content-length of the received body, or -1.
	Declared int64

	// framing is how the body is split into frames.
	framing Framing
	// sink receives the forwarded body.
	sink Sink

	// at is the offset in the received body, in bytes, behind the frames handled so far.
	at int64
	// number is the number of the next frame, from 0.
	number int
	// unsent is the number of bytes of the last write that sink did not accept, because of an error.
	unsent int

	// prefix is the memory for the prefix of an envelope.
	prefix [envelope.PrefixLen]byte

	// examined is the memory for the frame that ExamineFrames or ExamineBody examines; nil until it is needed.
	examined *Frame

	// begun means that Sink.Begin was called.
	begun bool

	// gathers means that the forwarded bytes are collected in gathered until the body is complete, because their
	// total length must be declared before them.
	gathers bool
	// gathered are the forwarded bytes that were collected so far.
	gathered bytes.Buffer
	// edits are the changes in gathered, which are recorded when that is forwarded.
	edits []captures.Edit
}

// Offset returns how many received bytes were forwarded, replaced or dropped. It may be called after Run.
func (b *Body) Offset() int64 {
	if b.gathers {
		return 0
	}
	return b.at
}

// Run forwards the body from r to w until r ends.
//
// Errors: *Stop if a verdict ends the exchange; those of r and w.
func (b *Body) Run(ctx context.Context, r io.Reader, w Sink) error {
	b.framing, b.sink = b.Exchange.Framing(b.Dir), w
	var err error
	switch b.framing.Kind {
	case Whole:
		err = b.runWhole(ctx, r)
	case Envelopes:
		err = b.runEnvelopes(ctx, r)
	case Messages:
		err = b.runMessages(ctx, r)
	case Events:
		err = b.runEvents(ctx, r)
	case Chunks:
		err = b.runChunks(ctx, r)
	default:
		// An opaque body has no frames to decide about.
		if err = b.begin(Unchanged); err == nil {
			err = b.copy(ctx, r)
		}
	}

	// A sink expects Begin even if the body is empty, since the head waits for it.
	if err == nil {
		err = b.flushGathered()
	}
	if err == nil {
		err = b.begin(Unknown)
	}
	return err
}

// begin calls Sink.Begin unless it was called before. length is the length of the forwarded body in bytes, Unchanged
// or Unknown.
func (b *Body) begin(length int64) error {
	if b.begun {
		return nil
	}
	b.begun = true
	return b.sink.Begin(length)
}

// flushGathered forwards the buffered body, whose length is now known.
func (b *Body) flushGathered() error {
	if !b.gathers {
		return nil
	}
	b.endGathering()
	// If the body is shorter or longer than declared, the receiver must still be able to detect that.
	length := int64(Unchanged)
	if b.at == b.Declared {
		length = int64(b.gathered.Len())
	} else if b.at > b.Declared {
		length = max(0, int64(b.gathered.Len())-(b.at-b.Declared))
	}
	if err := b.begin(length); err != nil {
		return err
	}
	_, err := b.sink.Write(b.gathered.Bytes())
	return err
}

// endGathering records the changes in the buffered body, which is forwarded now.
func (b *Body) endGathering() {
	b.gathers = false
	for _, e := range b.edits {
		b.recordEdit(e)
	}
	b.edits = nil
}

// write forwards bytes at the speed that Exchange.Pace allows.
func (b *Body) write(ctx context.Context, p []byte) error {
	b.Exchange.Pace(ctx, b.Dir, len(p))
	b.unsent = len(p)
	if b.gathers {
		if b.gathered.Len()+len(p) <= 4*MaxFrame {
			b.gathered.Write(p)
			return nil
		}
		// The body has become too long: the length is not declared then.
		b.endGathering()
		if err := b.begin(Unknown); err != nil {
			return err
		}
		if _, err := b.sink.Write(b.gathered.Bytes()); err != nil {
			return err
		}
		b.gathered = bytes.Buffer{}
	}
	err := b.begin(Unknown)
	if err == nil && len(p) > 0 {
		n := 0
		n, err = b.sink.Write(p)
		b.unsent -= n
	}
	return err
}

// forward forwards received bytes, which Offset counts already, unchanged.
func (b *Body) forward(ctx context.Context, p []byte) error {
	err := b.write(ctx, p)
	if err != nil {
		b.at -= int64(b.unsent)
	}
	return err
}

// copy forwards the rest of the body unchanged.
func (b *Body) copy(ctx context.Context, r io.Reader) error {
	// Most bodies are small.
	buf := make([]byte, 1<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if werr := b.pass(ctx, buf[:n]); werr != nil {
				return werr
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case n == len(buf) && n < copySize:
			buf = make([]byte, min(4*n, copySize))
		}
	}
}

// runChunks treats the bytes of each read as one frame.
func (b *Body) runChunks(ctx context.Context, r io.Reader) error {
	if err := b.begin(Unknown); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			p := buf[:n]
			if err := b.frame(ctx, &Frame{Received: p, Raw: p, Data: p}); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// runWhole reads the whole body as one frame, and forwards it with its new length.
func (b *Body) runWhole(ctx context.Context, r io.Reader) error {
	if b.Dir == captures.Up && b.Declared < 0 {
		// The server may decide by the head whether it wants the body.
		if err := b.begin(Unknown); err != nil {
			return err
		}
	}
	p, release, err := readFrame(nil, r, MaxFrame+1)
	defer release()
	switch {
	case len(p) > MaxFrame || errors.Is(err, errBudget):
		b.Exchange.Passed(b.Dir, "the body is larger than the limit for changes")
		if err := b.begin(Unchanged); err != nil {
			return err
		}
		if err := b.pass(ctx, p); err != nil {
			return err
		}
		return b.copy(ctx, r)
	case err == nil && b.Declared >= 0 && int64(len(p)) != b.Declared:
		// The body was cut off, or HTTP/2 has carried more than was declared. A changed length would hide from the
		// receiver that the body is malformed (RFC 9113, section 8.1.1).
		if int64(len(p)) > b.Declared {
			b.Exchange.Passed(b.Dir, "the body is longer than its content-length")
		}
		if err := b.begin(Unchanged); err != nil {
			return err
		}
		return b.pass(ctx, p)
	case err != nil:
		// An incomplete body is forwarded as it is.
		if beginErr := b.begin(Unchanged); beginErr != nil {
			return beginErr
		}
		if writeErr := b.write(ctx, p); writeErr != nil {
			return writeErr
		}
		return err
	}

	// A declared length stays one.
	b.gathers = b.Declared >= 0
	f := &Frame{Received: p, Raw: p}
	if f.Data, err = envelope.Decompress(b.framing.Encoding, p, MaxFrame); err != nil {
		b.Exchange.Passed(b.Dir, "the body does not decompress: "+err.Error())
		return b.write(ctx, p)
	}
	return b.frame(ctx, f)
}

// frame asks the rules about a frame and forwards the result.
func (b *Body) frame(ctx context.Context, f *Frame) error {
	f.Dir, f.Number = b.Dir, b.number
	b.number++
	start := b.at
	b.at += int64(len(f.Received))
	v := b.Exchange.Frame(ctx, f)
	switch v.Action {
	case Pass:
		return b.forward(ctx, f.Received)
	case Answer, Reset:
		if b.gathers {
			// The frames before are not forwarded either.
			start, b.gathers, b.edits = 0, false, nil
		}
		b.record(start, v.Rule, nil)
		return &Stop{v}
	case Replace:
	}
	out, err := b.encode(f, v.Messages)
	if err != nil {
		b.Exchange.Passed(b.Dir, "the changed frame cannot be encoded: "+err.Error())
		return b.write(ctx, f.Received)
	}
	if bytes.Equal(out, f.Received) {
		return b.write(ctx, out)
	}
	b.record(start, v.Rule, out)
	return b.write(ctx, out)
}

// record stores in the recording that a rule replaced the received bytes from offset start up to the current offset
// with data.
func (b *Body) record(start int64, rule string, data []byte) {
	e := captures.Edit{Dir: b.Dir, Start: start, End: b.at, Rule: rule, Data: data}
	if b.gathers {
		b.edits = append(b.edits, e)
		return
	}
	b.recordEdit(e)
}

// recordEdit stores a change in the recording.
func (b *Body) recordEdit(e captures.Edit) {
	if b.Recorder != nil {
		b.Recorder.Edit(e.Dir, e.Start, e.End, e.Rule, e.Data)
	}
}

// encode encodes messages in the framing and the compression of the frame f that they replace.
func (b *Body) encode(f *Frame, messages [][]byte) ([]byte, error) {
	var out []byte
	for _, m := range messages {
		switch {
		case bytes.Equal(m, f.Data):
			// What is unchanged keeps its compressed bytes.
			out = append(out, f.Received...)
			continue
		case b.framing.Kind == Chunks:
			out = append(out, m...)
			continue
		case b.framing.Kind == Whole && b.framing.Encoding != "",
			f.Flags&envelope.Compressed != 0 && b.framing.Encoding != "":
			// The flags or headers that declare the compression stay, so the replacement is compressed, too.
			packed, err := envelope.Compress(b.framing.Encoding, m)
			if err != nil {
				return nil, err
			}
			m = packed
		}
		switch b.framing.Kind {
		case Envelopes:
			out = envelope.Append(out, f.Flags, m)
		case Events:
			out = append(out, withData(f.Received, m)...)
		default:
			out = append(out, m...)
		}
	}
	return out, nil
}
