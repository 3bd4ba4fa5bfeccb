// Package throttle slows forwarded traffic down to a bandwidth and a latency, to see how a client or a server copes
// with a slow network.
//
//	limit, err := throttle.Parse("64KB/s,200ms")
//	limit.Wait(ctx, captures.Down, len(p)) // before p is forwarded
//
// The bandwidth is that of all exchanges together, for each direction. The latency delays each piece of an exchange.
package throttle

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"unwire/captures"
)

// maxLatency is the greatest latency that Parse accepts.
const maxLatency = time.Minute

// A Limit slows traffic down to a bandwidth and adds a latency. It is safe for concurrent use.
type Limit struct {
	// BytesPerSecond is the bandwidth of each direction; 0 means unlimited.
	BytesPerSecond int64

	// Latency is the delay added to each piece of data; 0 means none.
	Latency time.Duration

	// mu guards free.
	mu sync.Mutex
	// free is the time at which the bandwidth of each direction is available again.
	free [2]time.Time
}

// Parse parses a limit: a bandwidth such as 64KB/s, a latency such as 200ms, or both, separated by a comma.
func Parse(text string) (*Limit, error) {
	l := &Limit{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		rate, isRate := strings.CutSuffix(part, "/s")
		if isRate {
			n, err := parseSize(rate)
			if err != nil {
				return nil, fmt.Errorf("%q is not a bandwidth such as 64KB/s", part)
			}
			if l.BytesPerSecond != 0 {
				return nil, fmt.Errorf("the bandwidth is given twice (%q): give only one", part)
			}
			l.BytesPerSecond = n
			continue
		}
		d, err := time.ParseDuration(part)
		if err == nil && l.Latency != 0 {
			return nil, fmt.Errorf("the latency is given twice (%q): give only one", part)
		}
		if err != nil || d <= 0 || d > maxLatency {
			return nil, fmt.Errorf("%q is neither a bandwidth such as 64KB/s nor a latency such as 200ms (at most %s)", part, maxLatency)
		}
		l.Latency = d
	}
	return l, nil
}

// parseSize parses a number of bytes with a decimal unit, such as 64KB.
func parseSize(s string) (int64, error) {
	factor := int64(1)
	for _, u := range []struct {
		name   string
		factor int64
	}{{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			s, factor = rest, u.factor
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err == nil && n <= 0 {
		err = strconv.ErrRange
	}
	return n * factor, err
}

// Wait blocks until n bytes of a direction may be forwarded, or until ctx ends.
func (l *Limit) Wait(ctx context.Context, d captures.Direction, n int) {
	until := time.Now().Add(l.Latency)
	if l.BytesPerSecond > 0 {
		l.mu.Lock()
		start := l.free[d]
		if now := time.Now(); start.Before(now) {
			start = now
		}
		l.free[d] = start.Add(time.Duration(float64(n) / float64(l.BytesPerSecond) * float64(time.Second)))
		if end := l.free[d].Add(l.Latency); end.After(until) {
			until = end
		}
		l.mu.Unlock()
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
