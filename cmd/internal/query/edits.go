package query

import (
	"context"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/diff"
)

// Edits are the differences that rewriting rules made between the received and the forwarded bytes of an
// exchange. The methods of a nil Edits report no differences.
type Edits struct {
	// ex is the exchange, decoded from the received bytes.
	ex *decode.Exchange

	// list are the replaced ranges of the bodies.
	list []captures.Edit

	// heads are the heads (status and headers) that were forwarded instead of the received ones.
	heads []captures.ForwardedHead

	// starts are the offsets of the frames in the body, by direction and frame number.
	starts [2][]int64

	// ends are the sizes of the bodies, by direction.
	ends [2]int64
}

// EditsOf returns what rewriting rules changed in an exchange; nil if they changed nothing.
func (c *Capture) EditsOf(ctx context.Context, ex *decode.Exchange) (*Edits, error) {
	list, err := c.Store.Edits(ctx, ex.ID)
	if err != nil {
		return nil, err
	}
	heads, err := c.ForwardedHeads(ctx, ex.ID)
	if err != nil || len(list) == 0 && len(heads) == 0 {
		return nil, err
	}
	e := &Edits{ex: ex, list: list, heads: heads, ends: [2]int64{ex.BytesUp, ex.BytesDown}}
	var at [2]int64
	for i := range ex.Frames {
		f := &ex.Frames[i]
		start := f.Offset
		if ex.Transport != captures.HTTP || !f.Framed && f.Event == "" {
			start = at[f.Dir]
		}
		e.starts[f.Dir] = append(e.starts[f.Dir], start)
		at[f.Dir] = start + int64(max(f.Len, len(f.Raw)))
	}
	return e, nil
}

// Heads returns the heads (status and headers) that were forwarded instead of the received ones.
func (e *Edits) Heads() []captures.ForwardedHead {
	if e == nil {
		return nil
	}
	return e.heads
}

// Of returns what was forwarded instead of a frame; nil if the frame was forwarded unchanged.
func (e *Edits) Of(f *decode.Frame) *contract.Edited {
	if e == nil || f.Seq >= len(e.starts[f.Dir]) {
		return nil
	}
	starts := e.starts[f.Dir]
	start, end := starts[f.Seq], max(e.ends[f.Dir], starts[len(starts)-1]+1)
	if f.Seq+1 < len(starts) {
		end = starts[f.Seq+1]
	}
	last := f.Seq+1 == len(starts)
	var out *contract.Edited
	for i := range e.list {
		edit := &e.list[i]
		if edit.Dir != f.Dir || edit.Start >= end && !last || edit.End <= start && (edit.Start != edit.End || edit.Start < start) {
			continue
		}
		if out == nil {
			out = &contract.Edited{Rule: edit.Rule}
		}
		out.Forwarded = append(out.Forwarded, edit.Data...)
	}
	if out != nil {
		out.Frames = e.decode(f.Dir, out.Forwarded, f.Opcode)
	}
	return out
}

// Added returns what was forwarded in a direction in which nothing was received, such as a response that
// a rule made.
func (e *Edits) Added() (list []*contract.Edited) {
	if e == nil {
		return nil
	}
	for i := range e.list {
		edit := &e.list[i]
		if len(e.starts[edit.Dir]) == 0 && len(edit.Data) > 0 {
			list = append(list, &contract.Edited{Dir: edit.Dir.String(), Rule: edit.Rule, Forwarded: edit.Data, Frames: e.decode(edit.Dir, edit.Data, 0)})
		}
	}
	return list
}

// decode returns the frames in forwarded bytes. op is the opcode of a WebSocket frame.
func (e *Edits) decode(dir captures.Direction, data []byte, op captures.Opcode) (frames []decode.Frame) {
	ex := e.ex.Exchange
	for _, h := range e.heads {
		if h.Dir == captures.Down {
			ex.Status, ex.ResponseHeaders = h.Status, h.Headers
		}
	}
	s := decode.NewStream(&ex, decode.Options{})
	if len(data) == 0 {
		return nil
	}
	fed := s.Feed(captures.Chunk{Dir: dir, Data: data, Opcode: op | captures.OpFinal})
	for _, f := range append(fed, s.Close()...) {
		if f.Dir == dir {
			frames = append(frames, f)
		}
	}
	return frames
}

// DiffForwarded compares the received with the forwarded bytes of the exchange or frame at an address.
func DiffForwarded(ctx context.Context, at string, o DiffOptions) ([]Comparison, error) {
	a := ParseAddress(at)
	if a.Exchange == 0 {
		return nil, &DiffError{Problem: Unlike, text: "--forwarded needs an exchange or a frame, such as F.uwc#7"}
	}
	c, err := o.Open(a.File)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	received, err := decode.Decode(ctx, c.Store, a.Exchange, decode.Options{Split: c.Splitting})
	if err != nil {
		return nil, err
	}
	forwarded, err := decode.Decode(ctx, c.Forwarded(), a.Exchange, decode.Options{Split: c.Splitting})
	if err != nil {
		return nil, err
	}
	names := namer{defs: o.Definitions, call: received.Call}
	if a.Frame < 0 {
		return []Comparison{{Changes: diff.Exchanges(received, forwarded, o.Options), names: names}}, nil
	}
	l, err := FrameAt(received, a)
	if err != nil {
		return nil, &DiffError{Problem: NoFrame, At: a, text: err.Error()}
	}
	edits, err := c.EditsOf(ctx, received)
	if err != nil {
		return nil, err
	}
	after := diff.Message{}
	if e := edits.Of(l); e == nil {
		after = diff.Message{Data: l.Data}
	} else if len(e.Frames) > 0 {
		after = diff.Message{Data: e.Frames[0].Data}
	}
	names.root = names.frameType(received.Call, l.Dir)
	return []Comparison{{Changes: diff.Compare(diff.Message{Data: l.Data}, after, o.Options), names: names}}, nil
}
