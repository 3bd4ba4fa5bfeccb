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

// Limits that the zero values of a Probe stand for.
const (
	// DefaultRepeats is the number of unedited runs.
	DefaultRepeats = 3
	// DefaultBudget is the number of runs.
	DefaultBudget = 500
	// DefaultMaxTime bounds all runs together.
	DefaultMaxTime = 15 * time.Minute
)

// Limits of what is kept of a client.
const (
	// maxOutput is the number of bytes of stdout, and of stderr, that are compared.
	maxOutput = 1 << 20
	// maxRequests is the number of requests that are compared.
	maxRequests = 1000
	// maxEffects is the number of effects of a run that are reported.
	maxEffects = 20
	// slowest is the factor by which a run may take longer than the unedited ones.
	slowest = 5
	// leastTimeout is the shortest timeout of a run.
	leastTimeout = 10 * time.Second
)

// A Probe describes a client and how it is probed.
type Probe struct {
	// Mock serves the capture. Each run has its own server, made by Mock.Another.
	Mock *mock.Server

	// Argv is the client's command.
	Argv []string

	// Client runs the command with r's environment and output, so that its requests reach r.Server, until it ends or
	// ctx does. It returns the exit status.
	Client func(ctx context.Context, r Run) (exit int, err error)

	// Profile names the messages that ask a client to run something; it may be nil.
	Profile *profile.Profile

	// AllowExecute also edits messages that ask the client to run something.
	AllowExecute bool

	// Methods and Paths, if not empty, select what is edited: a method by its name with or without its service, a
	// path and what is below it.
	Methods, Paths []string

	// Repeats is the number of unedited runs, Budget that of all runs. MaxTime bounds all runs together, Timeout a
	// single one; by default, a run may take five times as long as the slowest unedited one, and at least 10 seconds.
	Repeats, Budget  int
	MaxTime, Timeout time.Duration

	// Journal, if set, has the outcomes of earlier runs, and gets those of new ones.
	Journal *Journal

	// Progress, if set, is called before each run of the plan.
	Progress func(run, of int, what string)
}

// A Run is one run of the client.
type Run struct {
	// Server answers the client.
	Server *mock.Server

	// Stdout and Stderr receive the client's output.
	Stdout, Stderr io.Writer
}

// ErrBaseline is wrapped if the unedited client gives nothing to compare with.
var ErrBaseline = errors.New("the unedited client cannot be probed")

// defaults fills in unset limits.
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

// Learn runs the client unedited, and finds what differs between the runs.
//
// Errors: ErrBaseline if the client never called the mock, or got no recorded answer; those of starting it.
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
			return nil, fmt.Errorf("%w: it did not end within %s", ErrBaseline, limit)
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

// whyUnanswered explains a run without a recorded answer.
func whyUnanswered(o *observation) string {
	if len(o.requests) == 0 {
		text := fmt.Sprintf("it sent no request to the mock, and ended with status %d", o.exit)
		if len(o.stderr) > 0 {
			text += ": " + cut(o.stderr[0])
		}
		return text
	}
	return fmt.Sprintf("none of its %d requests was answered; the first one: %s: %s", len(o.requests), o.requests[0].Method, o.requests[0].Reason)
}

// timeout returns how long an edited run may take.
func (p *Probe) timeout(b *Baseline) time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return max(leastTimeout, slowest*b.slowest)
}
