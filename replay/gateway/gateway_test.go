package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway"
)

// inBubble runs a test with a Core over an upstream, in fake time. It fails if a goroutine
// or a stream is left at the end.
func inBubble(t *testing.T, o gateway.Options, test func(t *testing.T, u *upstream, core *gateway.Core)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{models: []turn.Model{{ID: "model"}}}
		core := gateway.New(u, o)
		test(t, u, core)
		core.Shutdown(t.Context())
		if _, open := u.opened(); open != 0 {
			t.Errorf("%d streams are open after Shutdown", open)
		}
	})
}

func TestOneStreamForAllRounds(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
		c := newClient(core, "task 1: 1 1 1 3")
		text, err := c.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := "task 1 done: task 1/1,task 1/2,task 1/3,task 1/4,task 1/5,task 1/6"; text != want {
			t.Errorf("got %q, want %q", text, want)
		}
		if all, _ := u.opened(); all != 1 {
			t.Errorf("%d streams were opened, want 1", all)
		}
	})
}

func TestParallelCallsComeInOneResponse(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, _ *upstream, core *gateway.Core) {
		a, err := newClient(core, "task 1: 3").send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(a.calls) != 3 || a.end.Reason != turn.ToolCalls || a.end.Usage != nil {
			t.Errorf("got %d calls and %+v, want 3, tool_calls without usage", len(a.calls), a.end)
		}
		id := regexp.MustCompile(`^sess_[0-9A-Za-z]{12}__call_[1-3]$`)
		for _, call := range a.calls {
			if !id.MatchString(call.ID) || len(call.ID) > 40 {
				t.Errorf("the id %q is not as documented", call.ID)
			}
		}
	})
}

// follow sends the first request of "task 1: 2", lets change alter the follow-up, and
// returns its answer with the number of streams.
func follow(t *testing.T, u *upstream, core *gateway.Core, change func(c *client, results []turn.Part)) (*answer, int) {
	t.Helper()
	c := newClient(core, "task 1: 2")
	a, err := c.send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.add(a)
	results := []turn.Part{result(a.calls[0]), result(a.calls[1])}
	change(c, results)
	b, err := c.send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, _ := u.opened()
	return b, all
}

func TestFollowUps(t *testing.T) {
	t.Parallel()
	tool := func(parts ...turn.Part) turn.Message { return turn.Message{Role: turn.ToolRole, Parts: parts} }
	user := func(text string) turn.Message {
		return turn.Message{Role: turn.User, Parts: []turn.Part{{Text: text}}}
	}
	const done = "task 1 done: task 1/1,task 1/2"
	for name, tt := range map[string]struct {
		change  func(c *client, r []turn.Part)
		text    string
		streams int
	}{
		"in order": {func(c *client, r []turn.Part) { c.messages = append(c.messages, tool(r[0]), tool(r[1])) }, done, 1},
		"swapped":  {func(c *client, r []turn.Part) { c.messages = append(c.messages, tool(r[1], r[0])) }, done, 1},
		"twice in one request": {func(c *client, r []turn.Part) {
			c.messages = append(c.messages, tool(r[0], r[1]), tool(r[0], r[1]))
		}, done, 1},
		"calls and results in turns": {func(c *client, r []turn.Part) {
			m := c.messages[len(c.messages)-1]
			c.messages = append(c.messages[:len(c.messages)-1],
				turn.Message{Role: turn.Assistant, Parts: m.Parts[:2]}, tool(r[0]),
				turn.Message{Role: turn.Assistant, Parts: m.Parts[2:]}, tool(r[1]))
		}, done, 1},
		"text left out": {func(c *client, r []turn.Part) {
			m := &c.messages[len(c.messages)-1]
			m.Parts = m.Parts[1:]
			c.messages = append(c.messages, tool(r...))
		}, done, 1},
		"one missing": {func(c *client, r []turn.Part) { c.messages = append(c.messages, tool(r[0])) }, "task 1 done: task 1/1,rejected", 1},
		"a note with the results": {func(c *client, r []turn.Part) {
			c.messages = append(c.messages, tool(r[0], r[1], turn.Part{Text: " (a note)"}))
		}, done + " (a note)", 1},
		"a system message after the results": {func(c *client, r []turn.Part) {
			c.messages = append(c.messages, tool(r...), turn.Message{Role: turn.System, Parts: []turn.Part{{Text: " (a note)"}}})
		}, done + " (a note)", 1},
		"a message in place of results": {func(c *client, _ []turn.Part) { c.messages = append(c.messages, user("task 2:")) }, "task 2 done: ", 2},
		"a message after the results": {func(c *client, r []turn.Part) {
			c.messages = append(c.messages, tool(r...), user("task 2:"))
		}, "task 2 done: ", 2},
		"edited prompt": {func(c *client, r []turn.Part) {
			c.messages[1] = user("task 1: 1 1")
			c.messages = append(c.messages, tool(r...))
		}, done, 2},
		"edited text": {func(c *client, r []turn.Part) {
			c.messages[2].Parts[0].Text = "I never said that."
			c.messages = append(c.messages, tool(r...))
		}, done, 2},
		"edited arguments": {func(c *client, r []turn.Part) {
			call := *c.messages[2].Parts[1].Call
			call.Arguments = []byte(`{"of":"task 1","n":99}`)
			c.messages[2].Parts[1].Call = &call
			c.messages = append(c.messages, tool(r...))
		}, done, 2},
		"another model": {func(c *client, r []turn.Part) {
			c.model = "other"
			c.messages = append(c.messages, tool(r...))
		}, done, 2},
		"other tools": {func(c *client, r []turn.Part) {
			c.tools = append(c.tools, turn.Tool{Name: "more"})
			c.messages = append(c.messages, tool(r...))
		}, done, 2},
		"another key": {func(c *client, r []turn.Part) {
			c.key = "other"
			c.messages = append(c.messages, tool(r...))
		}, done, 2},
		"compacted": {func(c *client, _ []turn.Part) { c.messages = []turn.Message{c.messages[0], user("task 3:")} }, "task 3 done: ", 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
				got, streams := follow(t, u, core, tt.change)
				if got.text != tt.text || streams != tt.streams {
					t.Errorf("got %q after %d streams, want %q after %d", got.text, streams, tt.text, tt.streams)
				}
				if got.end.Reason != turn.Finished || got.end.Usage == nil {
					t.Errorf("it ended with %+v", got.end)
				}
			})
		})
	}
}

// TestSideRequest: a request that repeats a part of the transcript, as for a title, leaves
// the session alone.
func TestSideRequest(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
		_, streams := follow(t, u, core, func(c *client, results []turn.Part) {
			side := newClient(core, "task 1: 2")
			side.tools = nil
			if _, err := side.send(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: results})
		})
		if streams != 2 {
			t.Errorf("%d streams were opened, want 2: one for the conversation, one for the side request", streams)
		}
		if got := core.Counts().Resumed; got != 1 {
			t.Errorf("%d requests were resumed, want 1", got)
		}
	})
}

// TestRepeatedRequest sends each follow-up twice, at once and one after the other.
func TestRepeatedRequest(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
		c := newClient(core, "task 1: 1 2")
		for {
			first, err := core.Turn(gateway.WithKey(t.Context(), c.key), c.request())
			if err != nil {
				t.Fatal(err)
			}
			followUp := len(c.messages) > 2
			second := first
			if followUp {
				if second, err = core.Turn(gateway.WithKey(t.Context(), c.key), c.request()); err != nil {
					t.Fatal(err)
				}
			}
			a, err := readAnswer(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			answers := []*answer{}
			if followUp {
				b, err := readAnswer(t.Context(), second)
				if err != nil {
					t.Fatal(err)
				}
				d, err := c.send(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				answers = append(answers, b, d)
			}
			for _, b := range answers {
				if fmt.Sprint(b) != fmt.Sprint(a) {
					t.Errorf("the same request got %+v, then %+v", a, b)
				}
			}
			c.add(a)
			if len(a.calls) == 0 {
				break
			}
			for _, call := range a.calls {
				c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: []turn.Part{result(call)}})
			}
		}
		if all, _ := u.opened(); all != 1 {
			t.Errorf("%d streams were opened, want 1", all)
		}
	})
}

func TestLateResults(t *testing.T) {
	inBubble(t, gateway.Options{Idle: time.Minute}, func(t *testing.T, u *upstream, core *gateway.Core) {
		got, streams := follow(t, u, core, func(c *client, results []turn.Part) {
			time.Sleep(2 * time.Minute)
			if _, open := u.opened(); open != 0 {
				t.Errorf("%d streams are open after the idle time", open)
			}
			c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: results})
		})
		if streams != 2 || got.text != "task 1 done: task 1/1,task 1/2" {
			t.Errorf("got %q after %d streams", got.text, streams)
		}
		if cold := core.Counts().ColdByCause(); cold["expired"] != 1 {
			t.Errorf("streams by cause: %v, want one for an expired session", cold)
		}
	})
}

// TestCallTakenBack: the agent took a call back while the client ran the tool, and went on.
func TestCallTakenBack(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
		got, streams := follow(t, u, core, func(c *client, results []turn.Part) {
			u.streams[0].takeBack()
			c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: results})
		})
		if streams != 1 || got.text != "task 1 done: " {
			t.Errorf("got %q after %d streams, want the answer of the first one", got.text, streams)
		}
	})
}

func TestBrokenWhileParked(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
		u.cut = 1
		got, streams := follow(t, u, core, func(c *client, results []turn.Part) {
			c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: results})
		})
		if streams != 2 || got.text != "task 1 done: task 1/1,task 1/2" {
			t.Errorf("got %q after %d streams, want the answer from a second one", got.text, streams)
		}
	})
}

func TestNoReuse(t *testing.T) {
	inBubble(t, gateway.Options{NoReuse: true}, func(t *testing.T, u *upstream, core *gateway.Core) {
		text, err := newClient(core, "task 1: 1 3").run(t.Context())
		if err != nil || text != "task 1 done: task 1/1,task 1/2,task 1/3,task 1/4" {
			t.Errorf("got %q, %v", text, err)
		}
		synctest.Wait()
		if all, open := u.opened(); all != 3 || open != 0 {
			t.Errorf("%d streams were opened and %d are open, want 3 and none", all, open)
		}
	})
}

func TestMaxSessions(t *testing.T) {
	inBubble(t, gateway.Options{MaxSessions: 2}, func(t *testing.T, u *upstream, core *gateway.Core) {
		clients := make([]*client, 3)
		for i := range clients {
			clients[i] = newClient(core, fmt.Sprintf("task %d: 1", i))
			a, err := clients[i].send(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			clients[i].add(a)
			clients[i].messages = append(clients[i].messages, turn.Message{Role: turn.ToolRole, Parts: []turn.Part{result(a.calls[0])}})
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if _, open := u.opened(); open != 2 {
			t.Errorf("%d streams are open, want 2", open)
		}
		for i, c := range clients { // the first one was closed and starts again
			a, err := c.send(t.Context())
			if want := fmt.Sprintf("task %d done: task %d/1", i, i); err != nil || a.text != want {
				t.Errorf("got %+v, %v, want %q", a, err, want)
			}
		}
	})
}

func TestTooManyRunning(t *testing.T) {
	inBubble(t, gateway.Options{MaxSessions: 1}, func(t *testing.T, _ *upstream, core *gateway.Core) {
		first, err := core.Turn(t.Context(), newClient(core, "task 1:").request())
		if err != nil {
			t.Fatal(err)
		}
		_, err = core.Turn(t.Context(), newClient(core, "task 2:").request())
		if e := turn.AsError(err); err == nil || e.Kind != turn.Overloaded {
			t.Errorf("got %v, want an error of kind Overloaded", err)
		}
		first.Close()
	})
}

func TestClientLeaves(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
		c := newClient(core, "task 1: 1")
		first, err := core.Turn(gateway.WithKey(t.Context(), c.key), c.request())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.Close()
		synctest.Wait()
		if _, open := u.opened(); open != 0 {
			t.Errorf("%d streams are open after the client has left", open)
		}
		if _, err := first.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Next after Close returns %v", err)
		}
		if text, err := c.run(t.Context()); err != nil || text != "task 1 done: task 1/1" {
			t.Errorf("the same request again got %q, %v", text, err)
		}
	})
}

func TestInterruptedCallsAreRepaired(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, u *upstream, core *gateway.Core) {
		c := newClient(core, "task 1: 2")
		a, err := c.send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.add(a)
		c.messages = append(c.messages, turn.Message{Role: turn.User, Parts: []turn.Part{{Text: "task 2:"}}})
		if _, err := c.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		u.mu.Lock()
		defer u.mu.Unlock()
		if got := u.streams[0].answers; len(got) != 2 || !got[0].Rejected || !got[1].Rejected {
			t.Errorf("the first stream got %+v, want two rejections", got)
		}
		history := u.streams[1].request.Messages
		var roles []string
		for _, m := range history {
			roles = append(roles, string(m.Role))
		}
		if got, want := strings.Join(roles, " "), "system user assistant tool user"; got != want {
			t.Fatalf("the history has %s, want %s", got, want)
		}
		for i, p := range history[3].Parts {
			if p.Result == nil || !p.Result.Rejected || p.Result.CallID != a.calls[i].ID {
				t.Errorf("result %d of the history is %+v", i, p.Result)
			}
		}
	})
}

func TestLongResultsAreCut(t *testing.T) {
	inBubble(t, gateway.Options{MaxResult: 100}, func(t *testing.T, u *upstream, core *gateway.Core) {
		_, _ = follow(t, u, core, func(c *client, results []turn.Part) {
			results[0].Result.Parts[0].Text += strings.Repeat("é", 500)
			c.messages = append(c.messages, turn.Message{Role: turn.ToolRole, Parts: results})
		})
		parts := u.streams[0].answers[0].Parts
		if len(parts) != 2 || len(parts[0].Text) > 100 || !strings.Contains(parts[1].Text, "only the first 100 of its 1008 bytes") {
			t.Errorf("the model got %+v", parts)
		}
	})
}

// TestSilence waits for an agent that sends nothing, with a client that reads in short steps.
func TestSilence(t *testing.T) {
	inBubble(t, gateway.Options{Silence: time.Minute}, func(t *testing.T, u *upstream, core *gateway.Core) {
		u.silent = true
		running, err := core.Turn(t.Context(), newClient(core, "task 1:").request())
		if err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err = running.Next(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if took := time.Since(started); turn.AsError(err).Kind != turn.Timeout || took != time.Minute {
			t.Errorf("after %v it ended with %v, want a timeout after a minute", took, err)
		}
	})
}

func TestShutdownWaitsForRunningTurns(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, _ *upstream, core *gateway.Core) {
		running, err := core.Turn(t.Context(), newClient(core, "task 1:").request())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			core.Shutdown(t.Context())
		}()
		synctest.Wait()
		if _, err := core.Turn(t.Context(), newClient(core, "task 2:").request()); turn.AsError(err).Kind != turn.Overloaded {
			t.Errorf("a new turn got %v", err)
		}
		if a, err := readAnswer(t.Context(), running); err != nil || a.text != "task 1 done: " {
			t.Errorf("the running turn got %+v, %v", a, err)
		}
		<-done
	})
}

func TestShutdownCancelsInTheEnd(t *testing.T) {
	inBubble(t, gateway.Options{}, func(t *testing.T, _ *upstream, core *gateway.Core) {
		running, err := core.Turn(t.Context(), newClient(core, "task 1:").request())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		core.Shutdown(ctx)
		if _, err := readAnswer(t.Context(), running); turn.AsError(err).Code != "shutting_down" {
			t.Errorf("the running turn ended with %v", err)
		}
	})
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	core := gateway.New(&upstream{}, gateway.Options{})
	user := turn.Message{Role: turn.User, Parts: []turn.Part{{Text: "hi"}}}
	for name, r := range map[string]*turn.Request{
		"nothing":        {},
		"only a system":  {Messages: []turn.Message{{Role: turn.System}}},
		"assistant last": {Messages: []turn.Message{user, {Role: turn.Assistant}}},
		"tools twice":    {Messages: []turn.Message{user}, Tools: []turn.Tool{{Name: "a"}, {Name: "a"}}},
		"tool unnamed":   {Messages: []turn.Message{user}, Tools: []turn.Tool{{}}},
	} {
		if _, err := core.Turn(t.Context(), r); err == nil || turn.AsError(err).Kind != turn.Invalid {
			t.Errorf("%s: got %v, want an error of kind Invalid", name, err)
		}
	}
}

func TestModelAliases(t *testing.T) {
	t.Parallel()
	core := gateway.New(&upstream{models: []turn.Model{{ID: "first"}, {ID: "second"}, {ID: "gpt-5"}}}, gateway.Options{
		Models: []gateway.ModelAlias{{Pattern: "*-mini", Model: "second"}, {Pattern: "lost", Model: "missing"}, {Pattern: "gpt-*"}},
	})
	for name, want := range map[string]string{"gpt-5": "gpt-5", "GPT-5": "gpt-5", "gpt-4": "first", "gpt-4-mini": "second", "lost": "", "other": ""} {
		if m, err := core.Model(t.Context(), name); m.ID != want || (err == nil) != (want != "") {
			t.Errorf("Model(%q) = %q, %v; want %q", name, m.ID, err, want)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	core := gateway.New(&upstream{models: []turn.Model{{ID: "composer-1", Name: "Composer 1", Aliases: []string{"composer"}}}}, gateway.Options{})
	for _, name := range []string{"composer-1", "Composer", "composer 1"} {
		if m, err := core.Model(t.Context(), name); err != nil || m.ID != "composer-1" {
			t.Errorf("Model(%q) = %+v, %v", name, m, err)
		}
	}
	if _, err := core.Model(t.Context(), "gpt"); err == nil || turn.AsError(err).Kind != turn.NotFound {
		t.Errorf("an unknown model got %v", err)
	}
}
