package envelope

import "fmt"

// gather is Feed for a unary body: it collects the body in buf, up to MaxFrame.
func (d *Decoder) gather(p []byte) ([]Frame, error) {
	if d.large != nil {
		d.large.Len += len(p)
		return nil, nil
	}
	if int64(len(d.buf))+int64(len(p)) <= d.o.MaxFrame {
		d.buf = collect(d.buf, p, d.o.MaxFrame)
		return nil, nil
	}
	total := len(d.buf) + len(p)
	d.buf = collect(d.buf, p[:d.o.MaxFrame-int64(len(d.buf))], d.o.MaxFrame)
	err := fmt.Errorf("the body is %w of %d bytes", ErrTooLarge, d.o.MaxFrame)
	d.large = &Frame{Len: total, Raw: d.buf, Data: d.buf, Err: err}
	d.buf = nil
	return nil, err
}

// collect appends p to buf, which may get up to most bytes in later calls. It doubles the memory when it is full, because
// append moves a large slice so often that most of the time for a body of some megabytes would be spent with that.
func collect(buf, p []byte, most int64) []byte {
	if need := len(buf) + len(p); len(buf) > 0 && need > cap(buf) {
		larger := make([]byte, len(buf), max(need, int(min(2*int64(need), most))))
		copy(larger, buf)
		buf = larger
	}
	return append(buf, p...)
}

// unary returns the frames of a complete unary body. Some clients put an envelope around it. That is
// unambiguous: neither a protobuf message nor JSON begins with an envelope's flags, 0x00 to 0x03.
func (d *Decoder) unary() []Frame {
	if frames, ok := Split(d.buf); ok && normalEncoding(d.o.Encoding) == "" {
		for i := range frames {
			frames[i].inflate(d.o, &d.readers)
		}
		return frames
	}

	f := Frame{Len: len(d.buf), Raw: d.buf, Data: d.buf}
	encoding := normalEncoding(d.o.Encoding)
	if encoding == "" {
		return []Frame{f}
	}
	data, err := d.readers.frame(encoding, d.buf, d.o.MaxInflated)
	if err != nil {
		// Keep the beginning of a body that cannot be decompressed completely.
		f.Err = fmt.Errorf("the body cannot be decompressed: %w", err)
	}
	if err == nil || len(data) > 0 {
		f.Data, f.Encoding = data, encoding
	}
	if d.o.Values != NoValues && err == nil {
		if values, ok := splitValues(data, d.o); ok {
			return values
		}
	}
	// The envelope may also be inside the compression.
	if inner, ok := Split(f.Data); ok && len(inner) == 1 && err == nil {
		f.Flags, f.Framed, f.Data = inner[0].Flags, true, inner[0].Data
	}
	return []Frame{f}
}

// feedValues is Feed for a body that may be a stream of JSON values.
func (d *Decoder) feedValues(p []byte) ([]Frame, error) {
	r := d.values
	if int64(len(r.buf))+int64(len(p)) <= d.o.MaxFrame {
		return r.feed(p)
	}

	// The value or the body is too large. From here on, the body counts as unary, so that its size is counted.
	total := len(r.buf) + len(p)
	kept := append(r.buf, p[:max(d.o.MaxFrame-int64(len(r.buf)), 0)]...)
	err := fmt.Errorf("the value at %#x is %w of %d bytes", r.off, ErrTooLarge, d.o.MaxFrame)
	d.large = &Frame{Offset: r.off, Len: total, Raw: kept, Data: kept, Err: err}
	frames := r.ready
	if !r.sure {
		frames = nil
	}
	r.buf, r.ready = nil, nil
	return frames, err
}
