package envelope

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrTooLarge is wrapped if a frame is larger than Options.MaxFrame.
var ErrTooLarge = errors.New("larger than the limit")

const (
	// defaultMaxFrame is the default of Options.MaxFrame: 64 MiB.
	defaultMaxFrame = 64 << 20

	// keptOfTooLarge is the number of bytes that are kept of a frame that exceeds MaxFrame or MaxInflated: 64 KiB.
	keptOfTooLarge = 64 << 10
)

// Options describes how messages are delimited and compressed in one direction's body. The zero value means a
// single uncompressed message.
type Options struct {
	// Encoding is the compression of each frame, or of a unary body: gzip, br, zstd, deflate or identity. The
	// default is none.
	Encoding string

	// Framed means that the body is a sequence of envelopes. Default: one unary message.
	Framed bool

	// Base64 means that the envelopes are encoded in base64 (grpc-web-text). It implies Framed.
	Base64 bool

	// Events means that the body is labelled text/event-stream. It contains server-sent events, or bare envelopes
	// in spite of the label.
	Events bool

	// AWSEvents means that the body is labelled application/vnd.amazon.eventstream.
	AWSEvents bool

	// Values says whether the body may be a stream of several JSON values. The default is that it is not.
	Values Values

	// Lengths means that each JSON value may be preceded by its length in binary. It matters only if Values allows
	// values.
	Lengths bool

	// Sized means that the headers state the size of the body (content-length). Then the chunks in which it arrives
	// do not indicate where values end.
	Sized bool

	// Whole is the compression of the entire framed body, around the frames: HTTP's content-encoding. The
	// default is none.
	Whole string

	// MaxFrame is the maximum size in bytes of a frame or a unary body. The default is 64 MiB.
	MaxFrame int64

	// Reuse allows Feed to reuse the returned slice: it is valid only until the next call.
	Reuse bool

	// MaxInflated is the maximum size in bytes of a frame after decompression, and of a decompressed Whole body.
	// 64 KiB of a larger frame are kept. The default is 64 MiB.
	MaxInflated int64
}

// Values says whether a body may be a stream of several JSON values, such as JSON Lines.
type Values uint8

const (
	// NoValues is for a body that is not JSON, or one value only.
	NoValues Values = iota

	// ValuesPossible is for a body that may be one value or several.
	ValuesPossible

	// ValuesDeclared is for a body whose headers announce a value on each line.
	ValuesDeclared
)

// A Decoder splits one direction's body into frames as the body arrives.
//
// Limits: the Decoder buffers at most the one incomplete frame: no more than MaxFrame, and no more than was fed.
// It never allocates memory because of a length in the input alone.
type Decoder struct {
	// o are the options, with defaults filled in.
	o Options

	// off is the offset of the first byte that is not part of a returned frame.
	off int64

	// buf has the received bytes of the incomplete frame.
	buf []byte

	// skip is the number of remaining bytes of a frame that is too large.
	skip int64

	// large is the frame that exceeds the limit and is being skipped, or nil.
	large *Frame

	// text decodes a body that is base64 text, as in grpc-web-text; nil for other bodies.
	text *base64Reader

	// event splits a body of server-sent events (text/event-stream); nil for other bodies.
	event *eventReader

	// aws splits a body in the binary event format of AWS (application/vnd.amazon.eventstream); nil for other
	// bodies.
	aws *awsReader

	// values splits a body that may consist of several JSON values; nil for other bodies.
	values *valueReader

	// whole decompresses a body that is compressed as a whole (Content-Encoding); nil for other bodies.
	whole *wholeReader

	// first is true once a byte of the body was processed.
	first bool

	// list is the slice returned by the last Feed, for Options.Reuse.
	list []Frame

	// readers are reusable decompressors for frames.
	readers decompressors

	// fail is the error that ended the framing. Later bytes are ignored.
	fail error
}

// NewDecoder returns a Decoder for the body of one direction of an exchange.
func NewDecoder(o Options) *Decoder {
	if o.MaxFrame <= 0 {
		o.MaxFrame = defaultMaxFrame
	}
	if o.MaxInflated <= 0 {
		o.MaxInflated = defaultMaxInflated
	}
	d := &Decoder{o: o}
	if o.Base64 {
		d.o.Framed = true
		d.text = new(base64Reader)
	}
	if o.AWSEvents {
		d.aws = &awsReader{o: d.o}
	}
	// A compressed unary body is split when it is complete.
	if o.Values != NoValues && normalEncoding(o.Encoding) == "" {
		d.values = newValueReader(d.o)
	}
	d.whole = newWholeReader(o.Whole, d.o.MaxInflated)
	return d
}

// Feed processes the next bytes and returns the frames that they complete. A unary body is returned by Close.
//
// Shape: frames may alias p.
//
// Errors: the first error of the framing itself, with its offset; the frames before it are returned. An error
// within one frame is in that frame's Err. The caller may continue to feed: bytes that cannot be framed are
// dropped.
func (d *Decoder) Feed(p []byte) ([]Frame, error) {
	if d.whole == nil {
		return d.feed(p)
	}
	p, werr := d.whole.feed(p)
	frames, err := d.feed(p)
	return frames, errors.Join(err, werr)
}

// feed processes the next bytes p of the body, without the compression of the body as a whole, and returns the frames
// that are complete.
func (d *Decoder) feed(p []byte) ([]Frame, error) {
	if len(p) == 0 {
		return nil, nil
	}

	// The first byte distinguishes events from envelopes that are only labelled as events: no event line begins
	// with a byte that is a valid set of flags.
	if d.o.Events && !d.first {
		if Flags(p[0])&^knownFlags == 0 {
			d.o.Framed = true
		} else {
			d.event = &eventReader{o: d.o}
		}
	}
	d.first = true
	switch {
	case d.fail != nil:
		return nil, d.fail
	case d.event != nil:
		return d.event.feed(p)
	case d.aws != nil:
		return d.aws.feed(p)
	case d.values != nil && d.large == nil:
		return d.feedValues(p)
	case !d.o.Framed:
		return d.gather(p)
	case d.text == nil:
		return d.frames(p)
	}

	// The base64 variant. Frames get offsets of the text.
	raw, err := d.text.decode(p)
	frames, ferr := d.frames(raw)
	if err != nil {
		d.fail = err
	}
	d.text.relocate(frames)
	d.text.forget(d.off)
	return frames, errors.Join(ferr, err)
}

// Close ends the body. It returns a unary body, or an incomplete frame with an error.
func (d *Decoder) Close() ([]Frame, error) {
	// The frames below come from several calls, so they cannot share one slice.
	d.list, d.o.Reuse = nil, false
	defer d.readers.Close()
	if d.event != nil {
		defer d.event.readers.Close()
	}
	if d.whole == nil {
		return d.close()
	}
	// The decompressor may return more bytes, which may complete frames.
	p, werr := d.whole.close()
	d.whole = nil
	frames, err := d.feed(p)
	rest, cerr := d.close()
	return append(frames, rest...), errors.Join(werr, err, cerr)
}

// close returns the buffered rest of the body: a partial frame, or the unary message.
func (d *Decoder) close() ([]Frame, error) {
	if d.event != nil {
		return d.event.close()
	}
	if d.aws != nil {
		return d.aws.close()
	}
	var frames []Frame
	if d.values != nil && d.large == nil {
		if frames, d.buf, d.fail = d.values.close(); len(d.buf) == 0 {
			return frames, d.fail
		}
	}
	if d.text != nil && d.fail == nil {
		raw, err := d.text.close()
		rest, ferr := d.frames(raw)
		frames = append(frames, rest...)
		d.fail = errors.Join(ferr, err)
	}

	// At most one incomplete frame is left.
	switch {
	// d.large exists in a unary body, too. Only an envelope counts as partial.
	case d.large != nil:
		f := *d.large
		f.Partial = d.o.Framed
		f.Len -= int(d.skip)
		d.fail = errors.Join(d.fail, f.Err)
		frames = append(frames, f)
		d.large, d.skip = nil, 0
	case len(d.buf) > 0 && d.o.Framed:
		f := d.partial()
		d.fail = errors.Join(d.fail, f.Err)
		frames = append(frames, f)
	case len(d.buf) > 0:
		frames = append(frames, d.unary()...)
	}
	d.buf = nil
	if d.text != nil {
		d.text.relocate(frames)
	}
	return frames, d.fail
}

// frames processes the next bytes p of a body that consists of length-prefixed envelopes, and returns the frames that
// are complete.
func (d *Decoder) frames(p []byte) (frames []Frame, err error) {
	frames = d.list[:0]
	for len(p) > 0 {
		if d.large != nil {
			var f []Frame
			p, f = d.drop(p)
			frames = append(frames, f...)
			continue
		}

		// The fast path: p contains a whole envelope, which needs no copy.
		if len(d.buf) == 0 && len(p) >= PrefixLen {
			if n := int64(ParsePrefix(p).Length); n <= d.o.MaxFrame && int64(len(p)) >= PrefixLen+n {
				if len(frames) == cap(frames) {
					// Frames are large, so reserve memory for all of them instead of moving them while the list grows.
					whole, _ := leading(p)
					frames = slices.Grow(frames, whole)
				}
				frames = append(frames, d.frame(p[:PrefixLen+n:PrefixLen+n]))
				p = p[PrefixLen+n:]
				continue
			}
		}

		// Otherwise collect the prefix in buf, then the payload.
		if need := PrefixLen - len(d.buf); need > 0 {
			k := min(need, len(p))
			d.buf, p = append(d.buf, p[:k]...), p[k:]
			if len(d.buf) < PrefixLen {
				break
			}
		}
		n := int64(ParsePrefix(d.buf).Length)
		if n > d.o.MaxFrame {
			if terr := d.tooLarge(n); err == nil {
				err = terr
			}
			continue
		}
		k := int(min(PrefixLen+n-int64(len(d.buf)), int64(len(p))))
		d.buf, p = collect(d.buf, p[:k], PrefixLen+n), p[k:]
		if int64(len(d.buf)) == PrefixLen+n {
			frames = append(frames, d.frame(d.buf))
			d.buf = nil
		}
	}
	if d.o.Reuse {
		// The next call of Feed appends to the same memory.
		d.list = frames
	}
	return frames, err
}

// frame returns the frame for the complete envelope b, and advances the offset.
func (d *Decoder) frame(b []byte) Frame {
	f := Frame{Offset: d.off, Len: len(b), Flags: Flags(b[0]), Framed: true, Raw: b[PrefixLen:]}
	d.off += int64(len(b))
	f.inflate(d.o, &d.readers)
	return f
}

// tooLarge starts a frame of n payload bytes that exceeds MaxFrame, and returns the error for it. Its prefix is in
// buf, and drop skips its payload.
func (d *Decoder) tooLarge(n int64) error {
	err := fmt.Errorf("frame at offset %#x with flags %#02x: the length %d is %w of %d bytes", d.off, d.buf[0], n, ErrTooLarge, d.o.MaxFrame)
	d.large = &Frame{Offset: d.off, Len: PrefixLen + int(n), Flags: Flags(d.buf[0]), Framed: true, Err: err}
	d.skip = n
	d.buf = nil
	return err
}

// drop skips the bytes of p that belong to a too large frame. It keeps the first 64 KiB and returns the frame
// once it is complete.
func (d *Decoder) drop(p []byte) (rest []byte, done []Frame) {
	k := min(d.skip, int64(len(p)))
	if room := keptOfTooLarge - len(d.large.Raw); room > 0 {
		d.large.Raw = append(d.large.Raw, p[:min(k, int64(room))]...)
		d.large.Data = d.large.Raw
	}
	d.skip -= k
	if d.skip == 0 {
		d.off += int64(d.large.Len)
		done = []Frame{*d.large}
		d.large = nil
	}
	return p[k:], done
}

// partial returns the frame that the end of the body truncated.
func (d *Decoder) partial() Frame {
	f := Frame{Offset: d.off, Len: len(d.buf), Flags: Flags(d.buf[0]), Framed: true, Partial: true}
	if len(d.buf) < PrefixLen {
		f.Err = fmt.Errorf("frame at offset %#x: the header has %d bytes, but only %d arrived: %w", d.off, PrefixLen, len(d.buf), io.ErrUnexpectedEOF)
		return f
	}
	f.Raw = d.buf[PrefixLen:]
	f.inflate(d.o, &d.readers)
	f.Err = fmt.Errorf("frame at offset %#x: the length is %d, but only %d bytes arrived: %w", d.off, ParsePrefix(d.buf).Length, len(f.Raw), io.ErrUnexpectedEOF)
	return f
}

// inflate sets Data by decompressing Raw if the frame is compressed.
func (f *Frame) inflate(o Options, r *decompressors) {
	f.Data = f.Raw
	if f.Flags&Compressed == 0 {
		return
	}
	encoding := normalEncoding(o.Encoding)
	if encoding == "" {
		// The headers may be missing or wrong, but the flag is part of the frame: detect the compression.
		if encoding = Sniff(f.Raw); encoding == "" {
			f.Err = fmt.Errorf("frame at offset %#x: the frame is compressed, but no header names the compression", f.Offset)
			return
		}
	}
	if len(f.Raw) == 0 {
		// Some senders set the flag on an empty message.
		return
	}

	// Keep the beginning of a payload that cannot be decompressed completely.
	data, err := r.frame(encoding, f.Raw, o.MaxInflated)
	if err != nil {
		f.Err = fmt.Errorf("frame at offset %#x: %w", f.Offset, err)
		if data == nil {
			return
		}
	}
	f.Data, f.Encoding = data, encoding
}
