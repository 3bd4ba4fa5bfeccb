package replay

import (
	"errors"
	"fmt"
	"slices"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/replay/connection"
	"unwire/replay/edit"
	"unwire/replay/live"
)

// buildFrames adds the client's captured frames to the plan. Each is given the server's frame that it
// responds to, i.e. that it waits for when it is sent.
func (p *planner) buildFrames(body []byte) error {
	p.links = live.NewLinks(p.captured, p.types)
	turns := p.links.Turns()
	if err := p.links.BindByHand(turns, p.changes.Answers); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	// Planned frames are large, so the list must not grow step by step.
	p.shown.Frames = slices.Grow(p.shown.Frames, len(turns))
	for i := range p.captured.Frames {
		f := &p.captured.Frames[i]
		if f.Dir != captures.Up {
			continue
		}
		// After a truncated frame, the server would take the next frame for its rest.
		if f.Partial && f.Framed && len(p.shown.Frames) > 0 {
			p.shown.Warnings = append(p.shown.Warnings, fmt.Sprintf("client frame %d was cut off after %d bytes when it was recorded, so unwire does not send it", f.Seq, f.Len))
			continue
		}
		pf := PlanFrame{
			Seq: f.Seq, Flags: uint8(f.Flags), Compressed: f.Encoding != "", Data: f.Data,
			framed: f.Framed, encoding: f.Encoding, wire: p.asCaptured(f, body), unread: f.Err, proto: f.Tree != nil, Opcode: f.Opcode,
		}
		if live.IsMessage(f) {
			pf.Turn, turns = turns[0], turns[1:]
		}
		p.shown.Frames = append(p.shown.Frames, pf)
	}
	if len(p.shown.Frames) == 0 && len(body) > 0 && !p.overConnection() {
		p.shown.Frames = append(p.shown.Frames, PlanFrame{Data: body, wire: body})
	}
	return nil
}

// asCaptured returns the bytes of a frame, envelope included, as they occur in the captured body. It
// returns nil if they cannot be sent as they are: after transcoding, for grpc-web-text (base64), and
// for a GET request.
func (p *planner) asCaptured(f *decode.Frame, body []byte) []byte {
	switch {
	case p.recoded || p.shown.Protocol == decode.GRPCWebText || p.shown.Protocol == decode.ConnectGet:
		return nil
	case connection.IsRaw(p.captured):
		return f.Data
	case !f.Framed && !p.overConnection():
		return body
	case f.Offset < 0 || f.Offset+int64(f.Len) > int64(len(body)):
		return nil
	}
	return body[f.Offset : f.Offset+int64(f.Len)]
}

// edit applies the edits to the planned frames, in order.
func (p *planner) edit() error {
	for _, e := range p.changes.Edits {
		inserted, err := p.editOne(e)
		if err != nil {
			return fmt.Errorf("replay: %s: %w", e, err)
		}
		p.shown.Edits = append(p.shown.Edits, e.String())
		if inserted {
			p.shown.Warnings = append(p.shown.Warnings, fmt.Sprintf("%s: the recorded message does not have this field, so unwire adds it", e))
		}
	}
	if p.changes.Editor != nil {
		if err := p.editText(); err != nil {
			return err
		}
	}
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		if f.Len = len(f.Data); f.unread != nil {
			f.Len = len(f.wire)
			p.shown.Warnings = append(p.shown.Warnings, fmt.Sprintf("client frame %d could not be parsed completely, so unwire sends it as recorded: %s", f.Seq, f.unread))
		}
	}
	return nil
}

// editOne applies one edit to the frame that it names. inserted means that the edited field was missing
// and has been added.
func (p *planner) editOne(e edit.Edit) (inserted bool, err error) {
	at := p.frameOf(e.Frame)
	if at < 0 {
		if e.Frame == edit.FirstFrame {
			return false, errors.New("the request has no message")
		}
		return false, fmt.Errorf("client frame %d does not exist; the request has %d frames", e.Frame, len(p.shown.Frames))
	}
	f := &p.shown.Frames[at]
	if e.DeletesFrame() {
		if !f.framed && p.split == nil && !p.overConnection() {
			return false, errors.New("the request consists of one message, which cannot be deleted")
		}
		p.shown.Frames = append(p.shown.Frames[:at:at], p.shown.Frames[at+1:]...)
		return false, nil
	}

	// A message that could not be decoded completely can only be replaced as a whole.
	switch {
	case e.ReplacesMessage():
		f.unread = nil
	case f.unread != nil:
		return false, fmt.Errorf("client frame %d cannot be edited, only sent unchanged or replaced as a whole: %w", f.Seq, f.unread)
	}
	data, inserted, err := e.Apply(f.Data, p.isJSON(f), p.types[captures.Up])
	if err != nil {
		return inserted, err
	}
	f.change(data)
	return inserted, nil
}

// frameOf returns the index in the plan of frame number seq. For edit.FirstFrame it returns that of the
// first message. The result is -1 if there is none.
func (p *planner) frameOf(seq int) int {
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		if seq == f.Seq || seq == edit.FirstFrame && envelope.Flags(f.Flags)&(envelope.EndStream|envelope.Trailer) == 0 {
			return i
		}
	}
	return -1
}

// refreshBodies replaces ids in messages. An id that was newly generated for a header, and that also
// occurs in a message, is replaced by the same new id there.
func (p *planner) refreshBodies(r *refresher) {
	for i := range p.shown.Frames {
		f := &p.shown.Frames[i]
		if f.unread != nil {
			continue
		}
		if data, changed := r.body(f.Data); changed {
			f.Data, f.fresh = data, true
			p.refreshed(fmt.Sprintf("%s/%d", captures.Up, f.Seq))
		}
	}
}
