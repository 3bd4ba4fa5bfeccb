package replay

import (
	"encoding/base64"
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/replay/live"
)

// A PlanFrame is one message that the plan sends, and the server's frame that it waits for.
//
// Shape: Data is the decompressed and edited message, before ids of the live server are inserted.
type PlanFrame struct {
	// Seq is the number of the frame in the capture, in its direction.
	Seq int `json:"seq"`
	// Flags are the flags of the frame's envelope.
	Flags uint8 `json:"flags"`
	// Compressed means that the message is sent compressed.
	Compressed bool `json:"compressed"`
	// Edited means that an edit changed the message.
	Edited bool `json:"edited"`
	// Len is the length of Data in bytes.
	Len int `json:"len"`
	live.Turn
	// Data is the message before compression.
	Data []byte `json:"data"`
	// Append is the call that carries the frame, if each frame is sent in a separate call; otherwise
	// nil.
	Append *Append `json:"append,omitempty"`

	// Opcode is the opcode of a WebSocket message: 1 for text, 2 for binary.
	Opcode captures.Opcode `json:"opcode,omitempty"`

	unread   error // why Data is not all of the message; nil if it is
	framed   bool
	proto    bool   // Data is a message of protobuf
	fresh    bool   // ids of headers were refreshed in it
	encoding string // compression of the payload
	wire     []byte // as captured, envelope included; nil if it is unknown
}

// change replaces the message of the frame.
func (f *PlanFrame) change(data []byte) {
	f.Data, f.Len, f.Edited = data, len(data), true
}

// changed reports whether the frame differs from the captured one.
func (f *PlanFrame) changed() bool { return f.Edited || f.fresh }

// payload returns a message as it is sent: compressed if the captured one was.
func (f *PlanFrame) payload(data []byte) ([]byte, error) {
	if f.encoding == "" {
		return data, nil
	}
	return envelope.Compress(f.encoding, data)
}

// isJSON reports whether a frame is JSON, or at least no protobuf. The messages of a
// connection have no common codec.
func (p *Plan) isJSON(f *PlanFrame) bool {
	if p.overConnection() {
		return !f.proto
	}
	return strings.HasSuffix(p.shown.Codec, "json")
}

// encode returns the bytes that are sent for a frame, with data as its message and secrets inserted. An
// unchanged frame is sent exactly as captured.
func (p *Plan) encode(f *PlanFrame, data []byte, changed bool) ([]byte, error) {
	if f.unread != nil && f.wire != nil {
		return f.wire, nil
	}
	data, filled, err := p.unredact(data)
	if err != nil {
		return nil, err
	}
	if !changed && !filled && f.wire != nil {
		return f.wire, nil
	}
	if p.overConnection() {
		return p.encodeMessage(f, data)
	}
	out, err := f.payload(data)
	if err != nil {
		return nil, err
	}
	if f.framed {
		out = envelope.Append(nil, envelope.Flags(f.Flags), out)
	}
	if p.shown.Protocol == decode.GRPCWebText {
		out = base64.StdEncoding.AppendEncode(nil, out)
	}
	return out, nil
}

// encodeMessage is like encode, for a message on a connection without HTTP.
func (p *Plan) encodeMessage(f *PlanFrame, data []byte) ([]byte, error) {
	if f.encoding != "" {
		compressed, err := f.payload(data)
		if err != nil {
			return nil, fmt.Errorf("frame up/%d: %w", f.Seq, err)
		}
		data = compressed
	}
	if f.framed {
		return envelope.Append(nil, envelope.Flags(f.Flags), data), nil
	}
	return p.captured.Split.Append(nil, data), nil
}
