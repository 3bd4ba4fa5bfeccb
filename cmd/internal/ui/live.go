package ui

import (
	"context"
	"strconv"
	"strings"
	"time"
)

const (
	// changeInterval is how often a capture is asked whether it has grown. A frame is shown within 200 ms, of which
	// the recorder's commit, the request and the painting need a part.
	changeInterval = 40 * time.Millisecond

	// changeWait is how long a request for changes waits.
	changeWait = 25 * time.Second
)

// liveEndpoints returns the API endpoint from which the page learns of changes.
func liveEndpoints() []endpoint {
	return []endpoint{{path: "changes", answer: answerChanges}}
}

// answerChanges implements the endpoint changes. It waits until the state of the captures differs from
// the parameter after, at most changeWait, and returns the new state. A page that shows an old state gets
// an answer at once, so it misses no change.
func answerChanges(ctx context.Context, q *request) (any, error) {
	after := q.query.Get("after")
	deadline := time.After(changeWait)
	tick := time.NewTicker(changeInterval)
	defer tick.Stop()
	for {
		state := q.state(ctx)
		if state != after {
			return map[string]any{"v": 1, "state": state}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline:
			return map[string]any{"v": 1, "state": state}, nil
		case <-tick.C:
		}
	}
}

// state returns a text that differs if any capture has changed. It has the states of all captures,
// separated by dots.
func (l *library) state(ctx context.Context) string {
	var parts []string
	for i := range l.options.Files() {
		parts = append(parts, l.fileState(ctx, i))
	}
	return strings.Join(parts, ".")
}

// fileState returns the state of capture i: its last number and the version of its list, or "-" if it
// cannot be read.
func (l *library) fileState(ctx context.Context, i int) string {
	f, err := l.fileAt(i)
	if err != nil {
		return "-"
	}
	c, err := f.open()
	if err != nil {
		return "-"
	}
	last, err := c.LastNumber(ctx)
	if err != nil {
		return "-"
	}
	f.listMu.Lock()
	list := f.listed
	f.listMu.Unlock()
	if list == nil {
		return strconv.FormatInt(last, 10)
	}
	// The list is brought up to date before the page asks for it, so that one answer has all that is new.
	if err := list.refresh(ctx, f.background); err != nil {
		return "-"
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	return strconv.FormatInt(last, 10) + "/" + strconv.FormatInt(list.version, 10)
}
