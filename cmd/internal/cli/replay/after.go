package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/replaytext"
	"unwire/replay"
)

// sendFirst sends the exchanges that --after names before the exchange id, in order. Identifiers that the
// live server returns in their answers replace the recorded ones in the later requests; they are stored
// in opts for the main request. With --dry-run, it only prints what it would send.
func sendFirst(ctx context.Context, a *app.App, store *query.Capture, id int64, f replayFlags, opts *replaySettings) error {
	first, err := replay.ExchangesBefore(ctx, store.Store, id, f.after)
	if errors.Is(err, replay.ErrAfter) {
		return app.Fail(app.ExitUsage, err, "")
	}
	if err != nil || len(first) == 0 {
		return err
	}
	if f.dryRun {
		a.Say("replay would first send exchange %s, and use the IDs from its live answer", numbered(first, ", "))
		return nil
	}

	// Each exchange is sent with the ids that the live server issued in those before it.
	opts.Issued, err = replay.SendBefore(ctx, store, first, opts.Changes, opts.Options, func(n int64, plan *replay.Plan) (*replay.Result, error) {
		shown := plan.Description()
		if f.Live && shown.Refusal == "" {
			replaytext.Plan(a.Err, &shown, true)
		}
		result, err := a.Send(ctx, plan, f.out)
		if err != nil {
			return nil, fmt.Errorf("cannot send exchange %d, which --after names: %w", n, err)
		}
		a.Say("exchange %d (first because of --after): %s", n, replaytext.Comparison(result))
		if !result.Comparison.Answered() {
			sayHint(a, result, shown.URL)
			if f.json {
				err = a.Print(&contract.ReplayResult{Result: result, After: n})
			}
			return nil, errors.Join(err, comparisonStatus(result))
		}
		return result, nil
	})
	return err
}

// numbered joins numbers, separated by the text by.
func numbered(numbers []int64, by string) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(words, by)
}
