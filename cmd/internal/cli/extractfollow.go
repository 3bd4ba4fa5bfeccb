package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/score"
)

const (
	followEvery = 50 * time.Millisecond
	followShare = 8 // of the time, one part of so many is spent on scoring
)

// A tail is an exchange that is followed.
type tail struct {
	stream  *decode.Stream
	ex      *decode.Exchange
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
	store, err := openCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	if addr.Exchange != 0 {
		if _, err := store.Exchange(ctx, addr.Exchange); err != nil {
			return err
		}
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
	f := &follower{extraction: e, tails: make(map[int64]*tail)}
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
			ended, err := f.event(n.Event, addr.Exchange)
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

// A follower holds the exchanges that are going on.
type follower struct {
	*extraction
	tails map[int64]*tail
	last  int64 // the exchange whose answer is on the terminal's last line
}

// event takes what was recorded; ended says that the one exchange that is wanted
// has ended.
func (f *follower) event(ev captures.Event, only int64) (ended bool, err error) {
	id := ev.Chunk.Exchange
	if ev.Exchange != nil {
		id = ev.Exchange.ID
	}
	if only != 0 && id != only {
		return false, nil
	}
	t := f.tails[id]
	switch {
	case ev.Kind == captures.Began:
		f.tails[id] = &tail{stream: decode.NewStream(ev.Exchange, decode.Options{}), ex: &decode.Exchange{Exchange: *ev.Exchange}}
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
	t.ex.Code, t.ex.Message = t.stream.Verdict()
	err = f.end(t)
	delete(f.tails, id)
	return only != 0, err
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
		if !t.dirty || !last && now.Before(t.next) {
			continue
		}
		if _, err := f.print(t, last); err != nil {
			return err
		}
		cost := time.Since(now)
		t.next = time.Now().Add(followShare * cost)
	}
	return nil
}

// print scores a tail and prints what its answer has more than was printed.
func (f *follower) print(t *tail, whole bool) (*score.Transcript, error) {
	t.dirty = false
	t.ex.Call = t.stream.Call()
	tr := score.Extract(t.ex, f.options)
	answer := tr.Answer
	if !whole {
		answer = strings.TrimRight(answer, "\uFFFD") // a rune whose rest is to come
	}
	if answer == t.printed || answer == "" && !whole {
		return tr, nil
	}
	more, goesOn := strings.CutPrefix(answer, t.printed)
	before := t.printed
	t.printed = answer
	if f.json {
		line := answerLine{1, "delta", t.ex.ID, more}
		if !goesOn {
			line.Event, line.Delta = "reset", answer
		}
		return tr, f.printJSON(line)
	}
	if f.last != t.ex.ID {
		if f.last != 0 {
			fmt.Fprintln(f.out)
		}
		f.say("#%d %s", t.ex.ID, term.Clean(callName(t.ex)))
		if f.last = t.ex.ID; goesOn && before != "" {
			more = "… " + more
		}
	}
	if !goesOn {
		f.say("\nunwire: that was not the answer; it is rather:")
		more = answer
	}
	_, err := fmt.Fprint(f.out, term.CleanText(more))
	return tr, err
}

// end prints the rest of an exchange that has ended.
func (f *follower) end(t *tail) error {
	tr, err := f.print(t, true)
	if err != nil {
		return err
	}
	if f.json {
		return f.printJSON(f.line(t.ex, tr))
	}
	if f.last == t.ex.ID && t.printed != "" && !strings.HasSuffix(t.printed, "\n") {
		fmt.Fprintln(f.out)
	}
	if f.last == t.ex.ID {
		f.last = 0
	}
	if tr.Error != nil {
		f.say("#%d ended in %s: %s", t.ex.ID, term.Clean(tr.Error.Code), term.Clean(tr.Error.Message))
	}
	return nil
}
