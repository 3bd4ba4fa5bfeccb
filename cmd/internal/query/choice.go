package query

import (
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Choice is how somebody says that a field is read: 1.2:string, or with the direction,
// down:1.2:string. With a slash, down/1.2:string, it is still read: older versions wrote
// it so, but in addresses down/1 is a frame.
type Choice struct {
	kind.Choice
	// Dir is the direction of the messages.
	Dir    captures.Direction
	HasDir bool // the direction was given
}

// ParseChoice reads a choice.
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

// A ChoiceError says why a choice cannot be applied.
type ChoiceError struct {
	// Choice is the choice that cannot be used.
	Choice kind.Choice

	// Both is set where messages of both directions have the field, and Unfit where no value can be read so. Else no
	// message has the field.
	Both, Unfit bool
}

func (e *ChoiceError) Error() string {
	if e.Both {
		return fmt.Sprintf("%s: messages of both directions have this field: use up:%s or down:%s", e.Choice, e.Choice, e.Choice)
	}
	if e.Unfit {
		return fmt.Sprintf("%s: no value of the field can be read so", e.Choice)
	}
	return fmt.Sprintf("%s: no message in the input has this field", e.Choice)
}

// Choose adds a choice to the views. It returns the reading that a capture remembers,
// and whether some value of the frames can be read so.
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

// directionOf finds the direction whose messages have a choice's field, and whether
// some value can be read as it says.
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

// fitMessage reports whether a message has the field of a choice; the error says why none of
// its values can be read so.
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
