package query

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/fieldpath"
)

// placeAddress matches the address of a field in a frame.
var placeAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.+#[0-9]{1,18}(?:/part)?/(?:up|down)/[0-9]{1,9})/(.+)$`)
})

// ParsePlace parses the address of an exchange, a frame or a field, each of which can have a note:
// F.uwc#7, F.uwc#7/up/0 or F.uwc#7/up/0/1.2. path is the path of the field, or "". Other texts are taken
// as the path of a capture.
func ParsePlace(s string) (at Address, path string) {
	if m := placeAddress().FindStringSubmatch(s); m != nil {
		s, path = m[1], m[2]
	}
	return ParseAddress(s), path
}

// A NoPlaceError reports that a frame has no field at a path.
type NoPlaceError struct {
	// Address is the address of the exchange or frame.
	Address Address
	// Path is the path of the field that does not exist.
	Path string

	// err is the reason, if the path is invalid.
	err error
}

// Error returns the text.
func (e *NoPlaceError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return fmt.Sprintf("%s: no field %s", e.Address, e.Path)
}

// PlaceOf returns the exchange, frame or field at an address in the form in which notes are stored; path
// is the path of the field, or "". If a conversation was split over several exchanges, the result has the
// exchange that carried the frame.
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

// placeOfFrame returns the place of a whole frame, under which its notes are stored.
func placeOfFrame(at conversation.Resolved, f *decode.Frame) captures.Place {
	if at.Joined != nil {
		o := at.Joined.OriginOf(f)
		return captures.Place{Exchange: o.Exchange, Dir: f.Dir, Frame: o.Seq}
	}
	return captures.Place{Exchange: at.ID, Dir: f.Dir, Frame: f.Seq}
}

// placePath returns the path of a field in a frame in the form in which notes are stored, with the index
// of a repeated element.
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

// Notes are the notes on an exchange or conversation, its frames and fields.
type Notes struct {
	// at is the exchange or conversation.
	at conversation.Resolved

	// list are the notes.
	list []captures.Note
}

// NotesOf returns the notes on an exchange, or on all exchanges of a conversation.
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

// Whole returns the notes on the exchange as a whole.
func (n *Notes) Whole() []*contract.PlaceNote {
	if n == nil {
		return nil
	}
	return placeNotes(n.list, func(t *captures.Note) bool { return t.Frame == captures.NoFrame })
}

// Of returns the notes on a frame and its fields.
func (n *Notes) Of(f *decode.Frame) []*contract.PlaceNote {
	if n == nil || len(n.list) == 0 {
		return nil
	}
	p := placeOfFrame(n.at, f)
	return placeNotes(n.list, func(t *captures.Note) bool {
		return t.Exchange == p.Exchange && t.Frame == p.Frame && t.Dir == p.Dir
	})
}

// placeNotes returns the notes for which is returns true, as objects for JSON output.
func placeNotes(list []captures.Note, is func(*captures.Note) bool) (out []*contract.PlaceNote) {
	for i := range list {
		if is(&list[i]) {
			out = append(out, contract.NewPlaceNote(&list[i]))
		}
	}
	return out
}

// NoteLines returns notes as objects for JSON output, with addresses that 'unwire show' accepts.
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

// AddNotes adds the notes on exchanges to their JSON objects.
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

// NotesAt returns the notes on a capture, an exchange, a frame or a field, and on everything inside it.
// path is the path of the field, or "".
//
// Errors: those of PlaceOf, and a damaged capture.
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
