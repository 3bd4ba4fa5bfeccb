// Package envelope reads and writes the frames that carry RPC messages in HTTP bodies: Connect and gRPC
// envelopes, gRPC-Web trailers, server-sent events, and their compression.
//
// An envelope is a prefix and a message:
//
//	flags  1 byte   bit field, see Flags
//	length 4 bytes  big-endian
//	data   length bytes
//
// A Decoder is fed the chunks of one direction's body and returns Frames. It also undoes base64 (grpc-web-text)
// and compression, splits event streams, and returns a unary body as one frame:
//
//	d := envelope.NewDecoder(envelope.Options{Framed: true, Encoding: "gzip"})
//	frames, err := d.Feed(chunk) // for each chunk
//	rest, err := d.Close()
//
// ParseEnd and ParseStatus parse the status at the end of a stream, from its last frame or from trailers. A
// ResponseEnd decides whether a response that was cut off is complete anyway. A Decompressor reads compressed
// streams, and a Push runs a reading function on input that arrives in pieces.
//
// Package decode and the recorder in mitm use this package. It knows HTTP's headers, but neither connections nor
// captures.
//
// Source: RESEARCH.md#envelopes
package envelope

import (
	"encoding/json"
	"fmt"
)

// Flags is the bit field in the first byte of an envelope.
type Flags uint8

const (
	// Compressed means that the payload is compressed with the encoding that the headers name.
	Compressed Flags = 0b0000_0001

	// EndStream marks the last envelope of a Connect stream, whose payload is JSON.
	EndStream Flags = 0b0000_0010

	// Trailer marks gRPC-Web trailers, whose payload is header text.
	Trailer Flags = 0b1000_0000

	// knownFlags are the flags that any of the protocols uses.
	knownFlags = Compressed | EndStream | Trailer
)

// String returns the names of the flags, as in "compressed|end". Unknown bits are in hex. No flags are "0".
func (f Flags) String() string {
	s := ""
	for _, n := range [...]struct {
		bit  Flags
		name string
	}{{Compressed, "compressed"}, {EndStream, "end"}, {Trailer, "trailer"}} {
		if f&n.bit != 0 {
			s += "|" + n.name
		}
	}
	if rest := f &^ knownFlags; rest != 0 {
		s += fmt.Sprintf("|%#02x", uint8(rest))
	}
	if s == "" {
		return "0"
	}
	return s[1:]
}

// A Frame is one envelope, one unary body, or one server-sent event.
//
// Shape: Raw and Data may alias the bytes that were fed.
//
// Limits: see Options.
type Frame struct {
	// Offset is the offset of the frame's first byte in the body, after decompression of the whole
	// body.
	Offset int64

	// Len is the size of the frame in the body including its 5-byte prefix, in bytes.
	Len int

	// Flags are the flags of the envelope; 0 for a unary body.
	Flags Flags

	// Framed is false for a unary body, and for an event without an envelope.
	Framed bool

	// Partial means that the body ended inside this frame. Raw has the bytes that arrived.
	Partial bool

	// Raw is the payload before decompression.
	Raw []byte

	// Data is the payload after decompression. It is the same slice as Raw if there was no compression.
	Data []byte

	// Encoding is the compression that was undone for Data, or "".
	Encoding string

	// Event is the event name of a server-sent event, or "".
	Event string

	// Err describes a defect of this frame, or is nil. Data may still have the beginning of the payload.
	Err error
}

// An End is the status at the end of a call: from the last envelope of a Connect stream, from a unary error
// body, or from gRPC trailers.
type End struct {
	// Error is the error with which the call ended; nil on success.
	Error *Error

	// Metadata are the trailers of the stream, by name.
	Metadata map[string][]string
}

// An Error is an error status from the server, in the form of Connect's JSON.
type Error struct {
	// Code is the name of the RPC status code, such as "not_found".
	Code string `json:"code"`

	// Message is the server's error message.
	Message string `json:"message,omitempty"`

	// Details are messages of various types with further information on the error.
	Details []Detail `json:"details,omitempty"`
}

// A Detail is one protobuf message that accompanies an error.
type Detail struct {
	// Type is the full name of the detail's message type.
	Type string `json:"type"`

	// Value is the encoded detail message.
	Value []byte `json:"value"`

	// Debug is the detail as JSON, if the server sent that too.
	Debug json.RawMessage `json:"debug,omitempty"`
}

// Split splits b into envelopes if b consists entirely of them.
//
// Shape: payloads are as sent, compressed or not. ok is false if bytes are left over, or if an envelope has
// flags that no protocol uses.
func Split(b []byte) (frames []Frame, ok bool) {
	n := count(b)
	if n == 0 {
		return nil, false
	}
	frames = make([]Frame, 0, n)
	for off := 0; off < len(b); {
		prefix := ParsePrefix(b[off:])
		end := off + PrefixLen + int(prefix.Length)
		raw := b[off+PrefixLen : end : end]
		frames = append(frames, Frame{Offset: int64(off), Len: end - off, Flags: prefix.Flags, Framed: true, Raw: raw, Data: raw})
		off = end
	}
	return frames, true
}

// IsFrames reports whether Split would succeed, without allocating frames.
func IsFrames(b []byte) bool { return count(b) > 0 }

// count returns the number of envelopes in b, or 0 if b does not consist of envelopes.
func count(b []byte) int {
	n, rest := leading(b)
	if len(rest) > 0 {
		return 0
	}
	return n
}

// leading returns the number of complete envelopes at the beginning of b that have only known flags, and the bytes
// after them.
func leading(b []byte) (n int, rest []byte) {
	for ; len(b) >= PrefixLen && Flags(b[0])&^knownFlags == 0; n++ {
		length := int64(ParsePrefix(b).Length)
		if length > int64(len(b)-PrefixLen) {
			break
		}
		b = b[PrefixLen+length:]
	}
	return n, b
}
