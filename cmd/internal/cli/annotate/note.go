package annotate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
)

type noteFlags struct {
	mark, remove string
	json         bool
}

func noteCommand(a *app.App) *cobra.Command {
	var f noteFlags
	cmd := &cobra.Command{
		Use:   "note F.uwc [ADDRESS [TEXT]]",
		Short: "Write notes and marks on exchanges, frames and fields",
		Long: `note keeps a text or a mark in the capture, for an exchange, a frame or a field.
Without a text it prints the notes of the address, or of the whole capture. It also
works while the capture is being recorded.

ADDRESS is 7 for an exchange, 7/up/0 for a frame, and 7/up/0/1.2 for a field of it.
An address has one note and one mark; a new one replaces the old one. --remove
removes both, --remove=note or --remove=mark one of them. show prints notes next to
what they are about, ls has a column for them, and grep finds their text. Notes are
part of the capture: whoever gets the file can read them.`,
		Example: `  unwire note F.uwc 7 'the login that fails'
  unwire note F.uwc 7/up/0/1.2 'a session id?'
  unwire note F.uwc 7 --mark star
  unwire note F.uwc
  unwire note F.uwc 7/up/0/1.2 --remove
  unwire note F.uwc 7 --remove=mark`,
		Args: app.ArgsBetween(1, "F.uwc", "ADDRESS", "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runNote(cmd.Context(), a, f, args, cmd.Flags().Changed("mark"))
		},
	}
	cmd.Flags().StringVar(&f.mark, "mark", "", "mark it with a word, such as star")
	cmd.Flags().StringVar(&f.remove, "remove", "", "remove the `note`, the mark, or both of the address (default: both)")
	cmd.Flags().Lookup("remove").NoOptDefVal = removeBoth
	cmd.Flags().BoolVar(&f.json, "json", false, "print a JSON object for each note")
	return cmd
}

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
	switch {
	case f.remove != "" && (text != nil || marked):
		return app.Usagef("--remove goes neither with a text nor with --mark")
	case marked && len(strings.Fields(f.mark)) != 1:
		return app.Usagef("a mark is one word, such as star, not %q; --remove removes a mark", f.mark)
	case text == nil && !marked && f.remove == "":
		return printNotes(ctx, a, at, path, f.json)
	case at.Exchange == 0:
		return app.Fail(app.ExitUsage, fmt.Errorf("%s: a note about what?", at.File), "name an exchange, a frame or a field: 7, 7/up/0 or 7/up/0/1.2")
	}
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

// noteArgs reads "F.uwc ADDRESS TEXT", where the address may be part of the first:
// F.uwc#7/up/0.
func noteArgs(args []string) (at query.Address, path string, text *string, err error) {
	at, path = query.ParsePlace(args[0])
	rest := args[1:]
	if at.Exchange == 0 && len(rest) > 0 {
		at, path = query.ParsePlace(args[0] + "#" + rest[0])
		if at.Exchange == 0 {
			return at, "", nil, app.Fail(app.ExitUsage, fmt.Errorf("%q is no address", rest[0]), "an address is 7, 7/up/0 or 7/up/0/1.2: 'unwire ls' lists the exchanges")
		}
		rest = rest[1:]
	}
	switch {
	case len(rest) > 1:
		return at, "", nil, app.Usagef("the address is given twice: %s and %s", args[0], args[1])
	case len(rest) == 1 && rest[0] == "":
		return at, "", nil, app.Usagef("a note wants a text; --remove removes it")
	case len(rest) == 1:
		text = &rest[0]
	}
	return at, path, text, nil
}

// placeError explains why there is no such place.
func placeError(err error, at query.Address) error {
	if _, ok := errors.AsType[*query.NoPlaceError](err); ok {
		return app.Fail(app.ExitUsage, err, "paths are field numbers joined by dots, as in 1.2 or 1.2[0].5")
	}
	if errors.Is(err, captures.ErrNoExchange) {
		return err
	}
	return app.Fail(app.ExitInput, err, fmt.Sprintf("'unwire show %s %d' lists the frames; they are numbered from 0", at.File, at.Exchange))
}

// removeBoth is what --remove removes without a value.
const removeBoth = "both"

// removeNotes removes what is noted about one place: what --remove names.
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
		a.Say("unwire: %s has no %s", term.Clean(at.String()), what)
	}
	return nil
}

// printNotes prints the notes about a place and what is in it.
func printNotes(ctx context.Context, a *app.App, at query.Address, path string, asJSON bool) error {
	return withCapture(a, at.File, func(c *query.Capture) error {
		list, err := notesAt(ctx, c, at, path)
		if err != nil {
			return err
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

// notesAt are the notes about a place and what is in it.
func notesAt(ctx context.Context, c *query.Capture, at query.Address, path string) ([]captures.Note, error) {
	if at.Exchange == 0 {
		return c.Notes(ctx, 0)
	}
	place, err := c.PlaceOf(ctx, at, path)
	if err != nil {
		return nil, placeError(err, at)
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
