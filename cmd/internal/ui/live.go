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

// liveEndpoints are those by which the page learns of changes.
func liveEndpoints() []endpoint {
	return []endpoint{{path: "changes", answer: answerChanges}}
}

// answerChanges waits until the captures differ from the state that the parameter after names,
// and returns the new state. A page that shows an old state asks again at once, so no change
// is lost.
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

// state names the state of all captures: their last numbers and the versions of their lists, or "-" for one
// that cannot be read.
func (l *library) state(ctx context.Context) string {
	var parts []string
	for i := range l.options.Files() {
		parts = append(parts, l.fileState(ctx, i))
	}
	return strings.Join(parts, ".")
}

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
