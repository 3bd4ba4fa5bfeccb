package transfer

import (
	"context"
	"fmt"
	"math"

	"unwire/captures"
)

// Notes maps the IDs of exchanges to their notes.
type Notes map[int64][]captures.Note

// LoadNotes reads all notes of a capture into memory.
func LoadNotes(ctx context.Context, src Source) (Notes, error) {
	list, err := src.Notes(ctx, 0)
	if err != nil {
		return nil, err
	}
	all := make(Notes)
	for _, n := range list {
		all[n.Exchange] = append(all[n.Exchange], n)
	}
	return all, nil
}

// A Note is the JSON form of a note: about an exchange, one of its frames, or a field of that frame.
type Note struct {
	// Kind is whether the note is free text ("note") or a single word such as "star" ("mark").
	Kind captures.NoteKind `json:"kind"`

	// Dir is the direction of the frame that the note is about, "up" or "down"; nil if the note is about the
	// whole exchange.
	Dir *string `json:"dir,omitempty"`
	// Frame is the number of the frame in its direction, from 0; nil if the note is about the whole exchange.
	Frame *int `json:"frame,omitempty"`

	// Path is the path of the field that the note is about; "" for the whole frame.
	Path string `json:"path,omitempty"`
	// Value is the text of the note.
	Value string `json:"value"`
}

// JSON returns the notes about an exchange in their JSON form.
func (all Notes) JSON(id int64) []Note {
	var list []Note
	for _, n := range all[id] {
		t := Note{Kind: n.Kind, Path: n.Path, Value: n.Value}
		if n.Frame != captures.NoFrame {
			dir := n.Dir.String()
			t.Dir, t.Frame = &dir, &n.Frame
		}
		list = append(list, t)
	}
	return list
}

// Place returns the exchange, frame or field that the note is about, in exchange id. It is an error if the note
// is invalid.
func (n *Note) Place(id int64) (captures.Place, error) {
	p := captures.Place{Exchange: id, Frame: captures.NoFrame, Path: n.Path}
	switch {
	case n.Dir == nil && n.Frame == nil:
		return p, nil
	case n.Dir == nil || n.Frame == nil:
		return p, fmt.Errorf("the members dir and frame must be given together")
	case *n.Frame < 0 || *n.Frame > math.MaxInt32:
		return p, fmt.Errorf("frame: the number %d is out of range", *n.Frame)
	}
	switch p.Frame = *n.Frame; *n.Dir {
	case captures.Up.String():
	case captures.Down.String():
		p.Dir = captures.Down
	default:
		return p, fmt.Errorf("the member dir must be up or down, not %q", Clip(*n.Dir))
	}
	return p, nil
}

// PutNotes adds notes that were read from a file to exchange id of a capture. It reports notes that cannot be
// added as problems in rep; place is their position in the file.
//
// Errors: only that of ctx.
func PutNotes(ctx context.Context, to captures.Target, rep *Report, place string, id int64, notes []Note) error {
	for i := range notes {
		p, err := notes[i].Place(id)
		if err == nil && notes[i].Value == "" {
			err = fmt.Errorf("the note is empty")
		}
		if err == nil {
			err = to.PutNote(ctx, captures.Note{Place: p, Kind: notes[i].Kind, Value: notes[i].Value})
		}

		// A cancelled import must not report every note as a problem.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			rep.Problem(place, "notes[%d] is left out: %v", i, err)
		}
	}
	return nil
}
