package check

import (
	"context"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
)

// AddCapture checks the exchanges of a capture, or only the one with the number id if
// that is not 0, as conversation.EachCall walks them, and counts them. Of the head of a
// conversation that was checked, only what carried it is checked too. onExchange, if
// set, is called with each other exchange before it is checked.
//
// Errors: those of conversation.EachCall, of a damaged capture after all that is readable.
func (k *Checker) AddCapture(ctx context.Context, src captures.Capture, id int64, part bool, onExchange func(*decode.Exchange)) (exchanges int, err error) {
	defer func() { k.part = false }()
	err = conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		exchanges++
		if k.part = joined; joined {
			conversation.DropJoined(ex)
		} else if onExchange != nil {
			onExchange(ex)
		}
		k.Add(ex)
		return ctx.Err()
	})
	return exchanges, err
}
