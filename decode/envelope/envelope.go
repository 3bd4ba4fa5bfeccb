// Package envelope reads and writes the frames that carry RPC messages in HTTP
// bodies: Connect and gRPC envelopes, gRPC-Web trailers, server-sent events,
// and their compression.
//
// An envelope is
//
//	flags  1 byte   bit field, see Flags
//	length 4 bytes  big-endian
//	data   length bytes
//
// Source: RESEARCH.md#envelopes
package envelope

// HeaderLen is the length of an envelope's flags and length together.
const HeaderLen = 5

// Flags is the bit field that begins an envelope.
type Flags uint8

const (
	Compressed Flags = 0b0000_0001 // the data is compressed as the headers say
	EndStream  Flags = 0b0000_0010 // Connect: the last envelope of a stream, JSON
	Trailer    Flags = 0b1000_0000 // gRPC-Web: trailers as header text
)

// A Frame is one envelope, or one whole unary body, or one event.
//
// Shape: Raw and Data may alias the bytes that were fed. Raw is the payload as
// sent; Data is Raw after decompression, the same slice where there is none.
// Limits: see Options.
type Frame struct {
	Offset  int64 // of the frame's first byte in its direction's body
	Len     int   // bytes on the wire, header included
	Flags   Flags // 0 for a unary body
	Framed  bool  // false for a unary body
	Raw     []byte
	Data    []byte
	Partial bool  // the body ended inside this frame; Raw is what there was
	Err     error // what is wrong with this frame; Data may still hold a prefix
}

// An End is what the last envelope of a Connect stream, or a unary error body, says.
type End struct {
	Error    *Error              // nil on success
	Metadata map[string][]string // trailers of a stream
}

// An Error is a Connect error as the server worded it.
type Error struct {
	Code    string   `json:"code"`
	Message string   `json:"message,omitempty"`
	Details []Detail `json:"details,omitempty"`
}

// A Detail is one error detail: a message type with its bytes.
type Detail struct {
	Type  string `json:"type"`
	Value []byte `json:"value"`
	Debug []byte `json:"debug,omitempty"` // the server's own JSON rendering, if it sent one
}
