// Package suite runs suites of experiments. An experiment is a file that names a captured exchange
// to send again, edits to the request, and expectations about the answer. A suite is a folder of
// experiments.
//
// Files and captures go in; Run sends one experiment after the other, and reports an Outcome for
// each. This package parses experiments and checks the expectations; replay/edit applies the edits,
// and package replay sends the requests.
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

// Suffix is the file name extension of experiments.
const Suffix = ".replay"

// Options describe how a suite, i.e. a list of experiments, is run. Open is required.
type Options struct {
	// Changes apply to every request of the suite; each experiment adds its own edits.
	Changes replay.Changes
	// Replay are the options for each replay.
	Replay replay.Options

	// Capture is the path of the capture for experiments that name none; if it is "", these experiments
	// fail.
	Capture string

	// Open opens a capture file for reading.
	Open func(path string) (*store.Store, error)

	// Learn sends each unedited request twice before, once for all experiments of an exchange, and
	// ignores the differences that occur even without the edit.
	Learn bool

	// Answers is the capture in which responses are recorded; nil records nothing.
	Answers *store.Store
}

// An Outcome is the result of one experiment.
type Outcome struct {
	// File is the name of the experiment's file without its folder.
	File string
	// About is the description of the experiment.
	About string

	// Err is the reason why the experiment was not executed; nil if it was.
	Err error

	// Failed describes the expectations that were not met.
	Failed []string

	// Result is the result of the replay; nil if the experiment was not executed.
	Result *replay.Result

	// Duration is the time that the experiment took.
	Duration time.Duration
}

// An UnansweredError reports that an exchange that had to be sent before the experiment got no usable
// response.
type UnansweredError struct {
	// Exchange is the number of the exchange without a response.
	Exchange int64
	// Result is the result of replaying that exchange.
	Result *replay.Result
}

// Error describes the exchange and the failure.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("exchange %d, sent first: %s", e.Exchange, e.Result.Comparison)
}

// Run executes the experiments in files one after the other, and calls each with every outcome.
//
// Errors: the error of ctx, or of each, which ends the run.
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

// A runner executes a suite.
type runner struct {
	// Options are the options of the suite.
	Options

	// lessons caches, by capture and exchange, the differences that occur without any edit.
	lessons map[string]lesson
}

// A lesson is the result of replay.Learn for an exchange, or its error.
type lesson struct {
	// Lesson is the result; nil if there was an error.
	*replay.Lesson

	// err is the error of replay.Learn; nil for none.
	err error
}

// run executes the experiment in a file, and returns its outcome.
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

// send executes an experiment. Once the file was parsed, the experiment is also returned with an error.
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

	// Exchanges that issue ids which this one uses go first.
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

	// Only the experiment's own request is edited.
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

// sendBefore returns the function that sends the exchanges which an experiment needs before its own
// request.
func (r *runner) sendBefore(ctx context.Context) func(int64, *replay.Plan) (*replay.Result, error) {
	return func(id int64, plan *replay.Plan) (*replay.Result, error) {
		result, err := plan.Send(ctx, r.Answers)
		if err == nil && !result.Comparison.Answered() {
			err = &UnansweredError{Exchange: id, Result: result}
		}
		return result, err
	}
}

// lesson returns the lesson for exchange id of the capture at path. The requests are sent when the
// first experiment needs it.
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

// Read parses the file of an experiment, and returns the experiment with the path of its capture. suite
// is the path for experiments that name none.
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
		return x, "", errors.New("the experiment names no capture, and --default-capture is not given")
	}
	return x, capture, nil
}

// Files returns the experiment files in a folder, sorted by name.
func Files(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err == nil && len(files) == 0 {
		info, statErr := os.Stat(dir)
		switch {
		case statErr != nil:
			err = statErr
		case !info.IsDir():
			err = fmt.Errorf("%s is a file, but a folder of experiments is needed: name the folder that contains the file", dir)
		default:
			err = fmt.Errorf("the folder %s contains no experiment, i.e. no file that ends in %s", dir, Suffix)
		}
	}
	return files, err
}
