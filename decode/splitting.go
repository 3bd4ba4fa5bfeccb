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

// A Splitting is a format in which messages follow each other in a byte stream without HTTP, such as
// length-prefixed. It cannot be detected, so the user selects it. "" means that the bytes are not divided into
// messages.
type Splitting string

const (
	// splitVarint: a varint with the length precedes each message, as protobuf's writeDelimitedTo writes it.
	splitVarint Splitting = "delimited"

	// SplitBigEndian: a length of 4 bytes, big-endian, precedes each message.
	SplitBigEndian Splitting = "delimited32be"

	// SplitLittleEndian: a length of 4 bytes, little-endian, precedes each message.
	SplitLittleEndian Splitting = "delimited32le"

	// splitEnvelopes: each message is in an envelope (5-byte prefix of flags and length), as in gRPC.
	splitEnvelopes Splitting = "frames"
)

// Splittings returns the names of all ways to split a byte stream into messages.
func Splittings() []string {
	return []string{string(splitVarint), string(SplitBigEndian), string(SplitLittleEndian), string(splitEnvelopes)}
}

// errUnsplit is wrapped if bytes cannot be divided into messages.
var errUnsplit = errors.New("the rest is shown as one frame of bytes")

// A splitter divides the bytes of one direction into messages.
//
// Limits: it buffers one incomplete message of at most Options.MaxFrame bytes.
type splitter struct {
	// buf is the incomplete message with its length prefix.
	buf []byte

	// off is the offset of buf in the direction's byte stream.
	off int64

	// lost is the offset from which on bytes could not be divided, if gaveUp is set.
	lost int64

	// gaveUp means that a length was implausible, so later bytes are not divided any more.
	gaveUp bool
}

// feedSplitter processes the next bytes of a direction and returns the messages that they complete.
func (s *Stream) feedSplitter(dir captures.Direction, p []byte) []Frame {
	d := &s.dirs[dir]
	if s.o.Split == splitEnvelopes {
		return s.feedEnvelopes(dir, p)
	}
	sp := &d.splitter
	if sp.gaveUp {
		return s.deliver(nil, dir, s.unsplit(sp, p))
	}
	// Returned frames may refer to the memory before buf, so buf is never moved to its front.
	if len(sp.buf) == 0 {
		sp.buf = p[:len(p):len(p)]
	} else {
		sp.buf = append(sp.buf, p...)
	}

	var out []Frame
	for len(sp.buf) > 0 && !s.full {
		length, n := s.o.Split.length(sp.buf)
		switch {
		// The length is incomplete.
		case n == 0:
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

// feedEnvelopes splits the next bytes into envelopes, and returns the complete frames.
func (s *Stream) feedEnvelopes(dir captures.Direction, p []byte) []Frame {
	d := &s.dirs[dir]
	if d.dec == nil {
		d.dec = envelope.NewDecoder(envelope.Options{Framed: true, MaxFrame: s.o.MaxFrame, MaxInflated: s.o.MaxInflated})
	}
	frames, err := d.dec.Feed(p)
	s.recordFault(dir, err)
	return s.finish(nil, dir, frames)
}

// unsplit returns a frame, with an error, for bytes that cannot be divided into messages.
func (s *Stream) unsplit(sp *splitter, p []byte) Frame {
	f := Frame{Frame: envelope.Frame{Offset: sp.off, Len: len(p), Raw: p, Data: p}}
	f.Err = fmt.Errorf("at %#x: the bytes are not messages with a length prefix (%s): %w", sp.lost, s.o.Split, errUnsplit)
	sp.off += int64(len(p))
	return f
}

// closeSplit ends a direction, and returns its incomplete message as a frame.
func (s *Stream) closeSplit(dir captures.Direction) []Frame {
	d := &s.dirs[dir]
	if d.dec != nil {
		frames, err := d.dec.Close()
		s.recordFault(dir, err)
		return s.finish(nil, dir, frames)
	}
	sp := &d.splitter
	if len(sp.buf) == 0 || s.full {
		return nil
	}
	length, n := s.o.Split.length(sp.buf)
	data := sp.buf[max(n, 0):]
	f := Frame{Frame: envelope.Frame{Offset: sp.off, Len: len(sp.buf), Raw: data, Data: data, Partial: true}}
	if n > 0 {
		f.Err = fmt.Errorf("message at %#x: the length is %d, but only %d bytes arrived: %w", sp.off, length, len(data), io.ErrUnexpectedEOF)
	} else {
		f.Err = fmt.Errorf("message at %#x: the length is truncated after %d bytes: %w", sp.off, len(data), io.ErrUnexpectedEOF)
	}
	sp.buf = nil
	return s.deliver(nil, dir, f)
}

// Append appends message data with the length prefix that the format requires. For envelopes it appends only the
// data.
func (sp Splitting) Append(dst, data []byte) []byte {
	switch sp {
	case splitVarint:
		dst = wire.AppendVarint(dst, uint64(len(data)))
	case SplitBigEndian:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	case SplitLittleEndian:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	}
	return append(dst, data...)
}

// length parses the length prefix at the beginning of p. n is the size of the prefix in bytes, 0 if the prefix
// is incomplete, and negative if it is malformed.
func (sp Splitting) length(p []byte) (length uint64, n int) {
	// A longer varint exceeds every limit.
	const maxVarint = 5
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
