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

// Traffic collects what captures have that definitions lack: unknown fields, methods,
// and what contradicts the definitions.
type Traffic struct {
	// OnExchange, if set, is called with each exchange before it is entered, but not
	// with the heads of conversations: of these the conversation was entered before.
	OnExchange func(*decode.Exchange)
	// OnRejected, if set, is called with why messages of an exchange are left out.
	OnRejected func(exchange int64, err error)

	have    *schema.Schema
	profile *profile.Profile
	checker *check.Checker

	// methods is evidence of the methods that the definitions do not know.
	methods *infer.Evidence
}

// NewTraffic returns a Traffic for definitions. The profile has secrets that examples
// must not show; it may be nil.
func NewTraffic(have *schema.Schema, p *profile.Profile) *Traffic {
	return &Traffic{have: have, profile: p, checker: check.NewChecker(have, check.CheckOptions{Profile: p}), methods: infer.NewEvidence()}
}

// AddCapture enters the exchanges of a capture, or only the one with the number id if
// that is not 0, as conversation.EachCall walks them.
func (t *Traffic) AddCapture(ctx context.Context, src captures.Capture, id int64, part bool) error {
	return conversation.EachCall(ctx, src, id, part, func(ex *decode.Exchange, joined bool) error {
		if joined {
			conversation.DropJoined(ex)
		} else if t.OnExchange != nil {
			t.OnExchange(ex)
		}
		t.checker.Add(ex)
		if t.have.Method(ex.Service, ex.RPC) != nil {
			return nil
		}
		if err := t.methods.AddExchange(ex); err != nil && t.OnRejected != nil {
			t.OnRejected(ex.ID, err)
		}
		return nil
	})
}

// Source is what was collected.
func (t *Traffic) Source() (*update.Source, error) {
	t.methods.Merge(t.checker.Unknown())
	src, err := FromEvidence(t.methods, t.profile)
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
