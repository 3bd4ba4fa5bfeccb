package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/known"
	"unwire/decode/text"
	"unwire/decode/wire"
	"unwire/schema"
)

// A chosenReading is what --as said of a field: up/1.2:string.
type chosenReading struct {
	kind.Choice
	dir   captures.Direction
	given bool // the direction was said
}

// parseChosen reads a word of --as that has a colon in it.
func parseChosen(s string) (chosenReading, error) {
	var c chosenReading
	rest := s
	for _, d := range [...]captures.Direction{captures.Up, captures.Down} {
		if r, ok := strings.CutPrefix(s, d.String()+"/"); ok {
			rest, c.dir, c.given = r, d, true
		}
	}
	var err error
	if c.Choice, err = kind.ParseChoice(rest); err != nil {
		return c, app.Fail(app.ExitUsage, fmt.Errorf("--as: %w", err), "as in --as 1.2:string, or --as down/1.2:string")
	}
	return c, nil
}

// parseChosenAll reads the words of --as: at most one that says what the bytes are as
// a whole, and choices.
func parseChosenAll(words []string) (whole string, list []chosenReading, err error) {
	for _, w := range words {
		if !strings.Contains(w, ":") {
			if whole != "" {
				return "", nil, app.Usagef("--as says twice what the bytes are: %s and %s", whole, w)
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

// plainChoices are the choices about a file, which has no directions.
func plainChoices(list []chosenReading) ([]kind.Choice, error) {
	var out []kind.Choice
	for _, c := range list {
		if c.given {
			return nil, app.Usagef("--as %s/%s: a file has no directions", c.dir, c.Choice)
		}
		out = append(out, c.Choice)
	}
	return out, nil
}

// views are how the frames of an exchange are read.
type views struct {
	defs    *schema.Schema
	pool    *decode.Pool
	choices [2][]kind.Choice
}

// of is the view of the frames of a direction.
func (v *views) of(call decode.Call, dir captures.Direction) decode.View {
	return decode.View{Type: app.FrameType(v.defs, call, dir), Evidence: v.pool.Of(dir), Choices: v.choices[dir&1], Find: v.find}
}

// find is the definition of a message by its full name, or nil.
func (v *views) find(name string) protoreflect.MessageDescriptor {
	if v.defs != nil {
		if md := v.defs.Message(name[strings.LastIndexByte(name, '/')+1:]); md != nil {
			return md
		}
	}
	return known.Message(name)
}

// fieldsOf reads a message whose type a name tells.
func (v *views) fieldsOf(t *wire.Tree, name string) []*field.Field {
	return decode.View{Type: v.find(name), Find: v.find}.Fields(t)
}

// viewsOf pools what is known of an exchange's method.
func viewsOf(ctx context.Context, store *store.Store, ex *decode.Exchange, defs *schema.Schema) *views {
	return &views{defs: defs, pool: decode.NewPool(ctx, store, ex), choices: ex.Choices}
}

// choose adds the choices of list to the views, and remembers them in the capture
// unless once is set. A choice that names no field of the frames is an error; one that
// fits none of their values is shown as such, and is not remembered.
func choose(ctx context.Context, a *app.App, store *store.Store, ex *decode.Exchange, v *views, list []chosenReading, frames []decode.Frame, once bool) error {
	for _, c := range list {
		dir, fits, err := directionOf(&c, frames)
		if err != nil {
			return err
		}
		v.choices[dir&1] = append(v.choices[dir&1], c.Choice)
		switch {
		case once:
		case !fits:
			a.Say("unwire: %s is not remembered: it fits no value", c.Choice)
		default:
			remember(ctx, a, store, captures.Reading{Method: decode.MethodOf(&ex.Exchange, ex.Call), Dir: dir, Path: c.Path.String(), Type: c.Type})
		}
	}
	return nil
}

// remember stores a reading; a capture that cannot be written to keeps none.
func remember(ctx context.Context, a *app.App, store *store.Store, r captures.Reading) {
	if r.Type == kind.Auto {
		r.Type = ""
	}
	if err := store.PutReading(ctx, r); err != nil {
		why := err.Error()
		if errors.Is(err, captures.ErrInUse) {
			why = "it is being recorded to"
		}
		a.Say("unwire: the reading holds for this once, %s does not keep it: %s", term.Clean(store.Path), term.Clean(why))
	}
}

// directionOf finds the direction whose messages have a choice's field, and whether
// some value can be read as it says.
func directionOf(c *chosenReading, frames []decode.Frame) (dir captures.Direction, fits bool, err error) {
	var has, fit [2]bool
	for i := range frames {
		f := &frames[i]
		if f.Tree == nil || c.given && f.Dir != c.dir {
			continue
		}
		if fit[f.Dir&1] {
			continue
		}
		here, err := fitIn(f.Tree, c.Choice)
		has[f.Dir&1] = has[f.Dir&1] || here
		fit[f.Dir&1] = here && err == nil
	}
	switch {
	case has[0] && has[1]:
		return 0, false, app.Usagef("--as %s: messages of both directions have this field: say up/%s or down/%s", c.Choice, c.Choice, c.Choice)
	case has[1]:
		return captures.Down, fit[1], nil
	case has[0]:
		return captures.Up, fit[0], nil
	case c.Type == kind.Auto && c.given:
		return c.dir, true, nil
	}
	return 0, false, noSuchField(c.Choice)
}

// fitIn reports whether t has the field of a choice; the error says why none of its
// values can be read so.
func fitIn(t *wire.Tree, c kind.Choice) (has bool, err error) {
	nodes := t.Find(c.Path)
	if len(nodes) == 0 || c.Type == kind.Auto {
		return len(nodes) > 0, nil
	}
	r := kind.NewReader(t, nil)
	r.Choose([]kind.Choice{c})
	for _, n := range nodes {
		is, unfit := r.Chosen(n)
		if is {
			return true, nil
		}
		if err == nil {
			err = unfit
		}
	}
	return true, err
}

func noSuchField(c kind.Choice) error {
	return app.Fail(app.ExitUsage, fmt.Errorf("--as %s: no message here has this field", c),
		"paths are field numbers joined by dots, as in 1.2 or 1.2[0].5")
}

// checkChoices looks for the fields of choices in a file's messages: a field that none
// of them has is an error, and a choice that fits no value is reported.
func checkChoices(a *app.App, doc *text.Document, choices []kind.Choice) error {
	has, fits, why := make([]bool, len(choices)), make([]bool, len(choices)), make([]error, len(choices))
	tree := new(wire.Tree)
	err := doc.Parts(func(p text.Part) error {
		if p.Kind != "message" {
			return nil
		}
		tree.Reset(p.Data, wire.Options{})
		for i, c := range choices {
			if fits[i] {
				continue
			}
			here, unfit := fitIn(tree, c)
			has[i], fits[i] = has[i] || here, here && unfit == nil
			if why[i] == nil {
				why[i] = unfit
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range choices {
		switch {
		case !has[i]:
			return noSuchField(c)
		case !fits[i]:
			a.Say("unwire: --as %s fits no value: %s", c, term.Clean(why[i].Error()))
		}
	}
	return nil
}

// listReadings prints what a capture remembers.
func listReadings(ctx context.Context, a *app.App, file string, asJSON bool) error {
	store, err := app.OpenCapture(file)
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := store.Readings(ctx, "")
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, r := range list {
		if asJSON {
			line := struct {
				V      int    `json:"v"`
				Method string `json:"method"`
				Dir    string `json:"dir"`
				Path   string `json:"path"`
				Type   string `json:"type"`
			}{1, r.Method, r.Dir.String(), r.Path, r.Type}
			if err := a.PrintJSON(line); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{term.Clean(r.Method), r.Dir.String(), term.Clean(r.Path), term.Clean(r.Type)})
	}
	if asJSON {
		return nil
	}
	return a.Out.Table([]string{"METHOD", "DIR", "PATH", "READ AS"}, rows)
}
