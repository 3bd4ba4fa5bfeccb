package source

import (
	"context"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/schema"
	"unwire/schema/check"
	"unwire/schema/compare"
	"unwire/schema/infer"
	"unwire/schema/update"
)

// traffic collects what captures have that definitions lack: unknown fields, methods,
// and what contradicts the definitions.
type traffic struct {
	// onExchange, if set, is called with each exchange before it is entered, but not
	// with the heads of conversations: of these the conversation was entered before.
	onExchange func(*decode.Exchange)
	// onRejected, if set, is called with why messages of an exchange are left out.
	onRejected func(exchange int64, err error)

	have    *schema.Schema
	profile *profile.Profile
	checker *check.Checker

	// methods is evidence of the methods that the definitions do not know.
	methods *infer.Evidence
}

// newTraffic returns a traffic for definitions. The profile has secrets that examples
// must not show; it may be nil.
func newTraffic(have *schema.Schema, p *profile.Profile) *traffic {
	return &traffic{have: have, profile: p, checker: check.NewChecker(have, check.CheckOptions{Profile: p}), methods: infer.NewEvidence()}
}

// addCapture enters the exchanges of a capture, or only the one with the number id if
// that is not 0, as conversation.EachCall walks them.
func (t *traffic) addCapture(ctx context.Context, src captures.Capture, id int64, part bool) error {
	return conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		if joined {
			conversation.DropJoined(ex)
		} else if t.onExchange != nil {
			t.onExchange(ex)
		}
		t.checker.Add(ex)
		if t.have.Method(ex.Service, ex.RPC) != nil {
			return nil
		}
		if err := t.methods.AddExchange(ex); err != nil && t.onRejected != nil {
			t.onRejected(ex.ID, err)
		}
		return nil
	})
}

// source is what was collected.
func (t *traffic) source() (*update.Source, error) {
	t.methods.Merge(t.checker.Unknown())
	src, err := fromEvidence(t.methods, t.profile)
	if err != nil {
		return nil, err
	}
	for _, c := range t.checker.Report().Contradicted {
		element := c.Message
		if c.Name != "" {
			element += "." + c.Name
		}
		change := update.Change{Op: update.Conflict, Element: element, Kind: compare.FieldElement, Number: c.Number, Source: src.Name, Note: c.Reason}
		if c.Number == 0 {
			change.Kind = compare.MessageElement
		}
		src.Conflicts = append(src.Conflicts, change)
	}
	return src, nil
}
