package conversation

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/proto"
)

// A Lister lists what a new listing lists, at any time of a recording, and reports all that changes.
func TestListerOfAGrowingCapture(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPieces(rt)
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.uwc", time.Now().UnixNano()))
		s, err := store.Create(path, store.Options{Profile: proto.Profile(), KeepSecrets: true})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // the test ends
		l := NewLister(s)
		var mirror []*Listed

		compare := func() {
			if err := s.Flush(t.Context()); err != nil {
				rt.Fatal(err)
			}
			err := l.Update(t.Context(), func(positions []int) {
				for _, i := range positions {
					for len(mirror) <= i {
						mirror = append(mirror, nil)
					}
					mirror[i] = l.Exchanges()[i]
				}
			})
			if err != nil {
				rt.Fatal(err)
			}
			if !slices.Equal(mirror, l.Exchanges()) {
				rt.Fatal("not all changes were reported")
			}
			fresh, err := ListExchanges(t.Context(), s)
			if err != nil {
				rt.Fatal(err)
			}
			got := &List{}
			for i, ex := range l.Exchanges() {
				got.Exchanges = append(got.Exchanges, *ex)
				if l.Position(ex.ID) != i {
					rt.Fatalf("exchange %d is at %d, not at %d", ex.ID, i, l.Position(ex.ID))
				}
			}
			if want := asText(t, fresh); asText(t, got) != want {
				rt.Fatalf("%s\nwant\n%s", asText(t, got), want)
			}
		}
		compare()
		open := map[int]captures.Recording{}
		next := make([]int, len(p.list))
		for range rapid.IntRange(0, 30).Draw(rt, "steps") {
			if len(p.list) == 0 {
				break
			}
			i := rapid.IntRange(0, len(p.list)-1).Draw(rt, "exchange")
			o := p.list[i]
			rec := open[i]
			switch {
			case rec == nil:
				if rec, err = s.Begin(o.ex); err != nil {
					rt.Fatal(err)
				}
				open[i] = rec
			case next[i] < len(o.chunks):
				c := o.chunks[next[i]]
				rec.ChunkAt(c.Dir, c.T, c.Data)
				next[i]++
			default:
				rec.EndAt(o.ex.Duration, o.ex.Outcome, o.ex.Error)
			}
			if rapid.Bool().Draw(rt, "update") {
				compare()
			}
		}
		compare()
	})
}

// An update reads nothing of exchanges that have not changed.
func TestListerReadsWhatChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test ends
	record := func() captures.Recording {
		rec, err := s.Begin(captures.Exchange{Method: "GET", URL: "https://h/x"})
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	first := record()
	for range 2000 {
		record().End(captures.Complete, "")
	}
	l := NewLister(s)
	update := func() (reported []int) {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Update(t.Context(), func(positions []int) { reported = append(reported, positions...) }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(reported)
		return slices.Compact(reported)
	}
	if n := len(update()); n != 2001 {
		t.Errorf("%d exchanges are listed", n)
	}
	first.Chunk(captures.Up, []byte("x"))
	record()
	if got := update(); !slices.Equal(got, []int{0, 2001}) {
		t.Errorf("the positions %v have changed", got)
	}
	if got := update(); got != nil {
		t.Errorf("nothing has changed, but %v is reported", got)
	}
}
