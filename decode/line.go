package decode

import (
	"unwire/captures"
)

// A Line is the JSON form of a frame; see cmd/unwire/JSON.md.
type Line struct {
	// V is the version of the JSON format.
	V int `json:"v"`

	// Dir is "up" for the client's frames and "down" for the server's.
	Dir string `json:"dir"`

	// Seq is the number of the frame in its direction, from 0.
	Seq int `json:"seq"`

	// TMs is the time of the frame's last byte since the beginning of the exchange, in milliseconds.
	TMs float64 `json:"t_ms"`

	// Flags are the flags of the frame's envelope, as a number.
	Flags int `json:"flags"`

	// Compressed reports whether the payload was compressed.
	Compressed bool `json:"compressed"`

	// End means that the frame is the end-of-stream message.
	End bool `json:"end"`

	// Off is the offset of the frame in the body, in bytes.
	Off int64 `json:"off"`

	// Len is the size of the payload before decompression, in bytes.
	Len int `json:"len"`

	// Encoding is the compression with which the payload was sent; "" if none.
	Encoding string `json:"encoding,omitempty"`

	// Event is the event name, if the frame is a server-sent event.
	Event string `json:"event,omitempty"`

	// Opcode is the name of the WebSocket opcode.
	Opcode string `json:"opcode,omitempty"`

	// Close is the content of a WebSocket close frame.
	Close *Close `json:"close,omitempty"`

	// Partial means that the frame is truncated.
	Partial bool `json:"partial,omitempty"`

	// Raw is the payload as sent, before decompression.
	Raw []byte `json:"raw"`

	// Data is the payload after decompression; the same bytes as Raw if it was not compressed.
	Data []byte `json:"data"`

	// Tree are the decoded fields of the frame.
	Tree *fieldTree `json:"tree"`

	// Inner are the messages that were found inside the values of fields, for example in base64.
	Inner []innerLine `json:"inner,omitempty"`

	// Error describes a defect of the frame, or is empty.
	Error string `json:"error"`
}

// An innerLine is the JSON form of an Inner: a message found inside a field.
type innerLine struct {
	// Path leads to the field that contains the message.
	Path string `json:"path"`

	// Encoding is the encoding of the field's value, such as base64, in which the message was found.
	Encoding string `json:"encoding"`

	// Data are the bytes of the message after this encoding was undone.
	Data []byte `json:"data"`

	// Tree are the decoded fields of the message.
	Tree *fieldTree `json:"tree,omitempty"`
}

// Line returns the JSON form of f, with fields decoded as v determines.
func (v View) Line(f *Frame) Line {
	l := Line{
		V: 1, Dir: f.Dir.String(), Seq: f.Seq, TMs: float64(f.T.Nanoseconds()) / 1e6,
		Flags: int(f.Flags), Compressed: f.Compressed(), End: f.End != nil, Off: f.Offset, Len: len(f.Raw),
		Encoding: f.Encoding, Event: f.Event, Partial: f.Partial,
		Raw: notNil(f.Raw), Data: notNil(f.Data), Tree: &fieldTree{},
	}

	// Members that only some frames have are left out otherwise.
	if f.Opcode != 0 {
		l.Opcode = OpcodeName(f.Opcode)
		l.Close = f.Close
	}
	if f.Err != nil {
		l.Error = f.Err.Error()
	}
	if f.Tree == nil {
		return l
	}
	l.Tree = &fieldTree{view: v, message: f.Tree}
	for _, in := range f.Inner {
		line := innerLine{Path: f.Tree.PathOf(in.Node).String(), Encoding: in.Encoding, Data: in.Data}
		if in.Tree != nil {
			line.Tree = &fieldTree{message: in.Tree}
		}
		l.Inner = append(l.Inner, line)
	}

	return l
}

// Compressed reports whether the frame's payload was compressed as sent.
func (f *Frame) Compressed() bool {
	return f.Opcode&captures.OpCompressed != 0 || f.Encoding != "" || f.Framed && f.Flags&1 != 0
}

// Up reports whether the frame was sent by the client.
func (f *Frame) Up() bool { return f.Dir == captures.Up }

// notNil returns b, or an empty slice if b is nil, so that JSON has "" and not null.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
