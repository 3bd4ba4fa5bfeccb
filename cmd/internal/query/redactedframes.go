package query

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"unwire/captures/redact"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/secret"
)

// RedactedFrames calls do with the frames at the given addresses, ordered by exchange, with secrets
// redacted. Each exchange is decoded once. Frames that do not exist are skipped.
//
// Errors: those of secret.NewView and of decoding.
func (c *Capture) RedactedFrames(ctx context.Context, addresses []Address, rules *secret.Rules, do func(Address, *decode.Exchange, *decode.Frame)) error {
	view, err := secret.NewView(ctx, c.Store, redact.New(redact.Options{Profile: c.Profile()}).Omitting(), rules)
	if err != nil {
		return err
	}
	joined, err := conversation.FindAll(ctx, view)
	if err != nil {
		return err
	}

	// Sort by exchange, so that each is decoded once.
	sorted := slices.SortedStableFunc(slices.Values(addresses), func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Exchange, b.Exchange), cmp.Compare(strconv.FormatBool(a.Part), strconv.FormatBool(b.Part)))
	})
	var ex *decode.Exchange
	last := Address{}
	for _, at := range sorted {
		if ex == nil || at.Exchange != last.Exchange || at.Part != last.Part {
			if ex, err = decodeRedacted(ctx, view, joined, at); err != nil {
				return err
			}
			last = at
		}
		if f := ex.Frame(at.Dir, at.Frame); f != nil {
			do(at, ex, f)
		}
	}
	return nil
}

// decodeRedacted decodes the exchange at an address from a redacted view, or the conversation that begins
// with it unless the address has /part.
func decodeRedacted(ctx context.Context, view *secret.View, joined *conversation.Set, at Address) (*decode.Exchange, error) {
	if !at.Part && joined.Head(at.Exchange) == at.Exchange {
		c, err := joined.Decode(ctx, view, at.Exchange, decode.Options{})
		if err != nil {
			return nil, err
		}
		return c.Exchange, nil
	}
	return decode.Decode(ctx, view, at.Exchange, decode.Options{})
}
