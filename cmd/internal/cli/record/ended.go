package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/proto"
)

// sayEnded says what was recorded since a time, with a remark behind it, and counts it. What
// the files had before is counted apart.
func sayEnded(ctx context.Context, a *app.App, f CaptureFlags, files []string, began time.Time, remark string) (int, error) {
	n, earlier, unfinished, err := countExchanges(ctx, files, began)
	if err != nil {
		return n, err
	}
	if f.json {
		return n - earlier, a.Print(&contract.Ended{
			Event: "ended", File: files[0], Exchanges: n, Incomplete: unfinished, Files: files,
			UnsearchedExchanges: f.Unsearched.exchanges, UnsearchedBytes: f.Unsearched.bytes,
		})
	}
	where := f.Out
	if len(files) > 1 {
		where = fmt.Sprintf("%d files, %s to %s", len(files), files[0], files[len(files)-1])
	}
	if earlier == 0 {
		a.Say("unwire: %s in %s (%d incomplete)%s", app.Counted(n, "exchange"), where, unfinished, remark)
	} else {
		a.Say("unwire: %s added to %s, which has %d now (%d incomplete)%s", app.Counted(n-earlier, "exchange"), where, n, unfinished, remark)
	}
	if text := f.Unsearched.summary(); text != "" {
		a.Say("unwire: %s", text)
	}
	return n - earlier, nil
}

// countExchanges counts the exchanges of files, those that began before a time, and those
// that are not complete.
func countExchanges(ctx context.Context, files []string, began time.Time) (n, earlier, unfinished int, err error) {
	for _, file := range files {
		store, err := store.Open(file, store.ReadOptions{Profile: proto.Profile()})
		if err != nil {
			return n, earlier, unfinished, err
		}
		for ex, err := range store.Exchanges(ctx) {
			if err != nil {
				return n, earlier, unfinished, errors.Join(err, store.Close())
			}
			n++
			if ex.Started.Before(began) {
				earlier++
			}
			if ex.Outcome != captures.Complete {
				unfinished++
			}
		}
		if err := store.Close(); err != nil {
			return n, earlier, unfinished, err
		}
	}
	return n, earlier, unfinished, nil
}
