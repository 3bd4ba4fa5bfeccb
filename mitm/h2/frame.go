package h2

import (
	"encoding/binary"
	"fmt"
)

// A frameType is the type of an HTTP/2 frame.
//
// Source: RFC 9113, section 6
type frameType uint8

const (
	frameData         frameType = 0x00
	frameHeaders      frameType = 0x01
	frameRSTStream    frameType = 0x03
	frameSettings     frameType = 0x04
	framePushPromise  frameType = 0x05
	frameGoAway       frameType = 0x07
	frameWindowUpdate frameType = 0x08
	frameContinuation frameType = 0x09
)

// Flags of frames, and the identifier of a setting.
const (
	flagEndStream  = 0x01 // of DATA and HEADERS
	flagAck        = 0x01 // of SETTINGS
	flagEndHeaders = 0x04
	flagPadded     = 0x08
	flagPriority   = 0x20

	// settingHeaderTableSize is the identifier of SETTINGS_HEADER_TABLE_SIZE.
	settingHeaderTableSize = 0x1
)

const (
	// clientPreface is what a client sends first on an HTTP/2 connection (RFC 9113, section 3.4).
	clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// frameHeaderSize is the length of a frame's header in bytes.
	frameHeaderSize = 9
	// defaultFrameSize is the largest payload, in bytes, that every receiver accepts.
	defaultFrameSize = 16 << 10
	// prioritySize is the length of the priority field of HEADERS in bytes.
	prioritySize = 5
	// maxStreamID is the largest number of a stream, and the largest window update.
	maxStreamID = 1<<31 - 1
)

// An errorCode is the reason why a stream or a connection ended.
type errorCode uint32

const (
	codeNone            errorCode = 0x0
	codeProtocol        errorCode = 0x1
	codeFrameSize       errorCode = 0x6
	codeRefusedStream   errorCode = 0x7
	codeCompression     errorCode = 0x9
	codeEnhanceYourCalm errorCode = 0xb
)

// String returns the RFC's name of the code.
//
// Source: RFC 9113, section 7
func (c errorCode) String() string {
	names := [...]string{
		"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
		"FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
		"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
	}
	if int64(c) < int64(len(names)) {
		return names[c]
	}
	return fmt.Sprintf("code %#x", uint32(c))
}

// A serverAbort is a RST_STREAM or GOAWAY of the server with an error code.
type serverAbort struct {
	// what is the text of the error, such as "the server reset the stream".
	what string
	// code is the error code of the RST_STREAM or GOAWAY frame.
	code errorCode
}

// Error returns the text with the name of the error code.
func (e *serverAbort) Error() string { return e.what + ": " + e.code.String() }

// A protocolError is a violation of HTTP/2, which ends the connection.
type protocolError struct {
	// code is the error code for the GOAWAY frame.
	code errorCode
	// text describes the violation.
	text string
}

// Error returns the description of the violation.
func (e *protocolError) Error() string { return "HTTP/2: " + e.text }

// protocolErrorf returns a *protocolError with a formatted description.
func protocolErrorf(code errorCode, format string, args ...any) error {
	return &protocolError{code, fmt.Sprintf(format, args...)}
}

// A frameHeader is the parsed 9-byte header of an HTTP/2 frame.
type frameHeader struct {
	// length is the length of the frame's payload in bytes.
	length int
	// kind is the frame's type.
	kind frameType
	// flags are the frame's flags, whose meaning depends on the type.
	flags uint8
	// stream is the number of the frame's stream; 0 for frames of the connection.
	stream uint32
}

// has reports whether a flag is set.
func (h frameHeader) has(flag uint8) bool { return h.flags&flag != 0 }

// parseFrameHeader parses the header at the beginning of p.
func parseFrameHeader(p []byte) frameHeader {
	return frameHeader{
		length: int(p[0])<<16 | int(p[1])<<8 | int(p[2]),
		kind:   frameType(p[3]),
		flags:  p[4],
		stream: binary.BigEndian.Uint32(p[5:]) & maxStreamID,
	}
}

// appendFrame appends an encoded HTTP/2 frame.
func appendFrame(dst []byte, kind frameType, flags uint8, stream uint32, payload []byte) []byte {
	n := len(payload)
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), byte(kind), flags)
	dst = binary.BigEndian.AppendUint32(dst, stream)
	return append(dst, payload...)
}

// appendHeaderBlock appends an HPACK-encoded header block as a HEADERS frame and, if it is long, CONTINUATION frames.
// priority is the 5-byte priority field of HEADERS, which may be empty.
func appendHeaderBlock(dst []byte, flags uint8, stream uint32, priority, block []byte) []byte {
	first := min(len(block), defaultFrameSize-len(priority))
	payload := append(append(make([]byte, 0, len(priority)+first), priority...), block[:first]...)
	block = block[first:]
	if len(priority) > 0 {
		flags |= flagPriority
	}
	kind := frameHeaders
	for {
		if len(block) == 0 {
			flags |= flagEndHeaders
		}
		dst = appendFrame(dst, kind, flags, stream, payload)
		if len(block) == 0 {
			return dst
		}
		n := min(len(block), defaultFrameSize)
		kind, flags, payload, block = frameContinuation, 0, block[:n], block[n:]
	}
}

// stripPadding returns the payload of a DATA, HEADERS or PUSH_PROMISE frame without padding.
func stripPadding(h frameHeader, payload []byte) ([]byte, error) {
	if !h.has(flagPadded) {
		return payload, nil
	}
	if len(payload) == 0 || int(payload[0]) >= len(payload) {
		return nil, protocolErrorf(codeProtocol, "the padding of a frame is longer than the frame (%d bytes)", len(payload))
	}
	return payload[1 : len(payload)-int(payload[0])], nil
}
