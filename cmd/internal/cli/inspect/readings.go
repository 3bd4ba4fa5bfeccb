package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/kind"
)

// parseChosen parses a value of --as that chooses the type of one field, such as 3.1:float.
func parseChosen(s string) (query.Choice, error) {
	c, err := query.ParseChoice(s)
	if err != nil {
		return c, app.Fail(app.ExitUsage, fmt.Errorf("--as: %w", err), "examples: --as 1.2:string, --as down:1.2:string")
	}
	return c, nil
}

// parseChosenAll parses the values of --as: at most one that names the format of the whole input, and
// any number of choices for single fields.
func parseChosenAll(words []string) (whole string, list []query.Choice, err error) {
	for _, w := range words {
		if !strings.Contains(w, ":") {
			if whole != "" {
				return "", nil, app.Usagef("--as gives two different framings: %s and %s", whole, w)
			}
			whole = w
			continue
		}
		c, err := parseChosen(w)
		if err != nil {
			return "", nil, err
		}
		list = append(list, c)
	}
	return whole, list, nil
}

// plainChoices converts chosen field types for use with a file. A choice for one direction is an error,
// because a file has no directions.
func plainChoices(list []query.Choice) ([]kind.Choice, error) {
	var out []kind.Choice
	for _, c := range list {
		if c.HasDir {
			return nil, app.Usagef("--as %s:%s: a direction (up, down) can be given only for a capture, not for a file", c.Dir, c.Choice)
		}
		out = append(out, c.Choice)
	}
	return out, nil
}

// choose applies the field types that the user chose (--as) to v, and stores them in the capture unless
// once is set. It is an error if no frame has the field. If no value of the field can be read as the
// chosen type, choose prints a remark and does not store the choice.
func choose(ctx context.Context, a *app.App, c *query.Capture, ex *decode.Exchange, v *query.Views, list []query.Choice, frames []decode.Frame, once bool) error {
	for _, choice := range list {
		r, fits, err := v.Choose(choice, ex, frames)
		if err != nil {
			return choiceError(err)
		}
		switch {
		case once:
		case !fits:
			a.Say("unwire: %s is not stored, because no value can be read as this type", choice.Choice)
		default:
			remember(ctx, a, c, r)
		}
	}
	return nil
}

// remember stores a chosen field type in the capture. If the capture cannot be written to, it only prints
// a remark.
func remember(ctx context.Context, a *app.App, c *query.Capture, r captures.Reading) {
	if err := c.PutReading(ctx, r); err != nil {
		why := err.Error()
		if errors.Is(err, captures.ErrInUse) {
			why = "the capture is being recorded"
		}
		a.Say("unwire: the type applies to this output only; it could not be stored in %s: %s", term.Clean(c.Path), term.Clean(why))
	}
}

// choiceError converts the error about a chosen field type that cannot be applied to a usage error with a
// hint.
func choiceError(err error) error {
	hint := "a path is field numbers joined by dots, such as 1.2 or 1.2[0].5"
	if ce, ok := errors.AsType[*query.ChoiceError](err); ok && ce.Both {
		hint = ""
	}
	return app.Fail(app.ExitUsage, fmt.Errorf("--as %w", err), hint)
}

// listReadings prints the choices of field types that a capture stores.
func listReadings(ctx context.Context, a *app.App, file string, asJSON bool) error {
	capture, err := a.OpenCapture(file)
	if err != nil {
		return err
	}
	defer capture.Close()
	list, err := capture.Readings(ctx, "")
	if err != nil {
		return err
	}
	if asJSON {
		for _, r := range list {
			if err := a.Print(&contract.Reading{Method: r.Method, Dir: r.Dir.String(), Path: r.Path, Type: r.Type}); err != nil {
				return err
			}
		}
		return nil
	}

	// A table for people; the paths are shortened in the middle, where they are most alike.
	rows := make([][]string, len(list))
	for i, r := range list {
		rows[i] = []string{term.Clean(r.Method), r.Dir.Sender(), term.Clean(r.Path), term.Clean(r.Type)}
	}
	return a.Out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "METHOD", Shorten: term.Name, Min: 20},
		{Name: "SENT BY"},
		{Name: "PATH", Shorten: term.Middle, Min: 12},
		{Name: "CHOSEN TYPE"},
	}})
}
