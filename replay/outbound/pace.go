package outbound

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A Pace is how gently hosts other than this machine are asked, over all plans
// that have it: one request at a time, one an Interval, Budget of them at most,
// and none after the server has said that it is enough.
//
// Shape: it stops on status 429 and on resource_exhausted, permission_denied
// and unauthenticated. What Retry-After says is kept in the journal, and holds
// for the next run with it, too. Nothing is ever sent a second time by itself.
type Pace struct {
	Interval time.Duration // default 1 s
	Budget   int           // requests; 0: no limit
	Journal  *Journal      // of requests to this machine, too; nil: none

	// LocalInterval is the time between two requests to this machine, which count
	// towards no budget; 0 for none.
	LocalInterval time.Duration

	Local bool // requests to this machine are paced, too

	mu      sync.Mutex
	last    time.Time
	local   time.Time // of the last request to this machine
	spent   int
	stopped string // why; "" if it goes on
}

const defaultInterval = time.Second

// applies reports whether a request to a host is one that is paced.
func (p *Pace) applies(host string) bool {
	return p != nil && (p.Local || !IsLoopback(host))
}

// Admit waits until the next request may go.
//
// Errors: ErrRefused, with the reason.
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
		return fmt.Errorf("%w: the budget of %d requests is spent", ErrRefused, p.Budget)
	case time.Now().Before(until):
		return fmt.Errorf("%w: %s asked to be left alone until %s", ErrRefused, host, until.Format(time.RFC3339))
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

// admitLocal waits until the next request to this machine may go.
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

// Observe reads an answer, with its Retry-After, and stops what follows where the
// answer says so.
func (p *Pace) Observe(host string, status int, code, retryAfter string) {
	if !p.applies(host) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// one at a time: the next one is counted from the end of this
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

// WantsNoMore reports whether an answer says that nothing else is to be asked,
// whatever was.
func WantsNoMore(status int, code string) bool {
	switch code {
	case "resource_exhausted", "permission_denied", "unauthenticated":
		return true
	}
	return status == http.StatusTooManyRequests
}

// RetryAfter is when a server's Retry-After says that it may be asked again; zero
// if it does not.
func RetryAfter(value string, now time.Time) time.Time {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return now.Add(time.Duration(seconds) * time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return at
	}
	return time.Time{}
}

// Pause waits for a time, or until ctx ends.
//
// Errors: why ctx ended.
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
