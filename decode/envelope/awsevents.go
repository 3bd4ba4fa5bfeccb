package envelope

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// An awsReader splits a body of content type application/vnd.amazon.eventstream into its messages:
//
//	total length  4 bytes  big-endian, of the whole message
//	header length 4 bytes  big-endian
//	prelude CRC   4 bytes  CRC-32 of the 8 bytes before
//	headers       name length 1, name, type 1, value
//	payload
//	message CRC   4 bytes  CRC-32 of everything before
//
// The frame's Event is the value of the header ":event-type", or of ":exception-type" or ":error-code".
//
// Limits: it buffers one message of at most Options.MaxFrame bytes.
//
// Source: https://smithy.io/2.0/aws/amazon-eventstream.html
type awsReader struct {
	// o has the limits on sizes.
	o Options

	// buf has the bytes of the incomplete message.
	buf []byte

	// off is the offset in the body, in bytes, at which buf begins.
	off int64

	// fail is the error that ended the framing.
	fail error
}

const (
	// awsPrelude is the size in bytes of the lengths and their CRC, and awsCRC that of a CRC.
	awsPrelude = 12
	awsCRC     = 4

	// awsMaxHeaders is the maximum size in bytes of the headers, by the specification.
	awsMaxHeaders = 128 << 10
)

// feed processes the next bytes and returns the messages that they complete.
func (r *awsReader) feed(p []byte) (frames []Frame, err error) {
	if r.fail != nil {
		return nil, r.fail
	}
	// Returned frames refer to the memory before buf, so buf is never moved to its front.
	if len(r.buf) == 0 {
		r.buf = p[:len(p):len(p)]
	} else {
		r.buf = append(r.buf, p...)
	}

	for len(r.buf) >= awsPrelude {
		total, headers, err := r.prelude()
		if err != nil {
			r.fail = err
			return frames, err
		}
		if len(r.buf) < total {
			break
		}
		frames = append(frames, r.message(r.buf[:total:total], headers))
		r.buf, r.off = r.buf[total:], r.off+int64(total)
	}
	return frames, nil
}

// prelude parses and verifies the prelude of the message at the beginning of buf. It returns the sizes in bytes of
// the whole message and of its headers.
func (r *awsReader) prelude() (total, headers int, err error) {
	if sum := crc32.ChecksumIEEE(r.buf[:8]); sum != binary.BigEndian.Uint32(r.buf[8:]) {
		return 0, 0, fmt.Errorf("event at %#x: the CRC of the lengths is wrong, so the rest cannot be split into events", r.off)
	}
	all, head := binary.BigEndian.Uint32(r.buf), binary.BigEndian.Uint32(r.buf[4:])
	switch {
	case int64(all) > r.o.MaxFrame:
		return 0, 0, fmt.Errorf("event at %#x: the length %d is %w of %d bytes", r.off, all, ErrTooLarge, r.o.MaxFrame)
	case head > awsMaxHeaders || int64(all) < awsPrelude+int64(head)+awsCRC:
		return 0, 0, fmt.Errorf("event at %#x: the length %d is too small for headers of %d bytes", r.off, all, head)
	}
	return int(all), int(head), nil
}

// message returns the frame of the complete message b. headers is the size of its headers in bytes.
func (r *awsReader) message(b []byte, headers int) Frame {
	end := len(b) - awsCRC
	payload := b[awsPrelude+headers : end : end]
	f := Frame{Offset: r.off, Len: len(b), Raw: payload, Data: payload}
	event, err := awsEvent(b[awsPrelude : awsPrelude+headers])
	f.Event = event
	if sum := crc32.ChecksumIEEE(b[:end]); sum != binary.BigEndian.Uint32(b[end:]) {
		err = fmt.Errorf("the CRC of the message is wrong")
	}
	if err != nil {
		f.Err = fmt.Errorf("event at %#x: %w", r.off, err)
	}
	return f
}

// awsSizes are the sizes in bytes of the values of headers, by the type number in the header: booleans, integers, a
// time, a UUID. -1 stands for bytes (6) and strings (7), whose size precedes the value.
var awsSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// awsEvent returns the name of the event in the headers of a message.
func awsEvent(headers []byte) (event string, err error) {
	for p := headers; len(p) > 0; {
		n := 1 + int(p[0])
		if len(p) < n+1 || int(p[n]) >= len(awsSizes) {
			return event, fmt.Errorf("the header at offset %d (of %d bytes) is malformed", len(headers)-len(p), len(headers))
		}
		name, size := string(p[1:n]), awsSizes[p[n]]
		p = p[n+1:]
		if size < 0 {
			if len(p) < 2 {
				return event, fmt.Errorf("header %q: the length of the value is missing", name)
			}
			size, p = int(binary.BigEndian.Uint16(p)), p[2:]
		}
		if len(p) < size {
			return event, fmt.Errorf("header %q: the value has only %d of %d bytes", name, len(p), size)
		}
		switch name {
		case ":event-type", ":exception-type", ":error-code":
			event = string(p[:size])
		}
		p = p[size:]
	}
	return event, nil
}

// close returns the frame of a message that the end of the body truncated, with an error, if there is one.
func (r *awsReader) close() ([]Frame, error) {
	if len(r.buf) == 0 || r.fail != nil {
		return nil, r.fail
	}
	f := Frame{Offset: r.off, Len: len(r.buf), Raw: r.buf, Data: r.buf, Partial: true}
	f.Err = fmt.Errorf("event at %#x is truncated after %d bytes: %w", r.off, len(r.buf), io.ErrUnexpectedEOF)
	return []Frame{f}, f.Err
}
