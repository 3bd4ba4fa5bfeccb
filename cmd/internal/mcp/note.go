package mcp

import (
	"errors"
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
)

// noteTools returns the tool that reads and writes notes.
func noteTools() []tool {
	note := define("note", "Read or write notes", "Reads the notes about a capture, an exchange, a frame or a field, or writes a note. Also works while the capture is being recorded. Same objects as 'unwire note --json'.", notes)
	note.writes = true
	return []tool{note}
}

// noteArguments are the arguments of the tool note.
type noteArguments struct {
	// Address is the argument address: place of the note: F.uwc#7, F.uwc#7/up/0, or F.uwc#7/up/0/1.2 for a field; to
	// read, also a capture.
	Address string `json:"address" jsonschema:"place of the note: F.uwc#7, F.uwc#7/up/0, or F.uwc#7/up/0/1.2 for a field; to read, also a capture"`
	// Text is the argument text: text of the note; it replaces the note at this place.
	Text string `json:"text,omitempty" jsonschema:"text of the note; it replaces the note at this place"`
	// Mark is the argument mark: mark, one word such as star.
	Mark string `json:"mark,omitempty" jsonschema:"mark, one word such as star"`
	// Remove is the argument remove: note, mark or both: remove these.
	Remove string `json:"remove,omitempty" jsonschema:"note, mark or both: remove these"`
	// paging adds the arguments that limit the size of the answer and continue it at a cursor.
	paging
}

// notes implements the tool note: it writes or removes a note if the arguments ask for that, and adds the
// notes at the address to the answer.
func notes(c *call, in noteArguments) error {
	at, path, err := c.shelf.place(in.Address)
	if err != nil {
		return err
	}
	writes := in.Text != "" || in.Mark != "" || in.Remove != ""
	switch {
	case in.Remove != "" && (in.Text != "" || in.Mark != ""):
		return &argumentError{"remove cannot be combined with text or mark"}
	case in.Remove != "" && in.Remove != string(captures.TextNote) && in.Remove != string(captures.MarkNote) && in.Remove != "both":
		return &argumentError{fmt.Sprintf("remove must be note, mark or both, not %q", in.Remove)}
	case in.Mark != "" && len(strings.Fields(in.Mark)) != 1:
		return &argumentError{fmt.Sprintf("mark must be one word, such as star, not %q", in.Mark)}
	case writes && at.Exchange == 0:
		return app.Fail(app.ExitUsage, errors.New("a note needs the address of an exchange, a frame or a field"), "give an exchange, a frame or a field: F.uwc#7, F.uwc#7/up/0 or F.uwc#7/up/0/1.2")
	case writes:
		if err := c.writeNotes(in, at, path); err != nil {
			return err
		}
	}
	return c.with(at.File, "", func(capture *query.Capture) error { return c.addNotes(capture, at, path) })
}

// writeNotes writes or removes the note or mark of a place. It changes the capture itself, not a redacted
// copy.
func (c *call) writeNotes(in noteArguments, at query.Address, path string) (err error) {
	capture, err := c.app.OpenCapture(at.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	place, err := capture.PlaceOf(c.ctx, at, path)
	if err != nil {
		return placeFailure(err, at)
	}
	put := func(kind captures.NoteKind, value string) error {
		return capture.PutNote(c.ctx, captures.Note{Place: place, Kind: kind, Value: value})
	}
	if in.Text != "" || in.Remove == string(captures.TextNote) || in.Remove == "both" {
		if err := put(captures.TextNote, in.Text); err != nil {
			return err
		}
	}
	if in.Mark != "" || in.Remove == string(captures.MarkNote) || in.Remove == "both" {
		return put(captures.MarkNote, in.Mark)
	}
	return nil
}

// addNotes adds to the answer the notes on an exchange, frame or field, and on the frames and fields
// inside it.
func (c *call) addNotes(capture *query.Capture, at query.Address, path string) error {
	list, err := capture.NotesAt(c.ctx, at, path)
	if err != nil {
		return placeFailure(err, at)
	}
	lines, err := capture.NoteLines(c.ctx, list)
	if err != nil {
		return err
	}
	for _, l := range lines {
		// That of a redacted copy is not the one that the user knows.
		l.Address = strings.Replace(l.Address, capture.Path, at.File, 1)
		if err := c.add(placeOfField(query.ParseAddress(l.Address), l.Path), l); err != nil {
			return err
		}
	}
	return nil
}

// placeFailure adds a hint to the error that a capture has no exchange, frame or field at an address.
func placeFailure(err error, at query.Address) error {
	if _, ok := errors.AsType[*query.NoPlaceError](err); ok {
		return app.Fail(app.ExitUsage, err, "a path is field numbers joined by dots, such as 1.2 or 1.2[0].5")
	}
	if query.IsNoFrame(err) {
		return app.Fail(app.ExitInput, err, fmt.Sprintf("show with the address %s#%d lists the frames, which count from 0 in each direction", at.File, at.Exchange))
	}
	return err
}
