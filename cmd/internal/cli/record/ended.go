package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/safetext"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/capturetext"
	"unwire/decode/conversation"
	"unwire/proto"
)

// sayEnded prints a summary of the exchanges in files that were recorded since began, with remark,
// and returns their number. Older exchanges in the files are counted separately.
func sayEnded(ctx context.Context, a *app.App, f CaptureFlags, files []string, began time.Time, remark string) (int, error) {
	t, err := countExchanges(ctx, files, began)
	n := t.all - t.earlier
	if err != nil {
		return n, err
	}

	// The JSON event and the text have the same information.
	if f.json {
		return n, a.Print(&contract.Ended{
			Event: "ended", File: files[0], Exchanges: t.all, Incomplete: t.incomplete, Files: files,
			Outcomes: t.outcomes, Failures: t.failures,
			UnsearchedExchanges: f.Unsearched.exchanges, UnsearchedBytes: f.Unsearched.bytes,
		})
	}
	// The first files may have been uploaded or deleted.
	where := f.Out
	switch {
	case len(files) == 1:
		where = files[0]
	case len(files) > 1:
		where = fmt.Sprintf("%s, %s to %s", app.Counted(len(files), "file"), files[0], files[len(files)-1])
	}
	if t.earlier == 0 {
		a.Say("unwire: recorded %s in %s%s%s", app.Counted(t.all, "exchange"), where, remark, t.withoutEnd())
	} else {
		a.Say("unwire: added %s to %s, which now has %s%s%s", app.Counted(n, "exchange"), where, app.Counted(t.all, "exchange"), remark, t.withoutEnd())
	}
	if n > 0 {
		a.Say("unwire: how the calls ended: %s", t.counts)
	}

	// Each kind of failure is reported once, with its remedy.
	for i := range t.failures {
		capturetext.Failure(a.Err, &t.failures[i])
	}
	if text := f.Unsearched.summary(); text != "" {
		a.Say("unwire: %s", text)
	}
	if n > 0 {
		a.Say("unwire: to see the exchanges, run: unwire ls %s", shellWords(files))
	}
	return n, nil
}

// shellWords quotes file names for use in a shell, and joins them with spaces.
func shellWords(files []string) string {
	words := make([]string, len(files))
	for i, f := range files {
		words[i] = safetext.ShellFile(f)
	}
	return strings.Join(words, " ")
}

// A tally counts exchanges in capture files after a recording.
type tally struct {
	// all is the number of exchanges in the files.
	all int

	// earlier is the number of exchanges that existed before the recording.
	earlier int

	// incomplete is the number of exchanges that did not end normally.
	incomplete int

	// counts and the fields below cover only exchanges of this recording. counts has their number for each
	// status code.
	counts *capturetext.Counts

	// outcomes has the number of exchanges for each outcome, such as complete or failed.
	outcomes map[captures.Outcome]int

	// failures has the number of failed exchanges for each kind of reason.
	failures []contract.FailureCount
}

// withoutEnd returns a phrase with the number of exchanges that failed, were canceled, or whose end was not
// recorded; "" if there are none.
func (t *tally) withoutEnd() string {
	if t.incomplete == 0 {
		return ""
	}
	if t.all == 1 {
		return ", without a complete answer"
	}
	have := "have"
	if t.incomplete == 1 {
		have = "has"
	}
	return fmt.Sprintf("; %d %s no complete answer", t.incomplete, have)
}

// countExchanges counts the exchanges in the capture files of a recording that began at the given time.
// Exchanges in the first file that are older count as earlier.
func countExchanges(ctx context.Context, files []string, began time.Time) (*tally, error) {
	t := &tally{counts: new(capturetext.Counts), outcomes: map[captures.Outcome]int{}}
	for i, file := range files {
		s, err := store.Open(file, store.ReadOptions{Profile: proto.Profile()})
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was uploaded meanwhile
		}
		if err != nil {
			return t, err
		}
		for ex, err := range conversation.ListStored(ctx, s) {
			if err != nil {
				return t, errors.Join(err, s.Close())
			}
			t.add(file, &ex, i == 0 && ex.Started.Before(began))
		}
		if err := s.Close(); err != nil {
			return t, err
		}
	}
	return t, nil
}

// add counts an exchange in a file. earlier means that it existed before this recording.
func (t *tally) add(file string, ex *conversation.Listed, earlier bool) {
	t.all++
	if ex.Outcome != captures.Complete {
		t.incomplete++
	}
	if earlier {
		t.earlier++
		return
	}
	t.outcomes[ex.Outcome]++
	t.counts.Add(ex.Outcome, ex.Code)
	t.failures = capturetext.CountFailure(t.failures, file, ex.Exchange, ex.Code)
}

// isMissing reports whether a file does not exist.
func isMissing(name string) bool {
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// removeEmpty deletes a capture that was created (isNew) for a command that could not be started, unless
// it contains exchanges.
func removeEmpty(ctx context.Context, isNew bool, name string) error {
	if !isNew || isMissing(name) {
		return nil
	}
	t, err := countExchanges(context.WithoutCancel(ctx), []string{name}, time.Time{})
	if err != nil || t.all > 0 {
		return nil // it is not ours to remove
	}
	return os.Remove(name)
}
