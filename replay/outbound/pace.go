package outbound

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A Pace limits the requests to hosts other than this machine, for all replays that share it: one at a
// time, at least Interval apart, at most Budget of them, and none after the server has refused further
// ones.
//
// Shape: it stops on HTTP status 429 and on the codes resource_exhausted, permission_denied and
// unauthenticated. The time in a Retry-After is stored in the journal, and also applies to the next run
// with that journal. Nothing is retried automatically.
type Pace struct {
	// Interval is the least time between two requests; the default is 1 second.
	Interval time.Duration
	// Budget is the largest number of requests; 0 means no limit.
	Budget int
	// Journal logs all requests, including those to this machine; nil logs nothing.
	Journal *Journal

	// LocalInterval is the least time between two requests to this machine, which do not count against
	// Budget; 0 for none.
	LocalInterval time.Duration

	// Local applies all limits also to requests to this machine.
	Local bool

	// mu guards the fields below. It is held while a request waits, so that waiting requests keep the
	// interval.
	mu sync.Mutex

	// last is the time of the last request to another host.
	last time.Time
	// local is the time of the last request to this machine.
	local time.Time

	// spent is the number of requests that count against Budget.
	spent int
	// stopped is the reason why no more requests are sent; "" if they may be sent.
	stopped string
}

// defaultInterval is the default of Pace.Interval.
const defaultInterval = time.Second

// applies reports whether the limits apply to requests to a host.
func (p *Pace) applies(host string) bool {
	return p != nil && (p.Local || !IsLoopback(host))
}

// Admit waits until the next request to host is allowed. p may be nil, which allows all.
//
// Errors: ErrRefused, with the reason; the cause of ctx.
func (p *Pace) Admit(ctx context.Context, host string) error {
	if !p.applies(host) {
		return p.admitLocal(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch until := p.Journal.until(host); {
	case p.stopped != "":
		return fmt.Errorf("%w: %s", ErrRefused, p.stopped)
	case p.Budget > 0 && p.spent >= p.Budget:
		return fmt.Errorf("%w: the limit of %d requests (--budget, --live-budget) is reached", ErrRefused, p.Budget)
	case time.Now().Before(until):
		return fmt.Errorf("%w: %s accepts no requests until %s", ErrRefused, host, until.Format(time.RFC3339))
	}
	interval := p.Interval
	if interval <= 0 {
		interval = defaultInterval
	}
	if !p.last.IsZero() {
		if err := Pause(ctx, time.Until(p.last.Add(interval))); err != nil {
			return err
		}
	}
	p.spent++
	p.last = time.Now()
	return nil
}

// admitLocal waits until the next request to this machine is allowed.
func (p *Pace) admitLocal(ctx context.Context) error {
	if p == nil || p.LocalInterval <= 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.local.IsZero() {
		if err := Pause(ctx, time.Until(p.local.Add(p.LocalInterval))); err != nil {
			return err
		}
	}
	p.local = time.Now()
	return nil
}

// Observe evaluates a response, by its HTTP status, RPC code and Retry-After header, and stops or
// delays further requests accordingly.
func (p *Pace) Observe(host string, status int, code, retryAfter string) {
	if !p.applies(host) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Requests run one at a time, so the interval starts at the end of this one.
	p.last = time.Now()
	switch {
	case status == http.StatusTooManyRequests:
		p.stopped = "stopped: the server answered 429"
	case WantsNoMore(status, code):
		p.stopped = "stopped: the server answered " + code
	}
	if after := RetryAfter(retryAfter, time.Now()); !after.IsZero() {
		p.stopped = fmt.Sprintf("stopped: %s asked to be left alone until %s", host, after.Format(time.RFC3339))
	}
}

// WantsNoMore reports whether a response, by its HTTP status and RPC code, means that no further
// request should be sent.
func WantsNoMore(status int, code string) bool {
	switch code {
	case "resource_exhausted", "permission_denied", "unauthenticated":
		return true
	}
	return status == http.StatusTooManyRequests
}

// RetryAfter returns the time before which no request should be sent, from the value of a Retry-After
// header (seconds or a date); zero if it has none.
func RetryAfter(value string, now time.Time) time.Time {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return now.Add(time.Duration(seconds) * time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return at
	}
	return time.Time{}
}

// AskedToWait describes a time before which a server accepts no requests, as RetryAfter returned it at the
// time now: how long it asked to wait, and until when. It is "" for the zero time and for one in the past.
func AskedToWait(until, now time.Time) string {
	if !until.After(now) {
		return ""
	}
	return fmt.Sprintf("the server asked to wait %s, until %s", until.Sub(now).Round(time.Second), until.UTC().Format(time.RFC3339))
}

// Pause waits for d, or until ctx ends.
//
// Errors: the cause of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
