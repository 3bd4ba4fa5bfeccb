// Package clientprobe finds out which fields of a server's answers a client reads. It runs the client again and
// again against a mock of a recorded session (package replay/mock), each time with one field of the answers removed,
// changed or of another type, and compares what the client does next: its requests, exit status and output.
//
//	probe := &clientprobe.Probe{Mock: server, Argv: argv, Run: run}
//	baseline, err := probe.Learn(ctx)
//	plan, err := probe.Plan(baseline)
//	result, err := probe.Run(ctx, plan)
//
// Unedited runs come first: what differs between them is volatile and does not count later. A plan lists the fields of
// the answers that the client got, and what would be run. An effect is what differs from the unedited runs, and is
// confirmed by a second run. The effects of all changes of a field give its verdict: required, read or not read.
// A field that no client can know is the control: if it has an effect, the verdicts cannot be trusted.
//
// The caller runs the client, so this package knows neither namespaces nor proxies.
//
// Source: replay/clientprobe/README.md
package clientprobe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"unwire/captures/profile"
	"unwire/replay/mock"
)

// Defaults of the limits in a Probe.
const (
	// DefaultRepeats is the number of unedited runs.
	DefaultRepeats = 3
	// DefaultBudget is the largest number of runs.
	DefaultBudget = 500
	// DefaultMaxTime limits the duration of all runs together.
	DefaultMaxTime = 15 * time.Minute
)

// Limits of one run of the client.
const (
	// maxOutput is the number of bytes of stdout, and of stderr, that are compared; the rest is
	// ignored.
	maxOutput = 1 << 20
	// maxRequests is the number of requests that are compared; further ones are ignored.
	maxRequests = 1000
	// maxEffects is the number of effects of a run that are reported.
	maxEffects = 20
	// slowest is the factor by which an edited run may take longer than the slowest unedited one.
	slowest = 5
	// leastTimeout is the shortest default timeout of a run.
	leastTimeout = 10 * time.Second
)

// A Probe finds out which fields of a server's responses a client uses. It runs the client repeatedly
// against a mock server that returns recorded responses with one field edited, and compares the
// client's behaviour.
type Probe struct {
	// Mock is the mock server that answers from the capture. For each run, a copy is made with Mock.Another.
	Mock *mock.Server

	// Argv is the client's command with its arguments. The journal identifies the client by it.
	Argv []string

	// Client runs the command until it ends, or kills it when ctx ends. Its requests must reach
	// r.Server, and its output must go to r.Stdout and r.Stderr. It returns the exit status.
	Client func(ctx context.Context, r Run) (exit int, err error)

	// Profile lists the messages that ask a client to run something, such as a command; it may be nil.
	Profile *profile.Profile

	// AllowExecute also edits messages that ask the client to run something. By default, they stay
	// unedited.
	AllowExecute bool

	// Methods restricts the edited fields to responses of these methods, each given with or without its service;
	// empty means all.
	Methods []string
	// Paths restricts the edited fields to these paths and all fields below them; empty means all.
	Paths []string

	// Repeats is the number of unedited runs; 0 means DefaultRepeats.
	Repeats int
	// Budget limits the number of all runs; 0 means DefaultBudget.
	Budget int

	// MaxTime limits the duration of all runs together; 0 means DefaultMaxTime.
	MaxTime time.Duration
	// Timeout limits a single run; 0 means five times the slowest unedited run, and at least 10 seconds.
	Timeout time.Duration

	// Journal, if set, stores the outcome of each edited run. An outcome that is in it already is reused instead of
	// running the client.
	Journal *Journal

	// Progress, if set, is called before each edited run, with its number, the number of planned runs
	// and a description.
	Progress func(run, of int, what string)
}

// A Run is the argument of Probe.Client: what the client needs for one run.
type Run struct {
	// Server is the server that the client must connect to.
	Server *mock.Server

	// Stdout receives the client's standard output.
	Stdout io.Writer
	// Stderr receives the client's standard error.
	Stderr io.Writer
}

// ErrBaseline reports that the unedited runs cannot be compared with: the client made no request that
// the mock could answer, or did not end.
var ErrBaseline = errors.New("the client cannot be probed, because it does not work with unedited answers")

// defaults sets limits that are 0 to their defaults.
func (p *Probe) defaults() {
	if p.Repeats <= 0 {
		p.Repeats = DefaultRepeats
	}
	if p.Budget <= 0 {
		p.Budget = DefaultBudget
	}
	if p.MaxTime <= 0 {
		p.MaxTime = DefaultMaxTime
	}
}

// Learn runs the client several times with unedited responses, and determines what differs between
// these runs.
//
// Errors: ErrBaseline if the client never called the mock, got no recorded answer or did not end; those
// of starting it.
func (p *Probe) Learn(ctx context.Context) (*Baseline, error) {
	p.defaults()
	b := &Baseline{}
	for i := range max(p.Repeats, 2) {
		limit := p.Timeout
		if limit <= 0 {
			limit = max(leastTimeout, p.MaxTime/4)
		}
		o, err := p.run(ctx, nil, limit)
		if err != nil {
			return nil, err
		}
		if o.timedOut {
			return nil, fmt.Errorf("%w: the client did not end within %s", ErrBaseline, limit)
		}
		b.runs = append(b.runs, o)
		b.slowest = max(b.slowest, o.took)
		b.Answered += o.answered
		if i == 0 && o.answered == 0 {
			return nil, fmt.Errorf("%w: %s", ErrBaseline, whyUnanswered(o))
		}
	}
	b.learn()
	return b, nil
}

// whyUnanswered explains why no request of the client got a recorded response.
func whyUnanswered(o *observation) string {
	if len(o.requests) == 0 {
		text := fmt.Sprintf("the client sent no request to probe-client, and ended with exit status %d", o.exit)
		if len(o.stderr) > 0 {
			text += ": " + cut(o.stderr[0])
		}
		return text
	}
	return fmt.Sprintf("the capture has no answer to any request of the client; number of requests: %d; the first one: %s: %s", len(o.requests), o.requests[0].Method, o.requests[0].Reason)
}

// timeout returns the timeout of an edited run.
func (p *Probe) timeout(b *Baseline) time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return max(leastTimeout, slowest*b.slowest)
}
