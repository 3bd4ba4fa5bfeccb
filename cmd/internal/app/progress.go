package app

import (
	"context"

	"unwire/cmd/internal/progress"
	"unwire/cmd/internal/query"
)

// ShowProgress shows on a terminal how far work is that reads the bodies of captures, which
// may be addresses, with the returned context. What is a verb, such as "checking".
func (a *App) ShowProgress(ctx context.Context, what string, names ...string) (context.Context, *progress.Meter) {
	return progress.Start(ctx, progress.Options{
		Out: a.Out, Err: a.Err, What: what, Files: len(names),
		Total: func(ctx context.Context) int64 { return a.bodyBytes(ctx, names) },
	})
}

// bodyBytes is how many bytes the bodies of captures have; 0 if that is not known.
func (a *App) bodyBytes(ctx context.Context, names []string) (total int64) {
	for _, name := range names {
		addr := query.ParseAddress(name)
		if addr.Exchange != 0 {
			return 0
		}
		c, err := a.OpenCapture(addr.File)
		if err != nil {
			return 0 // the work reports it
		}
		n, err := c.BodyBytes(ctx)
		c.Close()
		if err != nil {
			return 0
		}
		total += n
	}
	return total
}

// ShowSteps shows on a terminal how far work is that consists of steps of a unit, such as
// "request"; steps is 0 if their number is not known.
func (a *App) ShowSteps(ctx context.Context, what, unit string, steps int) *progress.Meter {
	_, m := progress.Start(ctx, progress.Options{Out: a.Out, Err: a.Err, What: what, Unit: unit, Steps: steps})
	return m
}

// ShowFileProgress shows on a terminal how far the reading of a file is, of size bytes or 0
// if that is not known. What is read through the meter's Reader is counted.
func (a *App) ShowFileProgress(ctx context.Context, what string, size int64) *progress.Meter {
	_, m := progress.Start(ctx, progress.Options{Out: a.Out, Err: a.Err, What: what, Total: func(context.Context) int64 { return size }})
	return m
}
