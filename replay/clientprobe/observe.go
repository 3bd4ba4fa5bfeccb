package clientprobe

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/decode"
	"unwire/replay/mock"
)

// An observation is what a client did in one run.
type observation struct {
	exit           int
	timedOut       bool
	took           time.Duration
	stdout, stderr []string
	requests       []mock.Answer

	// answered counts requests that a recorded call answered, applied the messages that were edited.
	answered, applied int
}

// run runs the client once. edit changes the answers; nil leaves them as recorded.
//
// Errors: the client could not be started; the end of ctx.
func (p *Probe) run(ctx context.Context, edit *change, limit time.Duration) (*observation, error) {
	o := &observation{}
	var mu sync.Mutex
	// A request that follows from an edit gets the answer of the recorded one, so that only the client decides whether
	// it fails.
	options := mock.Options{MinSimilarity: -1, Answered: func(a mock.Answer) {
		mu.Lock()
		defer mu.Unlock()
		if a.Exchange != 0 {
			o.answered++
		}
		if len(o.requests) < maxRequests {
			o.requests = append(o.requests, a)
		}
	}}
	if edit != nil {
		options.Edit = func(id int64, f *decode.Frame) ([]byte, bool) {
			data, ok := p.edit(edit, id, f)
			if ok {
				mu.Lock()
				o.applied++
				mu.Unlock()
			}
			return data, ok
		}
	}

	// The client may hang because of the edit, so it has a deadline of its own.
	runCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var stdout, stderr output
	began := time.Now()
	server := p.Mock.Another(options)
	exit, err := p.Client(runCtx, Run{Server: server, Stdout: &stdout, Stderr: &stderr})
	o.took = time.Since(began)
	down, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	// A stream that the client has left open is cut off.
	_ = server.Shutdown(down)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o.timedOut = errors.Is(runCtx.Err(), context.DeadlineExceeded)
	if err != nil && !o.timedOut {
		return nil, err
	}

	// The server may still report a request that it cut off.
	mu.Lock()
	defer mu.Unlock()
	o.exit, o.stdout, o.stderr = exit, stdout.lines(), stderr.lines()
	return o, nil
}

// An output keeps the beginning of what a client prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write keeps p up to the limit.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Write(p[:min(len(p), maxOutput-o.b.Len())])
	return len(p), nil
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(o.b.String(), "\n"), "\n")
}

// numbers are the parts of a line that differ in each run: identifiers, addresses, times and counts.
var numbers = regexp.MustCompile(`[0-9a-fA-F]{8}[0-9a-fA-F-]*|[0-9]+`)

// masked returns a line without its numbers.
func masked(line string) string { return numbers.ReplaceAllString(line, "#") }

// upOnly returns the request of an answer as an exchange that diff can compare.
func upOnly(a *mock.Answer) *decode.Exchange {
	ex := *a.Request
	ex.Frames = nil
	for _, f := range a.Request.Frames {
		if f.Dir == captures.Up {
			ex.Frames = append(ex.Frames, f)
		}
	}
	return &ex
}
