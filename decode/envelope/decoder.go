package envelope

import (
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is wrapped where a frame is larger than Options.MaxFrame.
var ErrTooLarge = errors.New("larger than the limit")

const (
	defaultMaxFrame = 64 << 20

	// Of a frame that is too large, or inflates past its limit, to look at.
	keptOfTooLarge = 64 << 10
)

// Options says how one direction's body is framed. The zero value reads a
// unary body without compression.
type Options struct {
	// Compression of frames, or of a unary body: gzip, br, zstd, deflate, identity.
	Encoding string

	Framed bool // a run of envelopes; else one unary body
	Base64 bool // Framed, and the envelopes are in base64 (grpc-web-text)
	Events bool // text/event-stream: events, or envelopes under that label

	// Compression of the whole of a framed body, around the frames; HTTP's
	// content-encoding.
	Whole string

	MaxFrame int64 // bytes of a frame, or of a unary body; default 64 MiB

	// The frames that a call of Feed returns are there until the next.
	Reuse bool

	// Bytes of a frame after decompression, and of a Whole body; default 64 MiB; 64 KiB
	// of a larger frame are kept.
	MaxInflated int64
}

// A Decoder splits one direction's body into frames as it arrives.
//
// Limits: it holds at most the one frame that is not complete, and of that no
// more than MaxFrame and no more than was fed: a length is not believed.
type Decoder struct {
	o       Options
	off     int64  // of the first byte that belongs to no frame yet
	buf     []byte // what has come of an incomplete frame
	skip    int64  // bytes still to come of a frame that is too large
	large   *Frame // that frame
	text    *base64Reader
	event   *eventReader
	whole   *wholeReader
	first   bool    // a byte was fed
	list    []Frame // that was returned, to be used again
	readers decompressors
	fail    error
}

// NewDecoder returns a Decoder for one direction of one exchange.
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
	d.whole = newWholeReader(o.Whole, d.o.MaxInflated)
	return d
}

// Feed takes the next bytes and returns the frames they complete.
//
// Shape: frames may alias p. A unary body is returned by Close.
// Errors: the first one about the framing as such, with its offset; the frames
// before it are returned. What is wrong within one frame is in that frame's Err.
// Feeding may go on: bytes that cannot be framed are dropped.
func (d *Decoder) Feed(p []byte) ([]Frame, error) {
	if d.whole == nil {
		return d.feed(p)
	}
	p, werr := d.whole.feed(p)
	frames, err := d.feed(p)
	return frames, errors.Join(err, werr)
}

// feed is Feed for bytes that are frames.
func (d *Decoder) feed(p []byte) ([]Frame, error) {
	if len(p) == 0 {
		return nil, nil
	}
	if d.o.Events && !d.first {
		if Flags(p[0])&^knownFlags == 0 {
			d.o.Framed = true // envelopes that are only labelled as events
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
	case !d.o.Framed:
		return d.gather(p)
	case d.text == nil:
		return d.frames(p)
	}
	raw, err := d.text.decode(p)
	frames, ferr := d.frames(raw)
	if err != nil {
		d.fail = err
	}
	d.text.relocate(frames)
	d.text.forget(d.off)
	return frames, errors.Join(ferr, err)
}

// Close ends the body and returns what was still open: a unary body, or a
// frame that the body ended inside, with an error.
func (d *Decoder) Close() ([]Frame, error) {
	d.list, d.o.Reuse = nil, false // what follows comes from several calls
	defer d.readers.Close()
	if d.event != nil {
		defer d.event.readers.Close()
	}
	if d.whole == nil {
		return d.close()
	}
	p, werr := d.whole.close()
	d.whole = nil
	frames, err := d.feed(p)
	rest, cerr := d.close()
	return append(frames, rest...), errors.Join(werr, err, cerr)
}

func (d *Decoder) close() ([]Frame, error) {
	if d.event != nil {
		return d.event.close()
	}
	var frames []Frame
	if d.text != nil && d.fail == nil {
		raw, err := d.text.close()
		rest, ferr := d.frames(raw)
		frames = append(frames, rest...)
		d.fail = errors.Join(ferr, err)
	}
	switch {
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

// frames is Feed for bytes that are envelopes.
func (d *Decoder) frames(p []byte) (frames []Frame, err error) {
	frames = d.list[:0]
	for len(p) > 0 {
		if d.large != nil {
			var f []Frame
			p, f = d.drop(p)
			frames = append(frames, f...)
			continue
		}
		if len(d.buf) == 0 && len(p) >= PrefixLen {
			if n := int64(ParsePrefix(p).Length); n <= d.o.MaxFrame && int64(len(p)) >= PrefixLen+n {
				frames = append(frames, d.frame(p[:PrefixLen+n:PrefixLen+n]))
				p = p[PrefixLen+n:]
				continue
			}
		}
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
		d.buf, p = append(d.buf, p[:k]...), p[k:]
		if int64(len(d.buf)) == PrefixLen+n {
			frames = append(frames, d.frame(d.buf))
			d.buf = nil
		}
	}
	if d.o.Reuse {
		d.list = frames
	}
	return frames, err
}

// frame makes the frame of a whole envelope and moves on.
func (d *Decoder) frame(b []byte) Frame {
	f := Frame{Offset: d.off, Len: len(b), Flags: Flags(b[0]), Framed: true, Raw: b[PrefixLen:]}
	d.off += int64(len(b))
	f.inflate(d.o, &d.readers)
	return f
}

// tooLarge makes the frame whose header is in buf, and has the rest dropped.
func (d *Decoder) tooLarge(n int64) error {
	err := fmt.Errorf("envelope: frame at %#x: flags %#02x, length %d is %w of %d bytes", d.off, d.buf[0], n, ErrTooLarge, d.o.MaxFrame)
	d.large = &Frame{Offset: d.off, Len: PrefixLen + int(n), Flags: Flags(d.buf[0]), Framed: true, Err: err}
	d.skip = n
	d.buf = nil
	return err
}

// drop takes what p has of a frame that is too large, and keeps its beginning.
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

// partial makes the frame that the body ended inside.
func (d *Decoder) partial() Frame {
	f := Frame{Offset: d.off, Len: len(d.buf), Flags: Flags(d.buf[0]), Framed: true, Partial: true}
	if len(d.buf) < PrefixLen {
		f.Err = fmt.Errorf("envelope: frame at %#x: header of %d bytes, %d came: %w", d.off, PrefixLen, len(d.buf), io.ErrUnexpectedEOF)
		return f
	}
	f.Raw = d.buf[PrefixLen:]
	f.inflate(d.o, &d.readers)
	f.Err = fmt.Errorf("envelope: frame at %#x: length %d, %d bytes came: %w", d.off, ParsePrefix(d.buf).Length, len(f.Raw), io.ErrUnexpectedEOF)
	return f
}

// inflate sets Data from Raw.
func (f *Frame) inflate(o Options, r *decompressors) {
	f.Data = f.Raw
	if f.Flags&Compressed == 0 {
		return
	}
	encoding := normalEncoding(o.Encoding)
	if encoding == "" {
		// The headers may be lost or wrong; the flag is the sender's word.
		if encoding = Sniff(f.Raw); encoding == "" {
			f.Err = fmt.Errorf("envelope: frame at %#x: compressed, but no header names the compression", f.Offset)
			return
		}
	}
	if len(f.Raw) == 0 {
		return // some senders set the flag on an empty message
	}
	data, err := r.frame(encoding, f.Raw, o.MaxInflated)
	if err != nil {
		f.Err = fmt.Errorf("envelope: frame at %#x: %w", f.Offset, err)
		if data == nil {
			return
		}
	}
	f.Data, f.Encoding = data, encoding
}
