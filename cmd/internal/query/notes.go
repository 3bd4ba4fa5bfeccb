package query

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/fieldpath"
)

var placeAddress = regexp.MustCompile(`^(.+#[0-9]{1,18}(?:/part)?/(?:up|down)/[0-9]{1,9})/(.+)$`)

// ParsePlace reads the address of a place that can have a note: F.uwc#7, F.uwc#7/up/0, or
// F.uwc#7/up/0/1.2 for a field. What is none names a file.
func ParsePlace(s string) (at Address, path string) {
	if m := placeAddress.FindStringSubmatch(s); m != nil {
		s, path = m[1], m[2]
	}
	return ParseAddress(s), path
}

// A NoPlaceError says that a frame has no field of a path.
type NoPlaceError struct {
	// Address is the exchange or frame, and Path the path that leads nowhere.
	Address Address
	Path    string
	err     error
}

func (e *NoPlaceError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return fmt.Sprintf("%s: no field %s", e.Address, e.Path)
}

// PlaceOf returns the place at an address, with a field's path or "". A frame of a
// conversation in pieces is that of the exchange that carried it.
//
// Errors: captures.ErrNoExchange, noFrameError, NoPlaceError, those of decoding.
func (c *Capture) PlaceOf(ctx context.Context, at Address, path string) (p captures.Place, err error) {
	p = captures.Place{Exchange: at.Exchange, Frame: captures.NoFrame}
	if at.Frame < 0 {
		_, err := c.Exchange(ctx, at.Exchange)
		return p, err
	}
	found, err := c.Resolve(ctx, at.Exchange, at.Part)
	if found.Exchange == nil {
		return p, err
	}
	f, err := FrameAt(found.Exchange, at)
	if err != nil {
		return p, err
	}
	p = placeOfFrame(found, f)
	p.Path, err = placePath(f, at, path)
	return p, err
}

// placeOfFrame is the place of a frame as a whole.
func placeOfFrame(at conversation.Resolved, f *decode.Frame) captures.Place {
	if at.Joined != nil {
		o := at.Joined.OriginOf(f)
		return captures.Place{Exchange: o.Exchange, Dir: f.Dir, Frame: o.Seq}
	}
	return captures.Place{Exchange: at.ID, Dir: f.Dir, Frame: f.Seq}
}

// placePath is the path of a field of a frame as it is stored: with the index of an
// element, if the path means one.
func placePath(f *decode.Frame, at Address, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if f.Tree == nil {
		// Fields of JSON are found by their names.
		p, err := fieldpath.ParsePattern(path)
		if err != nil {
			return "", &NoPlaceError{at, path, err}
		}
		return p.String(), nil
	}
	p, err := fieldpath.ParseNumbers(path)
	if err != nil {
		return "", &NoPlaceError{at, path, err}
	}
	nodes := f.Tree.Find(p)
	switch {
	case len(nodes) == 0 || nodes[0] == 0:
		return "", &NoPlaceError{at, path, nil}
	case len(nodes) == 1:
		return f.Tree.PathOf(nodes[0]).String(), nil
	}
	return p.String(), nil
}

// Notes are the notes about what a number of a capture stands for.
type Notes struct {
	at   conversation.Resolved
	list []captures.Note
}

// NotesOf returns the notes of an exchange, or of all pieces of a conversation.
func (c *Capture) NotesOf(ctx context.Context, at conversation.Resolved) (*Notes, error) {
	if at.Joined == nil {
		list, err := c.Notes(ctx, at.ID)
		return &Notes{at, list}, err
	}
	list, err := c.Notes(ctx, 0)
	pieces := map[int64]bool{}
	for _, id := range slices.Concat(at.Joined.Heads, at.Joined.Appends) {
		pieces[id] = true
	}
	list = slices.DeleteFunc(list, func(n captures.Note) bool { return !pieces[n.Exchange] })
	return &Notes{at, list}, err
}

// Whole returns the notes about exchanges as a whole.
func (n *Notes) Whole() []*contract.PlaceNote {
	if n == nil {
		return nil
	}
	return placeNotes(n.list, func(t *captures.Note) bool { return t.Frame == captures.NoFrame })
}

// Of returns the notes about a frame and its fields.
func (n *Notes) Of(f *decode.Frame) []*contract.PlaceNote {
	if n == nil || len(n.list) == 0 {
		return nil
	}
	p := placeOfFrame(n.at, f)
	return placeNotes(n.list, func(t *captures.Note) bool {
		return t.Exchange == p.Exchange && t.Frame == p.Frame && t.Dir == p.Dir
	})
}

func placeNotes(list []captures.Note, is func(*captures.Note) bool) (out []*contract.PlaceNote) {
	for i := range list {
		if is(&list[i]) {
			out = append(out, contract.NewPlaceNote(&list[i]))
		}
	}
	return out
}

// NoteLines returns notes as lines, with addresses at which 'show' finds their places.
func (c *Capture) NoteLines(ctx context.Context, list []captures.Note) ([]*contract.Note, error) {
	if len(list) == 0 {
		return nil, nil
	}
	joined, err := conversation.FindAll(ctx, c.Store)
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return nil, err
	}
	lines := make([]*contract.Note, len(list))
	for i := range list {
		n := &list[i]
		at := Address{File: c.Path, Exchange: n.Exchange, Dir: n.Dir, Frame: n.Frame}
		at.Part = n.Frame != captures.NoFrame && joined.Head(n.Exchange) == n.Exchange
		lines[i] = contract.NewNote(at.String(), n)
	}
	return lines, nil
}

// AddNotes adds the notes of exchanges to their lines.
func (c *Capture) AddNotes(ctx context.Context, lines []*contract.Exchange) error {
	list, err := c.Notes(ctx, 0)
	if err != nil || len(list) == 0 {
		return err
	}
	byID := make(map[int64]*contract.Exchange, len(lines))
	for _, l := range lines {
		byID[l.ID] = l
	}
	for i := range list {
		if l := byID[list[i].Exchange]; l != nil {
			l.AddNote(&list[i])
		}
	}
	return nil
}

// NotesAt returns the notes about a place and what is in it: about a capture, an exchange, a frame,
// or a field of it with a path.
//
// Errors: those of PlaceOf, and of a damaged capture.
func (c *Capture) NotesAt(ctx context.Context, at Address, path string) ([]captures.Note, error) {
	if at.Exchange == 0 {
		return c.Notes(ctx, 0)
	}
	place, err := c.PlaceOf(ctx, at, path)
	if err != nil {
		return nil, err
	}
	all, err := c.Notes(ctx, place.Exchange)
	var list []captures.Note
	for _, n := range all {
		inside := place.Frame == captures.NoFrame || n.Frame == place.Frame && n.Dir == place.Dir
		if inside && (place.Path == "" || n.Path == place.Path) {
			list = append(list, n)
		}
	}
	return list, err
}
