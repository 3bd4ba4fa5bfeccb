package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway"
)

// TestInterleavedConversations runs 200 conversations at once under two API keys. Clients
// send requests twice, leave out results, change their order, leave in the middle, wait
// longer than sessions last, and steal each other's call ids. Each conversation must end
// with the results of its own calls, or with a clear error that the client caused, and no
// goroutine or stream may be left.
func TestInterleavedConversations(t *testing.T) {
	t.Parallel()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > 25 { // each is 200 conversations
			return
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		sessions := rapid.IntRange(1, 260).Draw(rt, "sessions")
		cut := rapid.SampledFrom([]int{0, 0, 2}).Draw(rt, "cut")
		synctest.Test(t, func(t *testing.T) {
			u := &upstream{models: []turn.Model{{ID: "model"}}, cut: cut}
			core := gateway.New(u, gateway.Options{Idle: time.Minute, MaxSessions: sessions})
			var wg sync.WaitGroup
			stolen := &stolenIDs{}
			for i := range 200 {
				wg.Go(func() { converse(t, core, i, rand.New(rand.NewPCG(seed, uint64(i))), stolen) })
			}
			wg.Wait()
			core.Shutdown(t.Context())
			if all, open := u.opened(); open != 0 {
				t.Errorf("%d of %d streams are open", open, all)
			}
		})
	})
}

// stolenIDs are call ids that one client may use in place of its own.
type stolenIDs struct {
	mu  sync.Mutex
	ids []string
}

func (s *stolenIDs) swap(id string, random *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, id)
	return s.ids[random.IntN(len(s.ids))]
}

// converse runs one conversation to its end.
func converse(t *testing.T, core *gateway.Core, number int, random *rand.Rand, stolen *stolenIDs) {
	task := fmt.Sprintf("task %d", number)
	rounds := make([]string, 1+random.IntN(3))
	for i := range rounds {
		rounds[i] = fmt.Sprint(1 + random.IntN(3))
	}
	c := newClient(core, task+": "+strings.Join(rounds, " "))
	c.key = fmt.Sprint("key ", number%2)

	for range 200 {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		a, err := sendSomehow(t.Context(), c, random)
		if err != nil {
			if e := turn.AsError(err); e.Kind != turn.Overloaded && e.Code != "client_left" && e.Kind != turn.Upstream {
				t.Errorf("%s: %v", task, err)
				return
			}
			continue // send it again
		}
		c.add(a)
		if len(a.calls) == 0 {
			checkEnd(t, task, a)
			return
		}
		addResults(c, a.calls, random, stolen)
	}
	t.Errorf("%s does not end", task)
}

// checkEnd looks for results of other tasks in the final text.
func checkEnd(t *testing.T, task string, a *answer) {
	if !strings.HasPrefix(a.text, task+" done: ") || a.end.Usage == nil {
		t.Errorf("%s ended with %+v", task, a)
		return
	}
	for r := range strings.SplitSeq(strings.TrimPrefix(a.text, task+" done: "), ",") {
		if r != "rejected" && !strings.HasPrefix(r, task+"/") {
			t.Errorf("%s has the result %q", task, r)
		}
	}
}

// sendSomehow sends a request: once, twice at the same time, or after one that the client
// left in the middle.
func sendSomehow(ctx context.Context, c *client, random *rand.Rand) (*answer, error) {
	switch random.IntN(8) {
	case 0: // twice
		var other sync.WaitGroup
		other.Go(func() {
			twin := *c
			_, _ = twin.send(ctx) // whatever comes of it
		})
		defer other.Wait()
	case 1: // leave in the middle
		t, err := c.core.Turn(gateway.WithKey(ctx, c.key), c.request())
		if err != nil {
			return nil, err
		}
		if _, err := t.Next(ctx); err != nil && !errors.Is(err, io.EOF) {
			t.Close()
			return nil, err
		}
		t.Close()
	}
	return c.send(ctx)
}

// addResults answers calls: all, in another order, twice, not all, too late, or with a
// stolen id, which is an invented call to the client's own session.
func addResults(c *client, calls []turn.Call, random *rand.Rand, stolen *stolenIDs) {
	parts := make([]turn.Part, len(calls))
	for i, call := range calls {
		parts[i] = result(call)
	}
	random.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
	switch random.IntN(8) {
	case 0:
		parts = append(parts, parts[0])
	case 1:
		parts = parts[:len(parts)-1]
	case 2:
		time.Sleep(2 * time.Minute)
	case 3:
		foreign := stolen.swap(parts[0].Result.CallID, random)
		if foreign != parts[0].Result.CallID {
			parts = append(parts, turn.Part{Result: &turn.Result{CallID: foreign, Parts: parts[0].Result.Parts}})
		}
	}
	if len(parts) == 0 {
		c.messages = append(c.messages, turn.Message{Role: turn.User, Parts: c.messages[1].Parts})
		return
	}
	c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: parts})
}
