package query

import (
	"context"
	"slices"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay"
)

// Plan returns a plan to send the exchange id again, with changes. Nothing is sent, except with learn:
// then the unedited request is sent first, to find out which values of the answer vary by themselves.
//
// Errors: those of replay.NewRequest, replay.Learn and replay.Request.Plan.
func (c *Capture) Plan(ctx context.Context, id int64, changes replay.Changes, o replay.Options, learn bool) (*replay.Plan, error) {
	request, err := replay.NewRequest(ctx, c.Store, id, changes)
	if err != nil {
		return nil, err
	}
	if learn {
		if o.Lesson, err = replay.Learn(ctx, request, o, nil); err != nil {
			return nil, err
		}
	}
	return request.Plan(ctx, o)
}

// Edited returns an exchange with additional frames: the client's frames as they would be sent after the
// edits in changes. Nothing is sent.
//
// Errors: those of Resolve and Plan.
func (c *Capture) Edited(ctx context.Context, id int64, changes replay.Changes, o replay.Options) (*decode.Exchange, error) {
	recorded, err := c.Resolve(ctx, id, false)
	if err != nil {
		return nil, err
	}
	plan, err := c.Plan(ctx, id, changes, o, false)
	if err != nil {
		return nil, err
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
	return &ex, nil
}
