package replaycmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/replay"
	"unwire/replay/live"
)

// afterAuto is the value of --after that has the exchanges found.
const afterAuto = "auto"

// sendFirst sends the exchanges that --after names, in their order, each with
// what those before it issued, and has opts know what they do.
func sendFirst(ctx context.Context, a *app.App, store *store.Store, id int64, f ReplayFlags, opts *ReplaySettings) error {
	first, err := firstExchanges(ctx, store, id, f.after)
	if err != nil || len(first) == 0 {
		return err
	}
	if f.dryRun {
		a.Say("exchange %s would be sent first, and the live ids put in", numbered(first, ", "))
		return nil
	}
	return replayFirst(ctx, store, first, opts, func(n int64, plan *replay.Plan) error {
		shown := plan.Description()
		if f.Live && shown.Refusal == "" {
			if err := printPlan(a.Err, &shown, true); err != nil {
				return err
			}
		}
		result, err := Send(ctx, a, plan, f.out)
		if err != nil {
			return fmt.Errorf("exchange %d, to be sent first: %w", n, err)
		}
		a.Say("exchange %d, sent first: %s", n, ComparisonLine(result))
		if !result.Comparison.Answered() {
			sayHint(a, result, shown.URL)
			return comparisonStatus(result)
		}
		result.LearnIDs(opts.Issued)
		return nil
	})
}

// replayFirst plans exchanges in their order, each with what those before it
// issued, and has them sent; opts.Issued then knows what all did.
func replayFirst(ctx context.Context, store *store.Store, first []int64, opts *ReplaySettings, send func(n int64, plan *replay.Plan) error) error {
	opts.Issued = &live.IDs{}
	plain := *opts
	plain.Edits, plain.Editor, plain.Codec, plain.Message = nil, nil, "", nil
	for _, n := range first {
		plan, err := plain.Plan(ctx, store, n)
		if err != nil {
			return err
		}
		if err := send(n, plan); err != nil {
			return err
		}
	}
	return nil
}

// firstExchanges are those that --after names.
func firstExchanges(ctx context.Context, store *store.Store, id int64, names []string) (first []int64, err error) {
	for _, name := range names {
		if name == afterAuto {
			found, err := live.Issuers(ctx, store, id)
			if err != nil {
				return nil, err
			}
			first = append(first, found...)
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(name), 10, 64)
		if err != nil || n < 1 || n == id {
			return nil, app.Usagef("--after wants the numbers of other exchanges, or auto, not %q", term.Clean(name))
		}
		first = append(first, n)
	}
	return first, nil
}

// numbered joins numbers.
func numbered(numbers []int64, by string) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(words, by)
}
