package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"unwire/captures"
	"unwire/captures/budget"
	"unwire/captures/profile"
	"unwire/captures/store"
	"unwire/cmd/internal/query"
	"unwire/decode/conversation"
)

// closingTime limits how long a recording command indexes its capture before it exits. 'unwire ls' later
// indexes the rest.
const closingTime = 5 * time.Second

// IndexedWhenClosed returns o with a callback that indexes the capture when it is closed: it derives the
// summary of each exchange, so that the first 'unwire ls' is fast. Indexing is cut short after a few
// seconds.
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

// SayStopped prints that recording has failed because of err, and that activity, such as "the traffic",
// continues without being recorded.
func (a *App) SayStopped(err error, activity string) {
	a.Say("unwire: %s recording has failed: %v", a.Err.Red("error:"), err)
	kept := "; the exchanges recorded before remain readable"
	if errors.Is(err, captures.ErrGone) {
		kept = ""
	}
	a.Say("unwire: hint: %s continues, without recording%s", activity, kept)
}

// captureSuffix is the extension of the files in a folder that are captures.
const captureSuffix = ".uwc"

// CapturesIn returns the paths of the captures in a folder, in alphabetical order.
func CapturesIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == captureSuffix && !e.IsDir() {
			list = append(list, filepath.Join(folder, e.Name()))
		}
	}
	return list, nil
}

// OpenCapture opens a capture file for reading, and warns if it is damaged or incomplete.
func (a *App) OpenCapture(path string) (*query.Capture, error) {
	return openCapture(path, a.Profile(), a.Budget)
}

// OpenForwarded opens a capture file for reading. For the directions that are set in forwarded (0: client to server,
// 1: server to client), its bodies are those that the proxy forwarded, instead of those that it received; the two
// differ where rewriting rules changed the traffic.
func (a *App) OpenForwarded(path string, forwarded [2]bool) (*query.Capture, error) {
	return openForwarded(path, a.Profile(), a.Budget, forwarded)
}

// openCapture opens a capture file for reading, with profile p and budget b, both of which may be nil.
func openCapture(path string, p *profile.Profile, b *budget.Budget) (*query.Capture, error) {
	return openForwarded(path, p, b, [2]bool{})
}

// openForwarded opens a capture file for reading, with profile p and budget b, both of which may be nil. For the
// directions that are set in forwarded, its bodies are those that the proxy forwarded instead of those that it
// received. It refuses "-", since a capture cannot be read from standard input.
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

// maxReadVariable is the environment variable that limits the decompressed size of the bodies that are
// read from a capture, such as 20GB.
const maxReadVariable = "UNWIRE_MAX_READ"

// readLimits returns the limits for reading a capture: the one in UNWIRE_MAX_READ, or the defaults if it
// is not set.
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
