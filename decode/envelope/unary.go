package envelope

import "fmt"

// gather is Feed for a body that is one message.
func (d *Decoder) gather(p []byte) ([]Frame, error) {
	if d.large != nil {
		d.large.Len += len(p)
		return nil, nil
	}
	if int64(len(d.buf))+int64(len(p)) <= d.o.MaxFrame {
		d.buf = append(d.buf, p...)
		return nil, nil
	}
	total := len(d.buf) + len(p)
	d.buf = append(d.buf, p[:d.o.MaxFrame-int64(len(d.buf))]...)
	err := fmt.Errorf("envelope: body: %w of %d bytes", ErrTooLarge, d.o.MaxFrame)
	d.large = &Frame{Len: total, Raw: d.buf, Data: d.buf, Err: err}
	d.buf = nil
	return nil, err
}

// unary makes the frame of a body. Some clients put an envelope around it: its
// flags, 0x00 to 0x03, cannot begin a protobuf message, nor JSON.
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
		f.Err = fmt.Errorf("envelope: body: %w", err)
	}
	if err == nil || len(data) > 0 {
		f.Data, f.Encoding = data, encoding
	}
	if inner, ok := Split(f.Data); ok && len(inner) == 1 && err == nil {
		f.Flags, f.Framed, f.Data = inner[0].Flags, true, inner[0].Data
	}
	return []Frame{f}
}
