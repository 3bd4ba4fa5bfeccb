package check

import (
	"context"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
)

// AddCapture checks the exchanges of a capture, or only the one with the number id if it is not 0. It returns
// how many there were. Calls that form one conversation are joined, as conversation.EachCall does, and each
// message is checked only once. part disables the joining. onExchange, if not nil, is called before each
// exchange is checked.
//
// Errors: those of conversation.EachCall. A damaged capture is checked as far as it is readable.
func (k *Checker) AddCapture(ctx context.Context, src captures.Capture, id int64, part bool, onExchange func(*decode.Exchange)) (exchanges int, err error) {
	defer func() { k.part = false }()
	err = conversation.EachCall(ctx, src, id, part, decode.Options{}, func(ex *decode.Exchange, joined bool) error {
		exchanges++
		// The conversation contains these messages and was checked before.
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
