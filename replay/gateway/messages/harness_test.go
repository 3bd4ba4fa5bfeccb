package messages

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

var update = flag.Bool("update", false, "update testdata: write what the tests expect anew")

// A fakeCore plays one script after the other and keeps the requests.
type fakeCore struct {
	mu       sync.Mutex
	scripts  [][]any // turn.Event, error, or time.Duration for a pause
	requests []*turn.Request
	closed   int
	refuse   error
}

var fakeModels = []turn.Model{
	{ID: "composer-1", Name: "Composer 1", Aliases: []string{"default"}, Thinking: true},
	{ID: "small-1"},
	{ID: "vendor/big-1", Name: "Big"},
}

func (c *fakeCore) Models(context.Context) ([]turn.Model, error) { return fakeModels, nil }

func (c *fakeCore) Model(_ context.Context, name string) (turn.Model, error) {
	for _, m := range fakeModels {
		if m.ID == name || slices.Contains(m.Aliases, name) {
			return m, nil
		}
	}
	return turn.Model{}, &turn.Error{Kind: turn.NotFound, Message: "there is no model " + name}
}

func (c *fakeCore) Turn(_ context.Context, r *turn.Request) (front.Turn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	if c.refuse != nil {
		return nil, c.refuse
	}
	if len(c.scripts) == 0 {
		return nil, &turn.Error{Kind: turn.Internal, Message: "the test has no script for this request"}
	}
	t := &fakeTurn{core: c, script: c.scripts[0]}
	c.scripts = c.scripts[1:]
	return t, nil
}

// await waits until a condition is true, which is checked with the core locked.
func (c *fakeCore) await(t *testing.T, missing string, is func() bool) {
	t.Helper()
	checked := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return is()
	}
	for deadline := time.Now().Add(time.Minute); !checked(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error(missing)
			return
		}
	}
}

type fakeTurn struct {
	core   *fakeCore
	script []any
	until  time.Time // of the pause that is running
}

func (t *fakeTurn) Next(ctx context.Context) (turn.Event, error) {
	for len(t.script) > 0 {
		step := t.script[0]
		pause, ok := step.(time.Duration)
		if !ok {
			t.script = t.script[1:]
			if err, ok := step.(error); ok {
				return nil, err
			}
			return step.(turn.Event), nil
		}
		if t.until.IsZero() {
			t.until = time.Now().Add(pause)
		}
		select {
		case <-time.After(time.Until(t.until)):
			t.script, t.until = t.script[1:], time.Time{}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, io.EOF
}

func (t *fakeTurn) Close() {
	t.core.mu.Lock()
	defer t.core.mu.Unlock()
	t.core.closed++
}

// numbered returns a source of identifiers that tests know.
func numbered() func(string) string {
	var mu sync.Mutex
	n := 0
	return func(prefix string) string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("%s%d", prefix, n)
	}
}

// serve starts a server over real HTTP.
func serve(t *testing.T, core *fakeCore) string {
	t.Helper()
	server := httptest.NewServer(newHandler(core, numbered()))
	t.Cleanup(server.Close)
	return server.URL
}

// post sends a request and returns its answer with the whole body.
func post(t *testing.T, url, body string) (*http.Response, string) {
	t.Helper()
	return send(t, http.MethodPost, url, body, "2023-06-01")
}

var end = turn.Ended{Reason: turn.Finished, Usage: &turn.Usage{Input: 11, Output: 7, CacheRead: 5, CacheWrite: 3, Reasoning: 2}}

// toolTurn is a turn with everything that an answer can have.
var toolTurn = []any{
	turn.Thinking{Text: "The user wants "},
	turn.Thinking{Text: "two files."},
	turn.Tokens{N: 5},
	turn.Text{Text: "I read "},
	turn.Text{Text: "both: <a> & \"b\"."},
	turn.Text{},
	turn.Calling{Call: turn.Call{ID: "sess_A__call_1", Name: "read", Arguments: []byte(`{"path":"a"}`)}},
	turn.Calling{Call: turn.Call{ID: "sess_A__call_2", Name: "list"}},
	turn.Ended{Reason: turn.ToolCalls},
}
