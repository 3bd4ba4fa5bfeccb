package query

import (
	"cmp"
	"context"
	"errors"

	"unwire/captures"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
)

// An Inference gathers evidence of captures that are added one after the other.
type Inference struct {
	// Evidence is of all that was added; others may merge evidence into it.
	Evidence *infer.Evidence

	// Messages are of exchanges that are no calls. Their protobuf messages are in Evidence.
	Messages messages.Set

	// JSONCalls counts the calls whose messages are JSON, which are no evidence, and
	// FirstJSONCall is the address of the first of them.
	JSONCalls     int64
	FirstJSONCall Address
}

// Add adds the exchanges of a capture that an address names, and returns what of them
// could not be read.
//
// Errors: those of infer.Gather; what was read until then was added.
func (g *Inference) Add(ctx context.Context, capture *Capture, at Address) ([]infer.Remark, error) {
	all, err := infer.Gather(ctx, capture.Store, infer.GatherOptions{Exchange: at.Exchange, Part: at.Part})
	g.Evidence.Merge(all.Evidence)
	if g.JSONCalls == 0 && all.JSONCalls > 0 {
		g.FirstJSONCall = Address{File: at.File, Exchange: all.FirstJSONCall, Frame: -1}
	}
	g.JSONCalls += all.JSONCalls
	if err == nil || errors.Is(err, captures.ErrDamaged) {
		err = cmp.Or(err, g.addMessages(ctx, capture, at))
	}
	return all.Remarks, err
}

// addMessages adds the messages of exchanges that are no calls. Discriminators are found in
// each capture by itself, so that the evidence does not depend on the order of captures.
func (g *Inference) addMessages(ctx context.Context, capture *Capture, at Address) error {
	set := messages.Set{Split: g.Messages.Split}
	err := set.Add(ctx, capture.Store, at.Exchange, g.Evidence)
	g.Messages.Raw += set.Raw
	g.Messages.Others += set.Others
	g.Messages.Undecoded = append(g.Messages.Undecoded, set.Undecoded...)
	return err
}
