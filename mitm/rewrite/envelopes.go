package rewrite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"unwire/decode/envelope"
)

// errBudget means that the frames being collected in all bodies together exceed maxAssembled bytes.
var errBudget = errors.New("too many frames are being assembled")

const (
	// readStep is by how much the buffer of a frame grows at least, in bytes; it grows by its length if that is more.
	// Memory is not allocated because of a length in the input alone.
	readStep = 4 << 10

	// maxAtOnce is what is allocated at once for an envelope of known length, in bytes.
	maxAtOnce = 64 << 10
)

// readFrame reads up to n bytes and appends them to p. release must be called when the bytes are no longer needed.
//
// Errors: none if r ends earlier; errBudget; those of r. The bytes before the error are returned.
func readFrame(p []byte, r io.Reader, n int) (out []byte, release func(), err error) {
	reserved := int64(0)
	release = func() { assembled.Add(-reserved) }
	for len(p) < n {
		step := min(max(readStep, len(p), cap(p)-len(p)), n-len(p))
		reserved += int64(step)
		if assembled.Add(int64(step)) > maxAssembled {
			return p, release, errBudget
		}
		at := len(p)
		p = append(p, make([]byte, step)...)
		got, err := io.ReadFull(r, p[at:])
		p = p[:at+got]
		switch {
		case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
			return p, release, nil
		case err != nil:
			return p, release, err
		}
	}
	return p, release, nil
}

// runEnvelopes forwards a body that consists of envelopes, i.e. length-prefixed messages, and applies the rules to
// each. Bytes that are not an envelope are forwarded unchanged.
func (b *Body) runEnvelopes(ctx context.Context, r io.Reader) error {
	if b.framing.Base64 {
		b.Exchange.Passed(b.Dir, "grpc-web-text is not changed")
		if err := b.begin(Unchanged); err != nil {
			return err
		}
		return b.copy(ctx, r)
	}
	if b.gathers = b.Declared >= 0 && b.Declared <= MaxFrame; !b.gathers {
		if err := b.begin(Unknown); err != nil {
			return err
		}
	}
	if !b.Exchange.Paces() {
		rest, err := b.passEnvelopes(ctx, r)
		if err != nil {
			return err
		}
		r = rest
	}
	for {
		more, err := b.nextEnvelope(ctx, r)
		if err != nil || !more {
			return err
		}
	}
}

// passEnvelopes forwards envelopes until a rule matches one, or one is too large to examine. All envelopes that have
// arrived are examined and written together, because a write for each of many small ones costs more than everything
// else. rest has the bytes that were not forwarded, and the rest of r.
//
// Errors: those of the sink.
func (b *Body) passEnvelopes(ctx context.Context, r io.Reader) (rest io.Reader, err error) {
	buf := make([]byte, 0, readStep)
	for {
		n, readErr := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		passed, ok := b.ExamineFrames(buf)
		if passed > 0 {
			if err := b.forward(ctx, buf[:passed]); err != nil {
				return nil, err
			}
			buf = append(buf[:0], buf[passed:]...)
		}
		switch {
		case readErr != nil:
			return io.MultiReader(bytes.NewReader(buf), failedReader{readErr}), nil
		case !ok:
			return io.MultiReader(bytes.NewReader(buf), r), nil
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// A failedReader is the end of a reader that has returned err.
type failedReader struct {
	// err is the error, or io.EOF.
	err error
}

// Read returns the error.
func (r failedReader) Read([]byte) (int, error) { return 0, r.err }

// nextEnvelope reads and forwards one envelope. more is false at the end of the body.
func (b *Body) nextEnvelope(ctx context.Context, r io.Reader) (more bool, err error) {
	head := b.prefix[:]
	n, err := io.ReadFull(r, head)
	switch {
	case err == io.EOF:
		return false, nil
	case err != nil:
		// The body ends within a prefix, or reading failed: what arrived is still forwarded.
		if werr := b.pass(ctx, head[:n]); werr != nil || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, werr
		}
		return false, err
	}

	// A frame that is too large to hold in memory is forwarded while it arrives.
	prefix := envelope.ParsePrefix(head)
	size := int64(prefix.Length) + envelope.PrefixLen
	if size > MaxFrame {
		b.Exchange.Passed(b.Dir, "a frame is larger than the limit for changes")
		b.number++
		return b.passFrame(ctx, head, r, size)
	}
	p := append(make([]byte, 0, min(size, maxAtOnce)), head...)
	p, release, err := readFrame(p, r, int(size))
	defer release()
	switch {
	case errors.Is(err, errBudget):
		b.Exchange.Passed(b.Dir, err.Error())
		b.number++
		return b.passFrame(ctx, p, r, size)
	case err != nil || int64(len(p)) < size:
		// The body is cut off within the frame.
		if werr := b.pass(ctx, p); werr != nil {
			return false, werr
		}
		return false, err
	}

	// Rules see decompressed data. A frame that does not decompress is forwarded without them.
	f := &Frame{Framed: true, Flags: prefix.Flags, Received: p, Raw: p[envelope.PrefixLen:]}
	f.Data = f.Raw
	if f.Flags&envelope.Compressed != 0 && len(f.Raw) > 0 {
		if f.Data, err = envelope.Decompress(b.framing.Encoding, f.Raw, MaxFrame); err != nil {
			b.Exchange.Passed(b.Dir, "a frame does not decompress: "+err.Error())
			b.number++
			return true, b.pass(ctx, p)
		}
	}
	return true, b.frame(ctx, f)
}

// pass forwards received bytes unchanged.
func (b *Body) pass(ctx context.Context, p []byte) error {
	b.at += int64(len(p))
	return b.forward(ctx, p)
}

// passFrame forwards a frame of size bytes unchanged, of which p was read.
func (b *Body) passFrame(ctx context.Context, p []byte, r io.Reader, size int64) (more bool, err error) {
	if err := b.pass(ctx, p); err != nil {
		return false, err
	}
	left := size - int64(len(p))
	buf := make([]byte, min(left, 32<<10))
	for left > 0 {
		n, err := r.Read(buf[:min(left, int64(len(buf)))])
		if n > 0 {
			left -= int64(n)
			if werr := b.pass(ctx, buf[:n]); werr != nil {
				return false, werr
			}
		}
		switch {
		case err == io.EOF:
			return false, nil
		case err != nil:
			return false, err
		}
	}
	return true, nil
}
