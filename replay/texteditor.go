package replay

import (
	"errors"
	"fmt"

	"unwire/captures"
	"unwire/decode/text"
	"unwire/decode/wire"
)

// editText calls Changes.Editor with a frame's message as text, i.e. as JSON or in decode's text
// format, and replaces the message by the edited text. Nothing changes if the text comes back
// unchanged.
func (p *planner) editText() error {
	at := p.frameOf(p.changes.EditFrame)
	if at < 0 {
		return fmt.Errorf("replay: --edit: the frame does not exist; the request has %d frames", len(p.shown.Frames))
	}
	f := &p.shown.Frames[at]
	if f.unread != nil {
		return fmt.Errorf("replay: --edit: client frame %d cannot be edited, only sent unchanged: %w", f.Seq, f.unread)
	}
	shown, name := f.Data, fmt.Sprintf("up-%d.json", f.Seq)
	if !p.isJSON(f) {
		shown = []byte(text.Format(wire.Parse(f.Data, wire.Options{}), p.types[captures.Up]))
		name = fmt.Sprintf("up-%d.txt", f.Seq)
	}
	edited, err := p.changes.Editor(name, shown)
	if err != nil {
		return fmt.Errorf("replay: --edit: %w", err)
	}

	// Text that was not changed is no edit, even if parsing it would give other bytes.
	if string(edited) == string(shown) {
		return nil
	}

	// An empty file means that the editor was aborted.
	data := edited
	if !p.isJSON(f) {
		if data, err = text.Parse(edited); err != nil {
			return fmt.Errorf("replay: --edit: %w", err)
		}
	}
	if len(data) == 0 && len(f.Data) > 0 && len(edited) == 0 {
		return errors.New("replay: --edit: the edited text is empty; --set-raw @N = sends an empty message")
	}
	f.change(data)
	p.shown.Edits = append(p.shown.Edits, fmt.Sprintf("--edit @%d", f.Seq))
	return nil
}
