package store

import (
	"path/filepath"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/internal/require"
)

// A capture of which a recorder that was killed has a part is completed: what had ended is
// not touched, what was cut off is recorded anew under its number, with what was noted about
// it, and what is missing is added.
func TestResume(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a.uwc")
	began := time.Now().UTC().Truncate(time.Microsecond)
	exchange := func(n int) captures.Exchange {
		return captures.Exchange{
			Method: "GET", URL: "https://h/", HTTP: "2", Client: "10.0.0.1:1234", Server: "h:443", Source: "passive",
			Started: began.Add(time.Duration(n) * time.Millisecond),
		}
	}
	record := func(to captures.Recorder, n int, end captures.Outcome, chunks ...string) int64 {
		t.Helper()
		r := require.Value(to.Begin(exchange(n)))(t)
		r.Response(200, captures.Headers{{Name: "content-type", Value: "text/plain"}})
		for i, c := range chunks {
			r.ChunkAt(captures.Down, time.Duration(i)*time.Millisecond, []byte(c))
		}
		if end != captures.InFlight {
			r.EndAt(time.Second, end, "")
		}
		return r.ID()
	}

	s := require.Value(Create(path, Options{}))(t)
	unrelated := record(s, -10_000, captures.InFlight, "before")
	whole := record(s, 0, captures.Complete, "whole")
	r := require.Value(s.Begin(exchange(1)))(t)
	r.Process(captures.Process{PID: 7, Name: "client"})
	r.Response(200, nil)
	r.ChunkAt(captures.Down, 0, []byte("one, "))
	cut := r.ID()
	twin := record(s, 1, captures.Reset, "a stream of the same packet")
	require.NoError(t, s.PutNote(ctx, captures.Note{Place: captures.Place{Exchange: cut, Frame: captures.NoFrame}, Kind: captures.TextNote, Value: "mine"}))
	require.NoError(t, s.Close()) // ends what is open, as the next recorder would
	s = require.Value(Create(path, Options{}))(t)
	to := require.Value(s.Resume(ctx, "passive", began))(t)
	for i := range 2 { // it can be cut off itself
		if i == 1 {
			require.NoError(t, s.Close())
			s = require.Value(Create(path, Options{}))(t)
			to = require.Value(s.Resume(ctx, "passive", began))(t)
		}
		same(t, whole, record(to, 0, captures.Complete, "whole"))
		end := captures.InFlight
		if i == 1 {
			end = captures.Complete
		}
		same(t, cut, record(to, 1, end, "one, ", "two, ", "three"))
		same(t, twin, record(to, 1, captures.Reset, "a stream of the same packet"))
	}
	added := record(to, 2, captures.Complete, "added")
	a, c := to.Counts()
	same(t, [2]int{1, 1}, [2]int{a, c})
	require.NoError(t, s.Close())

	s = require.Value(Open(path, ReadOptions{}))(t)
	defer func() { require.NoError(t, s.Close()) }()
	want := map[int64]string{unrelated: "before", whole: "whole", cut: "one, two, three", twin: "a stream of the same packet", added: "added"}
	for ex, err := range s.Exchanges(ctx) {
		require.NoError(t, err)
		text := ""
		for c, err := range s.Chunks(ctx, ex.ID, 0) {
			require.NoError(t, err)
			text += string(c.Data)
		}
		same(t, want[ex.ID], text)
		same(t, int64(len(text)), ex.BytesDown)
		delete(want, ex.ID)
		if ex.ID == cut {
			same(t, captures.Complete, ex.Outcome)
			same(t, captures.Process{PID: 7, Name: "client"}, ex.Process)
		}
	}
	same(t, 0, len(want))
	same(t, "mine", require.Value(s.Notes(ctx, cut))(t)[0].Value)

	// A follower is told of each exchange once.
	began2, ended := map[int64]int{}, map[int64]int{}
	for e, err := range s.Follow(ctx, time.Millisecond) {
		require.NoError(t, err)
		switch e.Kind {
		case captures.Began:
			began2[e.Exchange.ID]++
		case captures.Ended:
			ended[e.Exchange.ID]++
		}
		if len(ended) == 5 {
			break
		}
	}
	for id, n := range began2 {
		same(t, [2]int{1, 1}, [2]int{n, ended[id]})
	}
}

func same[T comparable](t *testing.T, want, got T) {
	t.Helper()
	if want != got {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}
