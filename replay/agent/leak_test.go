package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"unwire/replay/agent"
	"unwire/replay/agent/turn"
)

// stacks are the goroutines that run this package's streams.
func stacks() string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var found []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "agent.(*Stream)") || strings.Contains(g, "transport.(*call)") || strings.Contains(g, "transport.(*split)") {
			found = append(found, g)
		}
	}
	return strings.Join(found, "\n\n")
}

// TestNothingIsLeft opens 200 streams, over both transports, and leaves each at a random
// moment: before an event, in mid-text, with calls open, with calls half answered, while
// it is closed by another goroutine, or at its end. Then no goroutine of a stream runs.
func TestNothingIsLeft(t *testing.T) {
	script := script(`{"text":"one two three four five six","split":[2],"pace_ms":1},
		{"tools":{"calls":[{"name":"mcp","args":{"name":"add","toolName":"add"}},{"name":"mcp","args":{"name":"add","toolName":"add"}}]}},
		{"kv_set":{"data":"x","as":"x"}},{"text":"more"},{"turn_ended":{}}`)
	for _, transport := range []string{agent.HTTP2, agent.SSE} {
		c := connect(t, script, func(o *agent.Options) { o.Transport = transport })
		var all sync.WaitGroup
		gate := make(chan struct{}, 20)
		for i := range 100 {
			gate <- struct{}{}
			all.Go(func() {
				defer func() { <-gate }()
				if err := leave(t.Context(), c, rand.New(rand.NewPCG(1, uint64(i)))); err != nil {
					t.Errorf("%s %d: %v", transport, i, err)
				}
			})
		}
		all.Wait()
	}
	for deadline := time.Now().Add(patience); stacks() != ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still running:\n%s", stacks())
		}
	}
}

// leave runs a turn, and leaves it after a random number of events.
func leave(ctx context.Context, c *agent.Client, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	opening := ctx
	if random.IntN(8) == 0 {
		var stop context.CancelFunc
		opening, stop = context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Microsecond)
		defer stop()
	}
	s, err := c.Run(opening, "", user("go", turn.Tool{Name: "add"}))
	if err != nil {
		// The network notices a deadline by a timer of its own, perhaps before the context does.
		if deadline, _ := opening.Deadline(); opening.Err() != nil || !time.Now().Before(deadline) {
			return nil
		}
		return err
	}
	if random.IntN(4) == 0 {
		time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, s.Close)
	}
	defer s.Close()
	for range random.IntN(24) {
		wait, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		event, err := s.Next(wait)
		stop()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil // the server waits for an answer that does not come
		}
		if errors.Is(err, io.EOF) || err != nil && turn.AsError(err).Code == "stream_closed" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("next: %w", err)
		}
		if calling, ok := event.(turn.Calling); ok && random.IntN(3) > 0 {
			_ = s.Answer(turn.Result{CallID: calling.Call.ID}) // fails if the stream was closed
		}
	}
	return nil
}
