package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode/transcript/follow"
	"unwire/proto"
)

// followEvery is how often what was recorded meanwhile is looked for, and printed.
const followEvery = 50 * time.Millisecond

// following prints answers while they are recorded.
func (e *extraction) following(ctx context.Context, addr query.Address) error {
	file, err := awaitCapture(ctx, e.App, addr.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := e.expect(ctx, file, addr.Exchange); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type news struct {
		captures.Event
		err error
	}
	feed := make(chan news)
	go func() {
		defer close(feed)
		for ev, err := range file.Follow(ctx, followEvery) {
			select {
			case feed <- news{ev, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		stop()
		for range feed { // the reader has ended before the store is closed
		}
	}()
	f := &follower{
		extraction: e,
		Follower:   follow.New(follow.Options{Profile: proto.Profile(), Scoring: e.options, Only: addr.Exchange, Parts: e.parts}),
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case n, ok := <-feed:
			if !ok {
				return f.Flush(true, f.print)
			}
			if n.err != nil {
				return n.err
			}
			update, done := f.Event(n.Event)
			if err := f.end(update); err != nil || done {
				return err
			}
		case <-ticker.C:
			if err := f.Flush(false, f.print); err != nil {
				return err
			}
		}
	}
}

// expect says that an exchange is waited for, or, where nothing goes on in the
// capture, that it does not have it.
func (e *extraction) expect(ctx context.Context, store *query.Capture, id int64) error {
	if id == 0 {
		return nil
	}
	_, missing := store.Exchange(ctx, id)
	if !errors.Is(missing, captures.ErrNoExchange) {
		return missing
	}
	some := false
	for ex, err := range store.Exchanges(ctx) {
		if err != nil {
			return err
		}
		if some = true; ex.Outcome == captures.InFlight {
			some = false
			break
		}
	}
	if some {
		return missing
	}
	e.Say("unwire: waiting for exchange %d", id)
	return nil
}

// A follower prints what a follow.Follower tells.
type follower struct {
	*extraction
	*follow.Follower

	// last is the exchange whose answer is on the terminal's last line.
	last int64
}

// print prints what an answer has more than was printed.
func (f *follower) print(u *follow.Update) error {
	if !u.Changed {
		return nil
	}
	if f.json {
		line := &contract.AnswerDelta{Event: "delta", Exchange: u.Exchange.ID, Delta: u.More}
		if u.Reset {
			line.Event = "reset"
		}
		return f.Print(line)
	}
	more := u.More
	if f.last != u.Exchange.ID {
		if f.last != 0 {
			fmt.Fprintln(f.Out)
		}
		f.Say("#%d %s", u.Exchange.ID, term.Clean(u.Exchange.CallName()))
		if f.last = u.Exchange.ID; !u.Reset && u.Before != "" {
			more = "… " + more
		}
	}
	if u.Reset {
		f.Say("\nunwire: that was not the answer; it is rather:")
	}
	_, err := fmt.Fprint(f.Out, term.CleanText(more))
	return err
}

// end prints the rest of an exchange that has ended, if there is one.
func (f *follower) end(u *follow.Update) error {
	if u == nil {
		return nil
	}
	if err := f.print(u); err != nil {
		return err
	}
	ex, tr := u.Exchange, u.Transcript
	if f.json {
		return f.Print(contract.NewTranscript(ex.ID, tr, f.defs))
	}
	if f.last == ex.ID && tr.Answer != "" && !strings.HasSuffix(tr.Answer, "\n") {
		fmt.Fprintln(f.Out)
	}
	if f.last == ex.ID {
		f.last = 0
	}
	if tr.Error != nil {
		f.Say("#%d ended in %s: %s", ex.ID, term.Clean(tr.Error.Code), term.Clean(tr.Error.Message))
	}
	return nil
}
