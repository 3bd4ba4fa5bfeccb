package schemacmd

import (
	"errors"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/decode"
)

// withCapture opens the capture that an input names, and calls do with it and with the
// input's address.
func withCapture(input string, do func(c *store.Store, at query.Address) error) error {
	at := query.ParseAddress(input)
	c, err := app.OpenCapture(at.File)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c.Store, at)
}

// withCaptures is withCapture for each input. Damage ends nothing, and is the error
// after all of them.
func withCaptures(inputs []string, do func(c *store.Store, at query.Address) error) error {
	var damage error
	for _, input := range inputs {
		err := withCapture(input, do)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = errors.Join(damage, err)
	}
	return damage
}

// frameAddress names a frame of the capture file.
func frameAddress(file string, ex *decode.Exchange, f *decode.Frame, part bool) string {
	return query.Address{File: file, Exchange: ex.ID, Part: part, Dir: f.Dir, Frame: f.Seq}.String()
}
