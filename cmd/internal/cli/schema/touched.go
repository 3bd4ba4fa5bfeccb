package schemacmd

import (
	"context"
	"slices"

	"unwire/captures"
	"unwire/cmd/internal/app"
	replaycmd "unwire/cmd/internal/cli/replay"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/replay"
	"unwire/replay/suite"
	"unwire/schema"
	"unwire/schema/compare"
)

// touchCaptures has t look at the exchanges of captures.
func touchCaptures(ctx context.Context, t *compare.Toucher, inputs []string) error {
	for _, name := range inputs {
		err := withCapture(name, func(c *query.Capture, at query.Address) error {
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

// touchSuite has t look at the experiments of a folder. One whose edits cannot be
// made is told, and left out: its paths may name what is gone.
func touchSuite(ctx context.Context, a *app.App, t *compare.Toucher, f diffFlags, names *schema.Schema) error {
	files, err := suite.Files(f.suite)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := touchExperiment(ctx, t, file, f.capture, names); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a.Say("%s: not looked at: %v", file, err)
		}
	}
	return nil
}

// touchExperiment has t look at an experiment: the recorded exchange, with the
// edited request beside the recorded one.
func touchExperiment(ctx context.Context, t *compare.Toucher, file, capture string, names *schema.Schema) error {
	x, capture, err := suite.Read(file, capture)
	if err != nil {
		return err
	}
	store, err := app.OpenCapture(capture)
	if err != nil {
		return err
	}
	defer store.Close()
	recorded, err := conversation.Resolve(ctx, store, x.Exchange, false)
	if err != nil {
		return err
	}
	settings := replaycmd.ReplaySettings{Changes: replay.Changes{Edits: x.Edits}, Options: replay.Options{Schema: names, OmitSecrets: true}}
	plan, err := store.Plan(ctx, x.Exchange, settings.Changes, settings.Options, false)
	if err != nil {
		return err
	}
	ex := *recorded.Exchange
	ex.Frames = slices.Clone(ex.Frames)
	for _, f := range plan.Description().Frames {
		if f.Edited {
			frame := decode.Frame{Dir: captures.Up, Seq: f.Seq}
			frame.Data = f.Data
			ex.Frames = append(ex.Frames, frame)
		}
	}
	t.Add(file, &ex)
	return nil
}
