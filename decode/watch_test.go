package decode

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"unwire/captures"
)

// eventsOf are the events of p's exchanges, one exchange behind the other.
func eventsOf(p *pieces, end error) iter.Seq2[captures.Event, error] {
	return func(yield func(captures.Event, error) bool) {
		for _, o := range p.list {
			list := []captures.Event{{Kind: captures.Began, Exchange: &o.ex}, {Kind: captures.Responded, Exchange: &o.ex}}
			for _, c := range o.chunks {
				list = append(list, captures.Event{Kind: captures.Received, Chunk: c})
			}
			for _, e := range append(list, captures.Event{Kind: captures.Ended, Exchange: &o.ex}) {
				if !yield(e, nil) {
					return
				}
			}
		}
		if end != nil {
			yield(captures.Event{}, end)
		}
	}
}

// TestWatch: the functions are called in the order of what happens, of all exchanges
// or of one.
func TestWatch(t *testing.T) {
	p := walkedCapture()
	all := []string{
		"1 began", "1 responded", "1 up 0", "1 down 0", "1 down 1", "1 ended",
		"2 began", "2 responded", "2 up 0", "2 down 0", "2 ended",
		"3 began", "3 responded", "3 up 0", "3 down 0", "3 ended",
	}
	for id, want := range map[int64][]string{0: all, 3: all[11:]} {
		var got []string
		note := func(ex *captures.Exchange, what string) error {
			got = append(got, fmt.Sprintf("%d %s", ex.ID, what))
			return nil
		}
		err := Watch(eventsOf(p, nil), id, Watcher{
			Began:     func(ex *captures.Exchange, _ Call) error { return note(ex, "began") },
			Responded: func(ex *captures.Exchange, _ Call) error { return note(ex, "responded") },
			Frame: func(ex *captures.Exchange, _ Call, f *Frame) error {
				return note(ex, fmt.Sprintf("%s %d", f.Dir, f.Seq))
			},
			Ended: func(ex *captures.Exchange, _ *Stream) error { return note(ex, "ended") },
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d: %q, %v", id, got, err)
		}
	}
	if err := Watch(eventsOf(p, nil), 0, Watcher{}); err != nil {
		t.Error(err)
	}
}

// TestWatchErrors: an error among the events ends it, as does one of a function.
func TestWatchErrors(t *testing.T) {
	p := walkedCapture()
	broken := errors.New("broken")
	if err := Watch(eventsOf(p, broken), 0, Watcher{}); !errors.Is(err, broken) {
		t.Error(err)
	}
	n := 0
	err := Watch(eventsOf(p, nil), 0, Watcher{Frame: func(*captures.Exchange, Call, *Frame) error { n++; return broken }})
	if !errors.Is(err, broken) || n != 1 {
		t.Errorf("%d frames, %v", n, err)
	}
}
