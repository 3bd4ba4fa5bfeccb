package query

import (
	"cmp"
	"context"

	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/filter"
	"unwire/schema"
)

// ExchangeLines returns the exchanges that a filter selects as objects for JSON output, with their
// relations and notes. defs, which may be nil, are the definitions for filters that depend on message
// types.
//
// Errors: those of Select. For a damaged capture, it returns what can be read together with the damage.
func (c *Capture) ExchangeLines(ctx context.Context, f *filter.Filter, defs *schema.Schema) ([]*contract.Exchange, error) {
	list, err := c.Select(ctx, f, defs)
	if list == nil {
		return nil, err
	}
	lines := make([]*contract.Exchange, len(list.Exchanges))
	related, relatedErr := c.Related(ctx)
	for i := range lines {
		lines[i] = contract.NewExchange(&list.Exchanges[i], related[list.Exchanges[i].ID])
	}
	notesErr := c.AddNotes(ctx, lines)
	edited, editedErr := c.EditedExchanges(ctx)
	for _, l := range lines {
		l.Edited = edited[l.ID]
	}
	return lines, cmp.Or(err, relatedErr, notesErr, editedErr)
}

// A FrameLine is a decoded frame as an object for JSON output.
type FrameLine struct {
	// Address is the address of the frame.
	Address Address

	// Line is the object.
	Line *contract.Frame
}

// EachFrameLine calls do with each frame of an exchange, or with the one frame that the address names.
// choices are field types that the user chose, in addition to those stored in the capture. It returns the
// exchange; nil if there is none.
//
// Errors: those of do, which stop it; noFrameError; ChoiceError; for a damaged capture, the damage, after
// the readable frames.
func (c *Capture) EachFrameLine(ctx context.Context, at Address, defs *schema.Schema, choices []Choice, do func(FrameLine) error) (*decode.Exchange, error) {
	found, damage := c.Resolve(ctx, at.Exchange, at.Part)
	if found.Exchange == nil {
		return nil, damage
	}
	frames := found.Frames
	if at.Frame >= 0 {
		f, err := FrameAt(found.Exchange, at)
		if err != nil {
			return found.Exchange, err
		}
		frames = []decode.Frame{*f}
	}
	// Notes belong to the capture, not to the decoded frames.
	notes, err := c.NotesOf(ctx, found)
	if err != nil {
		return found.Exchange, err
	}

	// Evidence is pooled once for all frames.
	views := c.Views(ctx, found, defs)
	for _, choice := range choices {
		_, fits, err := views.Choose(choice, found.Exchange, frames)
		if err == nil && !fits {
			err = &ChoiceError{Choice: choice.Choice, Unfit: true}
		}
		if err != nil {
			return found.Exchange, err
		}
	}
	for i := range frames {
		f := &frames[i]
		line := contract.NewFrame(found, f, views.Of(found.Call, f.Dir), views.FieldsOf)
		line.Notes = notes.Of(f)
		address := Address{File: at.File, Exchange: at.Exchange, Part: at.Part, Dir: f.Dir, Frame: f.Seq}
		if err := do(FrameLine{address, line}); err != nil {
			return found.Exchange, err
		}
	}
	return found.Exchange, damage
}

// ExplainExchange calls do with the evidence for the type of the field at a path, once for each direction
// in which a frame of the exchange has the field. The address is that of the first such frame. One frame
// for each direction is enough, because the evidence is collected from all messages of the method.
//
// Errors: those of Resolve and FrameAt.
func (c *Capture) ExplainExchange(ctx context.Context, at Address, path Choice, defs *schema.Schema, do func(Address, []contract.Explanation) error) error {
	found, err := c.Resolve(ctx, at.Exchange, at.Part)
	if found.Exchange == nil {
		return err
	}
	frames := found.Frames
	if at.Frame >= 0 {
		f, err := FrameAt(found.Exchange, at)
		if err != nil {
			return err
		}
		frames = []decode.Frame{*f}
	}

	// The evidence is pooled for each direction, so later frames would repeat the explanation.
	views := c.Views(ctx, found, defs)
	var done [2]bool
	for i := range frames {
		f := &frames[i]
		if f.Tree == nil || done[f.Dir&1] || path.HasDir && path.Dir != f.Dir {
			continue
		}
		list := Explain(f.Tree, views.Of(found.Call, f.Dir), path.Path, views.Messages(f.Dir))
		if len(list) == 0 {
			continue
		}
		done[f.Dir&1] = true
		for k := range list {
			list[k].Dir = f.Dir.String()
		}
		address := Address{File: at.File, Exchange: at.Exchange, Part: at.Part, Dir: f.Dir, Frame: f.Seq}
		if err := do(address, list); err != nil {
			return err
		}
	}
	return nil
}
