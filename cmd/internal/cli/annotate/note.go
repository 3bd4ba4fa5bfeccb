package annotate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/safetext"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
)

// noteFlags are the values of the flags of 'unwire note'.
type noteFlags struct {
	// mark is the mark to store; "" without --mark.
	mark string

	// remove is "note", "mark" or "both"; "" without --remove.
	remove string

	// json prints notes as JSON Lines.
	json bool
}

// noteCommand returns the command 'unwire note'.
func noteCommand(a *app.App) *cobra.Command {
	var f noteFlags
	cmd := &cobra.Command{
		Use:   "note F.uwc [ADDRESS [TEXT]]",
		Short: "Write notes and marks on exchanges, messages and fields",
		Long: `note writes a note (the text TEXT), or a mark such as the word star, into the
capture F.uwc (a file with recorded traffic). The note belongs to an exchange (a request
with its answer), a message or a field. Without TEXT, note prints the existing notes of
ADDRESS; without ADDRESS, note prints all notes of the capture. You can also write notes
while the capture is being recorded.

ADDRESS is 7 for exchange 7, 7/up/0 for the first message that the client sent in
exchange 7, and 7/up/0/1.2 for field 1.2 of this message. Each address has at most one
note and one mark; a new note replaces the old note, and a new mark the old mark.
--remove removes the note and the mark of ADDRESS, --remove=note only the note,
--remove=mark only the mark. 'unwire show' and 'unwire ls' print notes, and 'unwire
grep' searches the notes. Everybody who gets the capture file can read its notes.

While 'unwire capture' holds a message back for 'unwire intercept', the message has the
mark held.`,
		Example: `  # Write a note on exchange 7
  unwire note F.uwc 7 'the login that fails'
  # Write a note on field 1.2 of the first message that the client sent
  unwire note F.uwc 7/up/0/1.2 'a session id?'
  # Mark exchange 7 with a star
  unwire note F.uwc 7 --mark star
  # List all notes and marks
  unwire note F.uwc
  # Remove the note and the mark of a field
  unwire note F.uwc 7/up/0/1.2 --remove
  # Remove only the mark of exchange 7, and keep its note
  unwire note F.uwc 7 --remove=mark`,
		Args: app.ArgsBetween(1, "F.uwc", "ADDRESS", "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runNote(cmd.Context(), a, f, args, cmd.Flags().Changed("mark"))
		},
	}
	cmd.Flags().StringVar(&f.mark, "mark", "", "store this mark for ADDRESS: a single word, such as star")
	cmd.Flags().StringVar(&f.remove, "remove", "", "remove what is stored for ADDRESS; WHAT is note, mark or both (default: both)")
	cmd.Flags().Lookup("remove").NoOptDefVal = removeBoth
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each note")
	return cmd
}

// runNote executes 'unwire note': it writes, removes or prints notes. marked reports whether --mark was
// given.
func runNote(ctx context.Context, a *app.App, f noteFlags, args []string, marked bool) error {
	at, path, text, err := noteArgs(args)
	if err != nil {
		return err
	}
	if f.remove != "" {
		if err := app.OneOf("--remove", f.remove, string(captures.TextNote), string(captures.MarkNote), removeBoth); err != nil {
			return err
		}
	}

	// Only a change of notes needs an address; without one, all notes are printed.
	switch {
	case f.remove != "" && (text != nil || marked):
		return app.Usagef("--remove cannot be used with TEXT or --mark")
	case marked && len(strings.Fields(f.mark)) != 1:
		return app.Usagef("a mark must be one word, such as star, not %q; --remove=mark removes a mark", f.mark)
	case text == nil && !marked && f.remove == "":
		return printNotes(ctx, a, at, path, f.json)
	case at.Exchange == 0:
		return app.Fail(app.ExitUsage, fmt.Errorf("a note needs the address of an exchange, not only the capture %s", at.File), "give the address of an exchange, a frame or a field: 7, 7/up/0 or 7/up/0/1.2")
	}

	// The place must exist, so that a note cannot refer to a frame that was never recorded.
	return change(ctx, a, at.File, func(c *query.Capture) error {
		place, err := c.PlaceOf(ctx, at, path)
		if err != nil {
			return placeError(err, at)
		}
		var list []captures.Note
		if text != nil {
			list = append(list, captures.Note{Place: place, Kind: captures.TextNote, Value: *text})
		}
		if marked {
			list = append(list, captures.Note{Place: place, Kind: captures.MarkNote, Value: f.mark})
		}
		if f.remove != "" {
			return removeNotes(ctx, a, c, at, place, f.remove)
		}
		for _, n := range list {
			if err := c.PutNote(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteArgs parses the arguments "F.uwc ADDRESS TEXT"; the address may also be part of the first argument,
// as in F.uwc#7/up/0. path is the path of a field, "" if the address has none; text is nil if it is
// missing.
func noteArgs(args []string) (at query.Address, path string, text *string, err error) {
	at, path = query.ParsePlace(args[0])
	rest := args[1:]
	if at.Exchange == 0 && len(rest) > 0 {
		at, path = query.ParsePlace(args[0] + "#" + rest[0])
		if at.Exchange == 0 {
			return at, "", nil, app.Fail(app.ExitUsage, fmt.Errorf("%q is not an address in a capture", rest[0]), "an address is 7 (exchange), 7/up/0 (frame) or 7/up/0/1.2 (field); 'unwire ls' lists the exchanges")
		}
		rest = rest[1:]
	}
	switch {
	case len(rest) > 1:
		return at, "", nil, app.Usagef("the address is given twice: %s and %s", args[0], args[1])
	case len(rest) == 1 && rest[0] == "":
		return at, "", nil, app.Usagef("the text of a note must not be empty; --remove removes a note")
	case len(rest) == 1:
		text = &rest[0]
	}
	return at, path, text, nil
}

// placeError adds a hint to the error that a capture has no exchange, frame or field at an address.
func placeError(err error, at query.Address) error {
	if _, ok := errors.AsType[*query.NoPlaceError](err); ok {
		return app.Fail(app.ExitUsage, err, "a path is field numbers joined by dots, such as 1.2 or 1.2[0].5")
	}
	if errors.Is(err, captures.ErrNoExchange) || errors.Is(err, captures.ErrDamaged) {
		return err
	}
	return app.Fail(app.ExitInput, err, fmt.Sprintf("'unwire show %s %d' lists the frames, which are numbered from 0", safetext.ShellFile(at.File), at.Exchange))
}

// removeBoth is the value of --remove if the flag is given without a value: it removes both the note and
// the mark.
const removeBoth = "both"

// removeNotes removes the note, the mark or both from an exchange, a frame or a field. place is the
// resolved address at, and what is the value of --remove.
func removeNotes(ctx context.Context, a *app.App, c *query.Capture, at query.Address, place captures.Place, what string) error {
	list, err := c.Notes(ctx, place.Exchange)
	if err != nil {
		return err
	}
	removed := 0
	for _, n := range list {
		if n.Place != place || what != removeBoth && what != string(n.Kind) {
			continue
		}
		n.Value = ""
		if err := c.PutNote(ctx, n); err != nil {
			return err
		}
		removed++
	}
	if removed == 0 {
		if what == removeBoth {
			what = string(captures.TextNote)
		}
		name := at.String()
		if place.Path != "" {
			name += "/" + place.Path
		}
		a.Say("unwire: %s has no %s", term.Clean(name), what)
	}
	return nil
}

// printNotes prints the notes on the exchange, frame or field at an address, and on all frames and fields
// inside it.
func printNotes(ctx context.Context, a *app.App, at query.Address, path string, asJSON bool) error {
	return withCapture(a, at.File, func(c *query.Capture) error {
		list, err := c.NotesAt(ctx, at, path)
		if err != nil {
			return placeError(err, at)
		}
		lines, err := c.NoteLines(ctx, list)
		if err != nil {
			return err
		}
		if asJSON {
			for _, l := range lines {
				if err := a.Print(l); err != nil {
					return err
				}
			}
			return nil
		}

		// Notes are foreign text, which must not control the terminal.
		rows := make([][]string, len(lines))
		for i, l := range lines {
			rows[i] = []string{term.Clean(l.Address), term.Clean(l.Path), term.Clean(string(l.Kind)), term.Clean(l.Value)}
		}
		return a.Out.Table(term.Table{Rows: rows, Columns: []term.Column{
			{Name: "ADDRESS", Shorten: term.Start, Min: 12},
			{Name: "PATH", Shorten: term.Middle, Min: 12, Drop: 2},
			{Name: "KIND", Drop: 1},
			{Name: "TEXT", Shorten: term.End, Min: 24},
		}})
	})
}
