package cli

import (
	"context"

	"unwire/captures/store"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
)

// remarkEmpty reports that a capture holds no exchanges: otherwise "nothing found"
// would read as "nothing wrong".
func (a *app) remarkEmpty(ctx context.Context, store *store.Store) {
	for range store.Exchanges(ctx) {
		return
	}
	a.say("unwire: warning: %s holds no exchanges", term.Clean(store.Path()))
}

// eachExchange decodes the exchanges of a capture, or the one that an address
// such as F.uwc#7 names, as conversation.EachCall does.
func eachExchange(ctx context.Context, name string, do func(ex *decode.Exchange, joined bool) error) error {
	addr := parseAddress(name)
	store, err := openCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	return conversation.EachCall(ctx, store, addr.Exchange, addr.Part, do)
}

// remark says what of an exchange could not be decoded, and is not read.
func (a *app) remark(ex *decode.Exchange) {
	if ex.Err != nil {
		a.say("unwire: %s", term.CleanText(ex.Err.Error()))
	}
}
