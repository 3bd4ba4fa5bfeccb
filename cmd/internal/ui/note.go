package ui

import (
	"context"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/query"
)

// noteEndpoints returns the API endpoints about notes and marks.
func noteEndpoints() []endpoint {
	return []endpoint{
		{path: "notes", answer: answerNotes},
		{path: "notes/put", post: true, answer: putNote},
	}
}

// answerNotes implements the endpoint notes. It returns all notes and marks of a capture.
func answerNotes(ctx context.Context, q *request) (any, error) {
	c, err := q.capture()
	if err != nil {
		return nil, err
	}
	list, err := c.Notes(ctx, 0)
	if err != nil {
		return nil, err
	}
	found, err := c.NoteLines(ctx, list)
	if err != nil {
		return nil, err
	}
	out, err := lines(found)
	return map[string]any{"v": 1, "notes": out}, err
}

// putNote implements the endpoint notes/put. It writes, replaces or removes a note or a mark.
func putNote(ctx context.Context, q *request) (any, error) {
	var asked struct {
		// Place is the address behind the capture's name: 7, 7/up/0 or 7/up/0/1.2.
		Place string `json:"place"`
		// Kind is note or mark.
		Kind captures.NoteKind `json:"kind"`
		// Value is the text; "" removes the note.
		Value string `json:"value"`
	}
	if err := q.parse(&asked); err != nil {
		return nil, err
	}
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	c, err := f.open()
	if err != nil {
		return nil, err
	}
	at, path := query.ParsePlace("F.uwc#" + asked.Place)
	switch {
	case at.Exchange == 0:
		return nil, badRequest("%q is not an address: it must be such as 7, 7/up/0 or 7/up/0/1.2", asked.Place)
	case asked.Kind != captures.TextNote && asked.Kind != captures.MarkNote:
		return nil, badRequest("the kind must be %s or %s", captures.TextNote, captures.MarkNote)
	case asked.Kind == captures.MarkNote && len(strings.Fields(asked.Value)) > 1:
		return nil, badRequest("a mark must be one word, such as star")
	}
	at.File = f.path
	place, err := c.PlaceOf(ctx, at, path)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if err := c.PutNote(ctx, captures.Note{Place: place, Kind: asked.Kind, Value: strings.TrimSpace(asked.Value)}); err != nil {
		return nil, err
	}
	return map[string]any{"v": 1}, nil
}
