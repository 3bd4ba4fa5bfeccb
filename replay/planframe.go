package replay

import (
	"encoding/base64"
	"strings"

	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/replay/live"
)

// A PlanFrame is one message of the request, with what it waits for.
//
// Shape: Data is the message after decompression, edits made, before live ids
// are put in.
type PlanFrame struct {
	Seq        int   `json:"seq"` // its number in the capture
	Flags      uint8 `json:"flags"`
	Compressed bool  `json:"compressed"`
	Edited     bool  `json:"edited"`
	Len        int   `json:"len"` // of Data
	live.Turn
	Data []byte `json:"data"`
	// the call that carries it, where frames have calls of their own
	Append *Append `json:"append,omitempty"`

	unread   error // why Data is not all of the message; nil if it is
	framed   bool
	fresh    bool   // ids of headers were refreshed in it
	encoding string // compression of the payload
	wire     []byte // as captured, envelope included; nil if it cannot be told
}

// change gives a frame other data.
func (f *PlanFrame) change(data []byte) {
	f.Data, f.Len, f.Edited = data, len(data), true
}

// changed reports whether a frame is not as it was captured.
func (f *PlanFrame) changed() bool { return f.Edited || f.fresh }

// payload is a message as the wire has it: compressed if it was.
func (f *PlanFrame) payload(data []byte) ([]byte, error) {
	if f.encoding == "" {
		return data, nil
	}
	return envelope.Compress(f.encoding, data)
}

func (p *Plan) isJSON() bool { return strings.HasSuffix(p.shown.Codec, "json") }

// encode returns a frame's bytes on the wire with data as its message, and the
// secrets in it. What was not changed goes out as it was captured.
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
