package app

import (
	"context"
	"time"

	"unwire/captures/store"
	"unwire/decode/conversation"
	"unwire/proto"
)

// closingTime is how long a command that has recorded derives summaries before
// it ends; 'ls' derives what is missing then.
const closingTime = 5 * time.Second

// IndexedWhenClosed has a capture indexed when it is closed, so that the first
// listing is fast.
func (a *App) IndexedWhenClosed(o store.Options) store.Options {
	o.Profile = proto.Profile()
	o.Closing = func(store *store.Store) {
		ctx, cancel := context.WithTimeout(context.Background(), a.Signals.Within(closingTime, interruptedIndexing))
		defer cancel()
		// What was recorded is there without.
		_ = conversation.Index(ctx, store)
	}
	return o
}
