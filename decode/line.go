package decode

import (
	"unwire/captures"
	"unwire/decode/field"
)

// A Line is a frame as the JSON contract has it.
type Line struct {
	V          int            `json:"v"`
	Dir        string         `json:"dir"`
	Seq        int            `json:"seq"`
	TMs        float64        `json:"t_ms"`
	Flags      int            `json:"flags"`
	Compressed bool           `json:"compressed"`
	End        bool           `json:"end"`
	Off        int64          `json:"off"`
	Len        int            `json:"len"` // of the payload as sent
	Encoding   string         `json:"encoding,omitempty"`
	Event      string         `json:"event,omitempty"`
	Opcode     string         `json:"opcode,omitempty"`
	Close      *Close         `json:"close,omitempty"`
	Partial    bool           `json:"partial,omitempty"`
	Raw        []byte         `json:"raw"`
	Data       []byte         `json:"data"`
	Tree       []*field.Field `json:"tree"`
	Inner      []innerLine    `json:"inner,omitempty"`
	Error      string         `json:"error"`
}

// An innerLine is an Inner of a Line.
type innerLine struct {
	Path     string         `json:"path"`
	Encoding string         `json:"encoding"`
	Data     []byte         `json:"data"`
	Tree     []*field.Field `json:"tree,omitempty"`
}

// Line makes the contract's line of a frame.
func (v View) Line(f *Frame) Line {
	l := Line{
		V: 1, Dir: f.Dir.String(), Seq: f.Seq, TMs: float64(f.T.Nanoseconds()) / 1e6,
		Flags: int(f.Flags), Compressed: f.Compressed(), End: f.End != nil, Off: f.Offset, Len: len(f.Raw),
		Encoding: f.Encoding, Event: f.Event, Partial: f.Partial,
		Raw: notNil(f.Raw), Data: notNil(f.Data), Tree: []*field.Field{},
	}
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
	l.Tree = v.Fields(f.Tree)
	for _, in := range f.Inner {
		line := innerLine{Path: f.Tree.PathOf(in.Node).String(), Encoding: in.Encoding, Data: in.Data}
		if in.Tree != nil {
			line.Tree = View{}.Fields(in.Tree)
		}
		l.Inner = append(l.Inner, line)
	}
	return l
}

// Compressed reports whether the frame's payload was compressed.
func (f *Frame) Compressed() bool {
	return f.Opcode&captures.OpCompressed != 0 || f.Encoding != "" || f.Framed && f.Flags&1 != 0
}

// Up reports whether the client sent the frame.
func (f *Frame) Up() bool { return f.Dir == captures.Up }

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
