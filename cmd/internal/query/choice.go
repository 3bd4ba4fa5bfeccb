package query

import (
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Choice is a user's decision that a field has a certain type, such as 1.2:string or, for messages of
// one direction, down:1.2:string.
type Choice struct {
	// Choice is the path of the field and its type.
	kind.Choice

	// Dir is the direction of the messages, if HasDir is set.
	Dir captures.Direction

	// HasDir means that the choice is for one direction only.
	HasDir bool
}

// ParseChoice parses a choice. It also accepts the older form down/1.2:string.
//
// Errors: those of kind.ParseChoice.
func ParseChoice(s string) (Choice, error) {
	var c Choice
	rest := s
	for _, d := range [...]captures.Direction{captures.Up, captures.Down} {
		for _, mark := range [...]string{":", "/"} {
			if r, ok := strings.CutPrefix(s, d.String()+mark); ok {
				rest, c.Dir, c.HasDir = r, d, true
			}
		}
	}
	var err error
	c.Choice, err = kind.ParseChoice(rest)
	return c, err
}

// A ChoiceError reports that a choice cannot be applied. If neither Both nor Unfit is set, no message has
// the field.
type ChoiceError struct {
	// Choice is the choice that cannot be used.
	Choice kind.Choice

	// Both means that messages of both directions have the field, so that the choice must name one.
	Both bool

	// Unfit means that no value of the field can be read as the chosen type.
	Unfit bool
}

// Error returns the text.
func (e *ChoiceError) Error() string {
	if e.Both {
		return fmt.Sprintf("%s: messages of both directions have this field: use up:%s or down:%s", e.Choice, e.Choice, e.Choice)
	}
	if e.Unfit {
		return fmt.Sprintf("%s: no value of the field can be read as this type", e.Choice)
	}
	return fmt.Sprintf("%s: no message in the input has this field", e.Choice)
}

// Choose adds a choice to the views. frames are the frames of the exchange ex for which the user made it.
// Choose returns the reading that the capture can store, and whether at least one value in the frames has
// the chosen type.
//
// Errors: ChoiceError.
func (v *Views) Choose(c Choice, ex *decode.Exchange, frames []decode.Frame) (r captures.Reading, fits bool, err error) {
	dir, fits, err := directionOf(&c, frames)
	if err != nil {
		return r, false, err
	}
	v.choices[dir&1] = append(v.choices[dir&1], c.Choice)
	r = captures.Reading{Method: decode.MethodOf(&ex.Exchange, ex.Call), Dir: dir, Path: c.Path.String(), Type: c.Type}
	if r.Type == kind.Auto {
		r.Type = "" // forgotten
	}
	return r, fits, nil
}

// directionOf returns the direction whose frames have the field of a choice, and whether at least one
// value there has the chosen type.
func directionOf(c *Choice, frames []decode.Frame) (dir captures.Direction, fits bool, err error) {
	var has, fit [2]bool
	for i := range frames {
		f := &frames[i]
		if f.Tree == nil || c.HasDir && f.Dir != c.Dir || fit[f.Dir&1] {
			continue
		}
		here, err := fitMessage(f.Tree, c.Choice)
		has[f.Dir&1] = has[f.Dir&1] || here
		fit[f.Dir&1] = here && err == nil
	}
	switch {
	case has[0] && has[1]:
		return 0, false, &ChoiceError{Choice: c.Choice, Both: true}
	case has[1]:
		return captures.Down, fit[1], nil
	case has[0]:
		return captures.Up, fit[0], nil
	case c.Type == kind.Auto && c.HasDir:
		return c.Dir, true, nil
	}
	return 0, false, &ChoiceError{Choice: c.Choice}
}

// fitMessage reports whether a message has the field of a choice. The error says why none of the field's
// values can be read as the chosen type; nil if one can.
func fitMessage(t *wire.Tree, c kind.Choice) (has bool, err error) {
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
