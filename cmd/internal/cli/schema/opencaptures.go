package schemacmd

import (
	"errors"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
)

// withCapture opens the capture that an input names, and calls do with it and with the
// input's address.
func withCapture(a *app.App, input string, do func(c *query.Capture, at query.Address) error) error {
	at := query.ParseAddress(input)
	c, err := a.OpenCapture(at.File)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c, at)
}

// withCaptures is withCapture for each input. Damage ends nothing, and is the error
// after all of them.
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
