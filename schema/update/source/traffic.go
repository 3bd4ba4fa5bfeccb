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

// traffic collects what occurs in captures and the definitions lack: unknown fields, unknown methods, and
// contradictions.
type traffic struct {
	// onExchange, if set, is called with each exchange before it is added, except for a call that carries a
	// conversation, because the conversation itself was added before.
	onExchange func(*decode.Exchange)
	// onRejected, if set, is called with the reason why messages of an exchange are left out.
	onRejected func(exchange int64, err error)

	// have are the user's definitions, which are to be updated.
	have *schema.Schema
	// profile has the secrets of a client, which must not appear in examples. It may be nil.
	profile *profile.Profile
	// checker finds the unknown fields and the contradictions.
	checker *check.Checker

	// methods has the messages of the methods that the definitions lack.
	methods *infer.Evidence
}

// newTraffic returns an empty collection for the definitions have. p has the secrets that must not appear in
// examples; it may be nil.
func newTraffic(have *schema.Schema, p *profile.Profile) *traffic {
	return &traffic{have: have, profile: p, checker: check.NewChecker(have, check.Options{Profile: p}), methods: infer.NewEvidence()}
}

// addCapture adds the exchanges of a capture, or only the one with the number id if it is not 0. Exchanges that
// form a conversation are joined, as by conversation.EachCall, unless part is set.
func (t *traffic) addCapture(ctx context.Context, src captures.Capture, id int64, part bool) error {
	return conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		if joined {
			conversation.DropJoined(ex)
		} else if t.onExchange != nil {
			t.onExchange(ex)
		}
		t.checker.Add(ex)
		// The checker collects the unknown fields of known methods.
		if t.have.Method(ex.Service, ex.RPC) != nil {
			return nil
		}
		if err := t.methods.AddExchange(ex); err != nil && t.onRejected != nil {
			t.onRejected(ex.ID, err)
		}
		return nil
	})
}

// source infers definitions from the collected traffic, as the source of an update.
func (t *traffic) source() (*update.Source, error) {
	t.methods.Merge(t.checker.UnknownEvidence())
	src, err := fromEvidence(t.methods, t.profile)
	if err != nil {
		return nil, err
	}

	// Contradictions cannot be expressed as definitions.
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
