package schemacmd

import (
	"errors"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
)

// withCapture opens the capture that input names, a path or the address of an exchange, and calls do with
// it and the parsed address.
func withCapture(a *app.App, input string, do func(c *query.Capture, at query.Address) error) error {
	at := query.ParseAddress(input)
	c, err := a.OpenCapture(at.File)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c, at)
}

// withCaptures calls withCapture for each input. A damaged capture does not stop it; the damage is
// returned at the end.
func withCaptures(a *app.App, inputs []string, do func(input string, c *query.Capture, at query.Address) error) error {
	var damage error
	for _, input := range inputs {
		err := withCapture(a, input, func(c *query.Capture, at query.Address) error { return do(input, c, at) })
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = errors.Join(damage, err)
	}
	return damage
}
