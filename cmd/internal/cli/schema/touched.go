package schemacmd

import (
	"context"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/replay"
	"unwire/replay/suite"
	"unwire/schema"
	"unwire/schema/compare"
)

// touchCaptures searches the exchanges of captures for uses of changed elements, and adds them to t.
func touchCaptures(ctx context.Context, a *app.App, t *compare.TouchedExchanges, inputs []string) error {
	for _, name := range inputs {
		err := withCapture(a, name, func(c *query.Capture, at query.Address) error {
			return t.AddCapture(ctx, c, at.Exchange, at.Part, func(id int64) string {
				return query.Address{File: at.File, Exchange: id, Frame: -1}.String()
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// touchSuite searches the replay experiments in a folder for uses of changed elements, and adds them to
// t. An experiment whose edits cannot be applied is reported and skipped, since its edits may name fields
// that no longer exist.
func touchSuite(ctx context.Context, a *app.App, t *compare.TouchedExchanges, f diffFlags, names *schema.Schema) error {
	files, err := suite.Files(f.suite)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := touchExperiment(ctx, a, t, file, f.capture, names); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a.Say("%s: skipped: %v", file, err)
		}
	}
	return nil
}

// touchExperiment searches one experiment for uses of changed elements: its recorded exchange, with the
// request both as recorded and as edited. capture is the default capture.
func touchExperiment(ctx context.Context, a *app.App, t *compare.TouchedExchanges, file, capture string, names *schema.Schema) error {
	x, capture, err := suite.Read(file, capture)
	if err != nil {
		return err
	}
	c, err := a.OpenCapture(capture)
	if err != nil {
		return err
	}
	defer c.Close()
	ex, err := c.Edited(ctx, x.Exchange, replay.Changes{Edits: x.Edits}, replay.Options{Schema: names, OmitSecrets: true})
	if err != nil {
		return err
	}
	t.Add(file, ex)
	return nil
}
