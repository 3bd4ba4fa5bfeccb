package app

import (
	"context"
	"errors"
	"os"
	"time"

	"unwire/captures"
	"unwire/captures/budget"
	"unwire/captures/profile"
	"unwire/captures/store"
	"unwire/cmd/internal/query"
	"unwire/decode/conversation"
)

// closingTime is how long a command that has recorded derives summaries before
// it ends; 'ls' derives what is missing then.
const closingTime = 5 * time.Second

// IndexedWhenClosed has a capture indexed when it is closed, so that the first
// listing is fast.
func (a *App) IndexedWhenClosed(o store.Options) store.Options {
	o.Profile = a.Profile()
	o.Closing = func(store *store.Store) {
		ctx, cancel := context.WithTimeout(context.Background(), a.Signals.Within(closingTime, interruptedIndexing))
		defer cancel()
		// What was recorded is there without.
		_ = conversation.Index(ctx, store)
	}
	return o
}

// SayStopped reports that recording has to stop, and that goesOn, such as "the traffic",
// is not recorded from now on.
func (a *App) SayStopped(err error, goesOn string) {
	a.Say("unwire: %s recording has failed: %v", a.Err.Red("error:"), err)
	kept := "; the exchanges recorded before remain readable"
	if errors.Is(err, captures.ErrGone) {
		kept = ""
	}
	a.Say("unwire: hint: %s continues, without recording%s", goesOn, kept)
}

// OpenCapture opens a capture file for reading, and warns if it is damaged or incomplete.
func (a *App) OpenCapture(path string) (*query.Capture, error) {
	return openCapture(path, a.Profile(), a.Budget)
}

// OpenForwarded is OpenCapture for a capture of which the given directions are read as they were forwarded, where
// rules changed them.
func (a *App) OpenForwarded(path string, forwarded [2]bool) (*query.Capture, error) {
	return openForwarded(path, a.Profile(), a.Budget, forwarded)
}

func openCapture(path string, p *profile.Profile, b *budget.Budget) (*query.Capture, error) {
	return openForwarded(path, p, b, [2]bool{})
}

func openForwarded(path string, p *profile.Profile, b *budget.Budget, forwarded [2]bool) (*query.Capture, error) {
	if path == "-" {
		return nil, Fail(ExitUsage, errors.New("a capture cannot be read from stdin: it is a database, not a stream"),
			"save it to a file first: 'cat > F.uwc'; 'unwire import -' reads HAR, JSON Lines, mitmproxy flows and packets from stdin")
	}
	limits, err := readLimits()
	if err != nil {
		return nil, err
	}
	return query.Open(path, store.ReadOptions{Limits: limits, Profile: p, Forwarded: forwarded, Budget: b})
}

// maxReadVariable is the environment variable that sets to how many bytes the
// bodies of a capture may expand.
const maxReadVariable = "UNWIRE_MAX_READ"

// readLimits returns the limits of memory and size for reading a capture, from environment variables or
// by default.
func readLimits() (l store.Limits, err error) {
	text := os.Getenv(maxReadVariable)
	if text == "" {
		return l, nil
	}
	if l.Bytes, err = ParseSize(text); err != nil {
		return l, Usagef("%s: %w", maxReadVariable, err)
	}
	return l, nil
}
