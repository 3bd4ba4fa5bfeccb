// Package envelope reads and writes the frames that carry RPC messages in HTTP
// bodies: Connect and gRPC envelopes, gRPC-Web trailers, server-sent events,
// and their compression.
//
// An envelope is a prefix and a message:
//
//	flags  1 byte   bit field, see Flags
//	length 4 bytes  big-endian
//	data   length bytes
//
// A Decoder is fed the chunks of a body and returns its frames. It also undoes base64
// (gRPC-Web as text) and the compression of the whole body, splits an event stream, and
// takes a unary body as one frame. A Decompressor reads a stream as it comes; a
// Push feeds a function that reads.
//
// ParseEnd and ParseStatus read the end of a stream, in its last frame or in trailers,
// with a status code. A ResponseEnd decides whether a response that was cut short had
// been complete. The package knows HTTP's fields, but no connections and no captures.
//
// Source: RESEARCH.md#envelopes
package envelope

import (
	"encoding/json"
	"fmt"
)

// Flags is the bit field that begins an envelope.
type Flags uint8

const (
	Compressed Flags = 0b0000_0001 // the data is compressed as the headers say
	EndStream  Flags = 0b0000_0010 // Connect: the last envelope of a stream, JSON
	Trailer    Flags = 0b1000_0000 // gRPC-Web: trailers as header text

	knownFlags = Compressed | EndStream | Trailer
)

// String returns the flags' names, as in "compressed|end", or "0" for none.
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

// A Frame is one envelope, or one whole unary body, or one event.
//
// Shape: Raw and Data may alias the bytes that were fed. Raw is the payload as
// sent; Data is Raw after decompression, the same slice where there is none.
// Limits: see Options.
type Frame struct {
	// Of the frame's first byte in its direction's body, whose own compression is
	// undone.
	Offset int64

	Len      int   // bytes on the wire, header included
	Flags    Flags // 0 for a unary body
	Framed   bool  // false for a unary body and for an event without an envelope
	Raw      []byte
	Data     []byte
	Encoding string // the compression that was undone to get Data; "" for none
	Event    string // the name of a server-sent event; "" elsewhere
	Partial  bool   // the body ended inside this frame; Raw is what there was
	Err      error  // what is wrong with this frame; Data may still hold a prefix
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

	// The server's own JSON rendering, if it sent one.
	Debug json.RawMessage `json:"debug,omitempty"`
}

// Split reads b as a run of whole envelopes that leaves nothing over.
//
// Shape: payloads as sent, compressed or not; ok is false if b is anything else,
// or begins with flags that no envelope has.
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

// IsFrames reports whether Split succeeds, without making the frames.
func IsFrames(b []byte) bool { return count(b) > 0 }

// count is how many envelopes b is made of; 0 if it is not.
func count(b []byte) (n int) {
	for ; len(b) > 0; n++ {
		if len(b) < PrefixLen || Flags(b[0])&^knownFlags != 0 {
			return 0
		}
		length := int64(ParsePrefix(b).Length)
		if length > int64(len(b)-PrefixLen) {
			return 0
		}
		b = b[PrefixLen+length:]
	}
	return n
}
