// Package suite runs suites of experiments. An experiment is a file that says which
// captured exchange to send again, with which edits, and what to expect of the
// answer; a suite is a folder of them.
//
// Files and captures go in; Run sends one after the other, and hands out an Outcome
// for each.
//
// An experiment is parsed, sent and checked against its expectations here; the edits
// in it are those of package replay/edit, and sending is package replay's.
package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"unwire/captures/store"
	"unwire/replay"
)

// Suffix is how the names of experiments end.
const Suffix = ".replay"

// Options say how the experiments of a suite are run. Open is needed.
type Options struct {
	// Changes and Replay are those of every request; an experiment has its own edits.
	Changes replay.Changes
	Replay  replay.Options

	// Capture is the capture of the experiments that name none; the default is that
	// these fail.
	Capture string

	// Open opens a capture for reading.
	Open func(path string) (*store.Store, error)

	// Learn sends each unedited request twice first, once for all experiments of an
	// exchange, and ignores what differs without the edit.
	Learn bool

	// Answers is the capture to which the answers are added; it may be nil.
	Answers *store.Store
}

// An Outcome is what an experiment came to.
type Outcome struct {
	File  string // without its folder
	About string // its first comment

	// Err is why it was not run; nil if it was.
	Err error

	// Failed are the expectations that were not met, in words.
	Failed []string

	// Result is that of the replay; nil if it was not run.
	Result *replay.Result

	Duration time.Duration
}

// An UnansweredError says that an exchange which is sent before the experiment's own
// got no answer that can be relied on.
type UnansweredError struct {
	Exchange int64
	Result   *replay.Result
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("exchange %d, sent first: %s", e.Exchange, e.Result.Comparison)
}

// Run runs experiments one after the other, and calls each with what came of them.
//
// Errors: ctx's; those of each, which end it.
func Run(ctx context.Context, files []string, o Options, each func(*Outcome) error) error {
	r := &runner{Options: o, lessons: map[string]lesson{}}
	for _, file := range files {
		outcome := r.run(ctx, file)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := each(outcome); err != nil {
			return err
		}
	}
	return nil
}

// A runner is the run of a suite.
type runner struct {
	Options

	// lessons are learnt so far, by capture and exchange.
	lessons map[string]lesson
}

// A lesson is what the unedited request of an exchange taught, or why it did not.
type lesson struct {
	*replay.Lesson
	err error
}

func (r *runner) run(ctx context.Context, file string) *Outcome {
	start := time.Now()
	o := &Outcome{File: filepath.Base(file)}
	x, result, err := r.send(ctx, file)
	o.Duration = time.Since(start)
	if x != nil {
		o.About = x.About
	}
	if o.Err = err; err == nil {
		o.Result, o.Failed = result, x.check(result)
	}
	return o
}

// send carries out an experiment. The experiment is returned with an error, too, once
// it was read.
func (r *runner) send(ctx context.Context, file string) (*Experiment, *replay.Result, error) {
	x, path, err := Read(file, r.Capture)
	if err != nil {
		return x, nil, err
	}
	store, err := r.Open(path)
	if err != nil {
		return x, nil, err
	}
	defer store.Close() //nolint:errcheck // it was only read

	changes, options := r.Changes, r.Replay
	before, err := replay.ExchangesBefore(ctx, store, x.Exchange, x.After)
	if err != nil {
		return x, nil, err
	}
	if changes.Issued, err = replay.SendBefore(ctx, store, before, changes, options, r.sendBefore(ctx)); err != nil {
		return x, nil, err
	}
	if r.Learn {
		if options.Lesson, err = r.lesson(ctx, store, path, x.Exchange, changes, options); err != nil {
			return x, nil, err
		}
	}

	changes.Edits = x.Edits
	request, err := replay.NewRequest(ctx, store, x.Exchange, changes)
	if err != nil {
		return x, nil, err
	}
	plan, err := request.Plan(ctx, options)
	if err != nil {
		return x, nil, err
	}
	result, err := plan.Send(ctx, r.Answers)
	return x, result, err
}

// sendBefore sends what goes before an experiment's own request.
func (r *runner) sendBefore(ctx context.Context) func(int64, *replay.Plan) (*replay.Result, error) {
	return func(id int64, plan *replay.Plan) (*replay.Result, error) {
		result, err := plan.Send(ctx, r.Answers)
		if err == nil && !result.Comparison.Answered() {
			err = &UnansweredError{Exchange: id, Result: result}
		}
		return result, err
	}
}

// lesson is what the unedited request of an exchange teaches; it is sent for the
// first experiment that needs it.
func (r *runner) lesson(ctx context.Context, store *store.Store, path string, id int64, c replay.Changes, o replay.Options) (*replay.Lesson, error) {
	key := fmt.Sprintf("%s#%d", filepath.Clean(path), id)
	l, ok := r.lessons[key]
	if !ok {
		var request *replay.Request
		if request, l.err = replay.NewRequest(ctx, store, id, c); l.err == nil {
			l.Lesson, l.err = replay.Learn(ctx, request, o, nil)
		}
		r.lessons[key] = l
	}
	return l.Lesson, l.err
}

// Read reads an experiment, and returns the path of its capture, too: it is the
// suite's where the experiment names none.
func Read(file, suite string) (x *Experiment, capture string, err error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer r.Close() //nolint:errcheck // it was only read
	if x, err = parse(r); err != nil {
		return nil, "", err
	}
	capture = suite
	if x.Capture != "" {
		if capture = filepath.FromSlash(x.Capture); !filepath.IsAbs(capture) {
			capture = filepath.Join(filepath.Dir(file), capture)
		}
	}
	if capture == "" {
		return x, "", errors.New("it names no capture, and --default-capture is not given")
	}
	return x, capture, nil
}

// Files lists the experiments of a folder, in the order of their names.
func Files(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err == nil && len(files) == 0 {
		_, err = os.ReadDir(dir)
		err = errors.Join(err, fmt.Errorf("%s has no file that ends in %s", dir, Suffix))
	}
	return files, err
}
