package decode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"unwire/captures"
	"unwire/decode/envelope"
	"unwire/decode/wire"
)

// A Splitting says how the bytes of a direction that have no HTTP around them divide into
// messages. It is only known where a user says so; "" is not to split.
type Splitting string

const (
	// splitVarint has the length before each message as a varint, as protobuf's
	// writeDelimitedTo writes it.
	splitVarint Splitting = "delimited"

	SplitBigEndian    Splitting = "delimited32be" // the length is 4 bytes
	SplitLittleEndian Splitting = "delimited32le"
	splitEnvelopes    Splitting = "frames" // envelopes
)

// Splittings are all that there are.
func Splittings() []string {
	return []string{string(splitVarint), string(SplitBigEndian), string(SplitLittleEndian), string(splitEnvelopes)}
}

// errUnsplit is wrapped where bytes do not divide into messages.
var errUnsplit = errors.New("does not split: the rest is shown as bytes")

// A splitter divides the bytes of a direction.
//
// Limits: it holds one message that is not complete, of at most Options.MaxFrame bytes.
type splitter struct {
	buf  []byte
	off  int64 // of the first byte of buf in the direction
	lost int64 // with gaveUp: where the bytes begin that do not split
	// gaveUp says that nothing is split any more.
	gaveUp bool
}

// split takes the next bytes of a direction and returns the messages that they complete.
func (s *Stream) split(dir captures.Direction, p []byte) []Frame {
	d := &s.dirs[dir]
	if s.o.Split == splitEnvelopes {
		return s.feedEnvelopes(dir, p)
	}
	sp := &d.splitter
	if sp.gaveUp {
		return s.deliver(nil, dir, s.unsplit(sp, p))
	}
	// Frames that were returned may refer to bytes before those of buf, which stay.
	if len(sp.buf) == 0 {
		sp.buf = p[:len(p):len(p)]
	} else {
		sp.buf = append(sp.buf, p...)
	}

	var out []Frame
	for len(sp.buf) > 0 && !s.full {
		length, n := s.o.Split.length(sp.buf)
		switch {
		case n == 0: // the length is not there yet
			return out
		case n < 0 || length > uint64(s.o.MaxFrame):
			sp.gaveUp, sp.lost = true, sp.off
			f := s.unsplit(sp, sp.buf)
			sp.buf = nil
			return s.deliver(out, dir, f)
		case length > uint64(len(sp.buf)-n):
			return out
		}
		end := n + int(length)
		data := sp.buf[n:end:end]
		f := Frame{Frame: envelope.Frame{Offset: sp.off, Len: end, Raw: data, Data: data}}
		sp.buf, sp.off = sp.buf[end:], sp.off+int64(end)
		out = s.deliver(out, dir, f)
	}
	return out
}

// feedEnvelopes is split for envelopes.
func (s *Stream) feedEnvelopes(dir captures.Direction, p []byte) []Frame {
	d := &s.dirs[dir]
	if d.dec == nil {
		d.dec = envelope.NewDecoder(envelope.Options{Framed: true, MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated})
	}
	frames, err := d.dec.Feed(p)
	s.fault(dir, err)
	return s.finish(dir, frames)
}

// unsplit is the frame of bytes that do not split.
func (s *Stream) unsplit(sp *splitter, p []byte) Frame {
	f := Frame{Frame: envelope.Frame{Offset: sp.off, Len: len(p), Raw: p, Data: p}}
	f.Err = fmt.Errorf("at %#x: what is no length-prefixed message (%s) %w", sp.lost, s.o.Split, errUnsplit)
	sp.off += int64(len(p))
	return f
}

// closeSplit returns what is left at the end of a direction.
func (s *Stream) closeSplit(dir captures.Direction) []Frame {
	d := &s.dirs[dir]
	if d.dec != nil {
		frames, err := d.dec.Close()
		s.fault(dir, err)
		return s.finish(dir, frames)
	}
	sp := &d.splitter
	if len(sp.buf) == 0 || s.full {
		return nil
	}
	length, n := s.o.Split.length(sp.buf)
	data := sp.buf[max(n, 0):]
	f := Frame{Frame: envelope.Frame{Offset: sp.off, Len: len(sp.buf), Raw: data, Data: data, Partial: true}}
	if n > 0 {
		f.Err = fmt.Errorf("message at %#x: length %d, %d bytes came: %w", sp.off, length, len(data), io.ErrUnexpectedEOF)
	} else {
		f.Err = fmt.Errorf("message at %#x: the length is cut off after %d bytes: %w", sp.off, len(data), io.ErrUnexpectedEOF)
	}
	sp.buf = nil
	return s.deliver(nil, dir, f)
}

// length reads the length that p begins with: n is how many bytes it takes, 0 if they are
// not all there, and negative if p begins with no length.
func (sp Splitting) length(p []byte) (length uint64, n int) {
	const maxVarint = 5 // bytes; a longer one is above every limit
	switch {
	case sp == splitVarint:
		if length, n = wire.ConsumeVarint(p); n > 0 && n <= maxVarint {
			return length, n
		}
		if len(p) < maxVarint {
			return 0, 0
		}
		return 0, -1
	case len(p) < 4:
		return 0, 0
	case sp == SplitBigEndian:
		return uint64(binary.BigEndian.Uint32(p)), 4
	}
	return uint64(binary.LittleEndian.Uint32(p)), 4
}
