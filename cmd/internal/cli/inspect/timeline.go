package inspect

import (
	"context"
	"errors"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode"
)

// showTimeline executes 'unwire show --timeline': it prints the frames of an exchange and of the
// exchanges related to it in order of time, for instance a request to 'unwire serve' together with the
// upstream stream that answered it.
func showTimeline(ctx context.Context, a *app.App, addr query.Address, o showFlags) error {
	if addr.Frame >= 0 || o.full || o.hex || len(o.as) > 0 || o.explain != "" || o.parts {
		return app.Usagef("--timeline needs an exchange, and can be combined only with --json and --proto")
	}
	defs, err := a.LoadDefinitions(ctx, o.proto, addr.File)
	if err != nil {
		return err
	}
	capture, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}

	// The exchanges that 'unwire serve' linked to this one belong to the same timeline.
	defer capture.Close()
	ids, err := capture.Joined(ctx, addr.Exchange)
	if err != nil {
		return err
	}

	// A part that cannot be read completely is shown as far as possible, and reported at the end. Frames are not kept, since
	// an exchange may have 200,000.
	frames := render.TimelineFrames{Definitions: defs}
	options := decode.Options{Split: capture.Splitting, NoInner: true}.Bounded()
	var unread []error
	for _, id := range ids {
		ex, err := decode.EachFrame(ctx, capture, id, options, func(ex *decode.Exchange, f *decode.Frame) error {
			frames.Add(ex, f)
			return nil
		})
		if ex == nil {
			return err
		}
		unread = append(unread, err)
	}
	lines := frames.Lines()
	if o.json {
		for _, line := range lines {
			if err := a.Print(line); err != nil {
				return err
			}
		}
	} else if err := render.WriteTimeline(a.Out, lines); err != nil {
		return err
	}
	return errors.Join(unread...)
}
