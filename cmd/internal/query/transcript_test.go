package query

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/transcript"
	"unwire/decode/transcript/follow"
)

// TestTranscript: each exchange has a transcript, alone or among all, and its candidates
// become labels.
func TestTranscript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "What is said in the middle of the night?", "And what is said in the morning?")
	c := open(t, path)
	var each []string
	err := c.EachTranscript(t.Context(), TranscriptOptions{}, func(ex *decode.Exchange, tr *transcript.Transcript) error {
		one, alone, err := c.Transcript(t.Context(), Address{File: path, Exchange: ex.ID}, TranscriptOptions{})
		if err != nil || one.ID != ex.ID || len(alone.Candidates) != len(tr.Candidates) {
			t.Errorf("exchange %d: %v", ex.ID, err)
		}
		each = append(each, tr.Candidates[0].Text)
		return nil
	})
	if err != nil || len(each) != 2 || each[0] != "What is said in the middle of the night?" {
		t.Errorf("%q, %v", each, err)
	}
	ex, tr, err := c.Transcript(t.Context(), Address{File: path, Exchange: 3}, TranscriptOptions{})
	if ex != nil || tr != nil || !errors.Is(err, captures.ErrNoExchange) {
		t.Errorf("exchange 3: %v", err)
	}

	for _, l := range []struct {
		dir, path string
		want      int
	}{{"", "1", 1}, {"up", "1", 1}, {"down", "1", 0}, {"", "2", 0}} {
		lines, n, err := c.LabelLines(t.Context(), Label{At: Address{File: path, Exchange: 2}, Dir: l.dir, Path: l.path, Role: transcript.User}, TranscriptOptions{})
		if err != nil || n != l.want || strings.Count(string(lines), "\n") != n {
			t.Errorf("%s/%s: %d labels, %v: %s", l.dir, l.path, n, err, lines)
		}
		if labels, err := transcript.ParseLabels(lines); err != nil || len(labels) != n || n > 0 && (labels[0].Source != "a.uwc#2" || labels[0].Role != transcript.User) {
			t.Errorf("%s/%s: %+v, %v", l.dir, l.path, labels, err)
		}
	}
}

// TestMayCome: an exchange is waited for before anything is recorded, and as long as a process records to the
// capture, also if no exchange is in flight at that moment.
func TestMayCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := open(t, path)
	check := func(id int64, want bool, wantErr error) {
		t.Helper()
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := c.MayCome(t.Context(), id); got != want || !errors.Is(err, wantErr) {
			t.Errorf("exchange %d may come: %v, %v; want %v, %v", id, got, err, want, wantErr)
		}
	}
	check(1, true, nil)
	rec, err := s.Begin(captures.Exchange{Method: "GET", URL: "https://h.example/", Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	check(1, false, nil)
	check(2, true, nil)
	rec.End(captures.Complete, "")
	check(2, true, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.MayCome(t.Context(), 2); got || !errors.Is(err, captures.ErrNoExchange) {
		t.Errorf("after the recording, exchange 2 may come: %v, %v", got, err)
	}
}

// TestFollowAnswers: without an exchange it goes on until its context ends, and an error
// of update ends it.
func TestFollowAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.uwc")
	record(t, path, "What is said in the middle of the night?")
	c := open(t, path)
	ended := 0
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := c.FollowAnswers(ctx, 0, TranscriptOptions{}, func(u *follow.Update, end bool) error {
		if end && u.Exchange.ID == 1 {
			ended++
			stop()
		}
		return nil
	})
	if err != nil || ended != 1 {
		t.Errorf("%d ended, %v", ended, err)
	}
	failed := errors.New("failed")
	if err := c.FollowAnswers(t.Context(), 1, TranscriptOptions{}, func(*follow.Update, bool) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v, want what update returned", err)
	}
}
