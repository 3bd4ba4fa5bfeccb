package query

import (
	"context"

	"unwire/replay"
)

// Plan plans to send an exchange again, with changes. With learn, the unedited request is
// sent first, to find out what in the answer is volatile; else nothing is sent.
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
