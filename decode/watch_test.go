package decode

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"unwire/captures"
)

// watched are three calls: the first has two frames down, the others one.
func watched() []*one {
	streamed := h("content-type", "application/connect+proto")
	unary := h("content-type", "application/proto")
	list := []*one{
		call("POST", "/demo.v1.Service/Run", streamed, streamed, 200, ">00 00000002 0801", "<00 00000002 0802", "<02 00000002 7b7d"),
		call("POST", "/demo.v1.Service/Append", unary, unary, 200, ">0801", "<0802"),
		call("POST", "/demo.v1.Service/Get", unary, unary, 200, ">0801", "<0802"),
	}
	for i, o := range list {
		o.ex.ID = int64(i + 1)
		for k := range o.chunks {
			o.chunks[k].Exchange = o.ex.ID
		}
	}
	return list
}

// eventsOf are the events of the calls, one exchange behind the other.
func eventsOf(calls []*one, end error) iter.Seq2[captures.Event, error] {
	return func(yield func(captures.Event, error) bool) {
		for _, o := range calls {
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
	p := watched()
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
	p := watched()
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
