package query

import (
	"cmp"
	"context"
	"errors"

	"unwire/captures"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
)

// An Inference collects evidence for the inference of definitions from captures, which are added one
// after the other.
type Inference struct {
	// Evidence is the evidence from everything that was added. Other evidence may be merged into it.
	Evidence *infer.Evidence

	// Messages counts the messages of exchanges that are not RPCs, such as WebSockets. The evidence from
	// their protobuf messages is in Evidence.
	Messages messages.Set

	// JSONCalls is the number of calls with JSON messages, which give no evidence.
	JSONCalls int64

	// FirstJSONCall is the address of the first of these calls.
	FirstJSONCall Address
}

// Add adds the exchanges of a capture, or the one that the address names, and returns remarks on the
// parts that could not be read.
//
// Errors: those of infer.Gather; what was read before was added.
func (g *Inference) Add(ctx context.Context, capture *Capture, at Address) ([]infer.Remark, error) {
	all, err := infer.Gather(ctx, capture.Store, infer.GatherOptions{Exchange: at.Exchange, Part: at.Part})
	g.Evidence.Absorb(all.Evidence)
	if g.JSONCalls == 0 && all.JSONCalls > 0 {
		g.FirstJSONCall = Address{File: at.File, Exchange: all.FirstJSONCall, Frame: -1}
	}
	g.JSONCalls += all.JSONCalls
	if err == nil || errors.Is(err, captures.ErrDamaged) {
		err = cmp.Or(err, g.addMessages(ctx, capture, at))
	}
	return all.Remarks, err
}

// addMessages adds the messages of exchanges that are not RPCs. Discriminators, the fields whose values
// select the message types, are found in each capture separately, so that the result does not depend on
// the order of captures.
func (g *Inference) addMessages(ctx context.Context, capture *Capture, at Address) error {
	set := messages.Set{Split: g.Messages.Split}
	err := set.Add(ctx, capture.Store, at.Exchange, g.Evidence)
	g.Messages.Raw += set.Raw
	g.Messages.Others += set.Others
	g.Messages.Undecoded = append(g.Messages.Undecoded, set.Undecoded...)
	return err
}
