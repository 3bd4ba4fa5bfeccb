package replay

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/replay/live"
)

// A PlanFrame is one message that the plan sends, with the server's frame that it waits for.
//
// Shape: Data is the decompressed and edited message. Ids of the live server are only inserted when it
// is sent.
type PlanFrame struct {
	// Seq is the number of the frame in the capture, from 0, counting only the client's frames.
	Seq int `json:"seq"`
	// Flags are the flags of the frame's envelope.
	Flags uint8 `json:"flags"`
	// Compressed means that the message is sent compressed.
	Compressed bool `json:"compressed"`
	// Edited means that an edit changed the message.
	Edited bool `json:"edited"`
	// Len is the length of Data in bytes.
	Len int `json:"len"`

	// Turn names the server's frame that this frame responds to, and the values in it that the server
	// issued.
	live.Turn
	// Data is the message before compression.
	Data []byte `json:"data"`
	// Append describes the HTTP call that carries the frame, if each frame is sent in a separate call;
	// otherwise it is nil.
	Append *Append `json:"append,omitempty"`

	// Opcode is the opcode of a WebSocket message: 1 for text, 2 for binary.
	Opcode captures.Opcode `json:"opcode,omitempty"`

	// unread is the reason why Data is not the complete message, such as a failed decompression; nil if
	// it is complete.
	unread error

	// framed means that the message is sent in an envelope, i.e. after five bytes of flags and length.
	framed bool

	// proto means that Data was decoded as a protobuf message.
	proto bool

	// fresh means that ids or times in the message were replaced by current ones.
	fresh bool

	// encoding is the compression of the message on the wire, such as "gzip"; "" for none.
	encoding string

	// wire are the captured bytes of the frame, envelope included; nil if they cannot be sent as they
	// are.
	wire []byte
}

// change replaces the frame's message by data and marks the frame as edited.
func (f *PlanFrame) change(data []byte) {
	f.Data, f.Len, f.Edited = data, len(data), true
}

// changed reports whether the message differs from the captured one, by an edit or by refreshed ids.
func (f *PlanFrame) changed() bool { return f.Edited || f.fresh }

// isIssued reports whether the server issued the secret that a placeholder in the frame replaces: the live
// server issues another one.
func (f *PlanFrame) isIssued(placeholder []byte) bool {
	return slices.ContainsFunc(f.Live, func(b live.Binding) bool { return b.Carries(string(placeholder)) })
}

// payload compresses a message if the captured frame was compressed, and otherwise returns it
// unchanged.
func (f *PlanFrame) payload(data []byte) ([]byte, error) {
	if f.encoding == "" {
		return data, nil
	}
	return envelope.Compress(f.encoding, data)
}

// isJSON reports whether the frame's message is JSON. On a WebSocket or raw connection, where messages
// have no common codec, it reports whether the message is not protobuf.
func (p *Plan) isJSON(f *PlanFrame) bool {
	if p.overConnection() {
		return !f.proto
	}
	return strings.HasSuffix(p.shown.Codec, "json")
}

// encode returns the bytes that are sent for frame f with the message data: secrets are inserted, the
// message is compressed and put into its envelope. If changed is false and there are no secrets, the
// captured bytes are returned.
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

// encodeMessage is like encode for a WebSocket or a raw connection; data already includes secrets.
func (p *Plan) encodeMessage(f *PlanFrame, data []byte) ([]byte, error) {
	if f.encoding != "" {
		compressed, err := f.payload(data)
		if err != nil {
			return nil, fmt.Errorf("client frame %d: %w", f.Seq, err)
		}
		data = compressed
	}
	if f.framed {
		return envelope.Append(nil, envelope.Flags(f.Flags), data), nil
	}
	return p.captured.Split.Append(nil, data), nil
}
