package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/transcript"
)

const (
	followEvery = 50 * time.Millisecond
	followShare = 8 // of the time, one part of so many is spent on scoring
)

// A tail is an exchange that is followed.
type tail struct {
	stream  *decode.Stream
	ex      *decode.Exchange
	piece   bool // of a conversation, which is followed in its place
	dirty   bool // frames came since it was scored
	printed string
	next    time.Time // when it may be scored again
}

// An answerLine is a line of `unwire extract --follow --json`.
type answerLine struct {
	V        int    `json:"v"`
	Event    string `json:"event"` // "delta": more of the answer; "reset": what came before was not the answer, and this is
	Exchange int64  `json:"exchange"`
	Delta    string `json:"delta"`
}

// following prints answers while they are recorded.
func (e *extraction) following(ctx context.Context, addr address) error {
	store, err := e.awaitCapture(ctx, addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := e.expect(ctx, store, addr.Exchange); err != nil {
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
		for ev, err := range store.Follow(ctx, followEvery) {
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
	f := &follower{extraction: e, only: addr.Exchange, tails: make(map[int64]*tail), pieces: pieces{heads: make(map[int64]*tail)}}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case n, ok := <-feed:
			if !ok {
				return f.flush(true)
			}
			if n.err != nil {
				return n.err
			}
			ended, err := f.event(n.Event)
			if err != nil || ended {
				return err
			}
		case <-ticker.C:
			if err := f.flush(false); err != nil {
				return err
			}
		}
	}
}

// expect says that an exchange is waited for, or, where nothing goes on in the
// capture, that it does not have it.
func (e *extraction) expect(ctx context.Context, store *captures.Store, id int64) error {
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
	e.say("unwire: waiting for exchange %d", id)
	return nil
}

// A follower holds the exchanges that are going on.
type follower struct {
	*extraction
	tails  map[int64]*tail
	pieces pieces
	only   int64 // the one exchange that is wanted; 0 for all
	last   int64 // the exchange whose answer is on the terminal's last line
}

// event takes what was recorded; ended says that the one exchange that is wanted
// has ended.
func (f *follower) event(ev captures.Event) (ended bool, err error) {
	id := ev.Chunk.Exchange
	if ev.Exchange != nil {
		id = ev.Exchange.ID
	}
	t := f.tails[id]
	switch {
	case ev.Kind == captures.Began:
		t = &tail{stream: decode.NewStream(ev.Exchange, decode.Options{}), ex: &decode.Exchange{Exchange: *ev.Exchange}, piece: f.isPiece(ev.Exchange)}
		t.ex.Call = t.stream.Call()
		if f.only != 0 && id != f.only && !t.piece {
			return false, nil
		}
		if f.tails[id] = t; t.piece {
			f.pieces.add(t.ex)
		}
		return false, nil
	case t == nil:
		return false, nil
	case ev.Kind == captures.Received:
		t.add(t.stream.Feed(ev.Chunk))
		return false, nil
	}
	t.stream.Update(ev.Exchange)
	t.ex.Exchange = *ev.Exchange
	if ev.Kind != captures.Ended {
		return false, nil
	}
	t.add(t.stream.Close())
	t.ex.Call = t.stream.Call()
	t.ex.Code, t.ex.Message = t.stream.Verdict()
	delete(f.tails, id)
	if f.only != 0 && id != f.only {
		_, _ = f.whole(t) // what it is a piece of has more to say
		return false, nil
	}
	return f.only != 0, f.end(t)
}

func (t *tail) add(frames []decode.Frame) {
	for i := range frames {
		// A frame may alias its chunk, which is this exchange's alone.
		t.ex.Frames = append(t.ex.Frames, frames[i])
		t.dirty = true
	}
}

// flush prints what has come of each answer.
func (f *follower) flush(last bool) error {
	now := time.Now()
	for _, id := range slices.Sorted(maps.Keys(f.tails)) {
		t := f.tails[id]
		if !t.dirty || !last && now.Before(t.next) || f.only != 0 && id != f.only {
			continue
		}
		if _, _, err := f.print(t, last); err != nil {
			return err
		}
		cost := time.Since(now)
		t.next = time.Now().Add(followShare * cost)
	}
	return nil
}

// print scores a tail, or the conversation that it is of, and prints what its
// answer has more than was printed. It returns nothing for a piece that is printed
// with another.
func (f *follower) print(t *tail, whole bool) (*decode.Exchange, *transcript.Transcript, error) {
	t.dirty = false
	t.ex.Call = t.stream.Call()
	ex, state := f.whole(t)
	if ex == nil {
		return nil, nil, nil
	}
	tr := transcript.Extract(ex, f.options)
	answer := tr.Answer
	if !whole {
		answer = strings.TrimRight(answer, "\uFFFD") // a rune whose rest is to come
	}
	if answer == state.printed || answer == "" && !whole {
		return ex, tr, nil
	}
	more, goesOn := strings.CutPrefix(answer, state.printed)
	before := state.printed
	state.printed = answer
	if f.json {
		line := answerLine{1, "delta", ex.ID, more}
		if !goesOn {
			line.Event, line.Delta = "reset", answer
		}
		return ex, tr, f.printJSON(line)
	}
	if f.last != ex.ID {
		if f.last != 0 {
			fmt.Fprintln(f.out)
		}
		f.say("#%d %s", ex.ID, term.Clean(callName(ex)))
		if f.last = ex.ID; goesOn && before != "" {
			more = "… " + more
		}
	}
	if !goesOn {
		f.say("\nunwire: that was not the answer; it is rather:")
		more = answer
	}
	_, err := fmt.Fprint(f.out, term.CleanText(more))
	return ex, tr, err
}

// end prints the rest of an exchange that has ended.
func (f *follower) end(t *tail) error {
	ex, tr, err := f.print(t, true)
	if err != nil || ex == nil {
		return err
	}
	if f.json {
		return f.printJSON(f.line(ex, tr))
	}
	if f.last == ex.ID && tr.Answer != "" && !strings.HasSuffix(tr.Answer, "\n") {
		fmt.Fprintln(f.out)
	}
	if f.last == ex.ID {
		f.last = 0
	}
	if tr.Error != nil {
		f.say("#%d ended in %s: %s", ex.ID, term.Clean(tr.Error.Code), term.Clean(tr.Error.Message))
	}
	return nil
}
