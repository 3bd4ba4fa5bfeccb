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

// An observation describes the behaviour of the client in one run.
type observation struct {
	// exit is the exit status.
	exit int

	// timedOut means that the client did not end within its timeout and was killed.
	timedOut bool

	// took is the duration of the run.
	took time.Duration

	// stdout are the lines that the client printed to stdout.
	stdout []string
	// stderr are the lines that it printed to stderr.
	stderr []string

	// requests are the client's requests, in order, each with the recorded exchange that answered it.
	requests []mock.Answer

	// answered is the number of requests that got a recorded response.
	answered int
	// applied is the number of response messages that were edited.
	applied int
}

// run runs the client once. The mock's responses are edited by the change edit; nil leaves them as
// recorded. limit is the timeout.
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

// An output is a Writer that stores the first maxOutput bytes of what a client prints.
type output struct {
	// mu guards b, because a client may write from several goroutines.
	mu sync.Mutex

	// b is the stored output.
	b bytes.Buffer
}

// Write stores p, or the part of it that does not exceed the limit; it never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Write(p[:min(len(p), maxOutput-o.b.Len())])
	return len(p), nil
}

// lines returns the stored output as lines.
func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(o.b.String(), "\n"), "\n")
}

// numbers matches the parts of a line that may differ in each run: decimal numbers, and identifiers of eight or more
// hexadecimal digits.
var numbers = regexp.MustCompile(`[0-9a-fA-F]{8}[0-9a-fA-F-]*|[0-9]+`)

// masked returns a line with the parts that numbers matches replaced by "#".
func masked(line string) string { return numbers.ReplaceAllString(line, "#") }

// upOnly returns the request that the mock server has answered, without the response, as an exchange that package
// diff can compare.
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
