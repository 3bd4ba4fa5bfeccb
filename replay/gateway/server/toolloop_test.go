package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"unwire/replay/gateway"
	"unwire/replay/gateway/server"
)

// taskScript asks for three calls one after the other, then for three at once, and quotes
// all results in its answer.
func taskScript(bootstrapMS int) string {
	call := func(name string) string {
		return fmt.Sprintf(`{"name":"mcp","as":"%[1]s","args":{"name":"look","args":{"what":"%[1]s"}}}`, name)
	}
	return fmt.Sprintf(`{"v":1,"bootstrap_ms":%d,"turns":[{"steps":[{"thinking":"Three steps first."},{"text":"Looking. "},
		{"tool":%s},{"tool":%s},{"tool":%s},{"tools":{"calls":[%s,%s,%s]}},{"tokens":7},
		{"text":"${a.text} ${b.text} ${c.text} ${d.text} ${e.text} ${f.text}","split":[5]},
		{"turn_ended":{"inputTokens":"120","outputTokens":"34","cacheReadTokens":"100"}}]}]}`, bootstrapMS, call("a"), call("b"), call("c"), call("d"), call("e"), call("f"))
}

// A chatClient is a client of Chat Completions without an SDK: it sends back exactly what it got.
type chatClient struct {
	f        *fixture
	messages []string
	requests int
	parallel []int // calls in each response
}

type chatMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// send sends the transcript and returns the response's message.
func (c *chatClient) send(t *testing.T) chatMessage {
	t.Helper()
	c.requests++
	resp, body := c.f.do(t, http.MethodPost, "/v1/chat/completions", toolRequest(false, c.messages...))
	var answer struct {
		Choices []struct{ Message json.RawMessage }
		Usage   struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || resp.StatusCode != 200 || len(answer.Choices) != 1 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	var m chatMessage
	if err := json.Unmarshal(answer.Choices[0].Message, &m); err != nil {
		t.Fatal(err)
	}
	if wantUsage := len(m.ToolCalls) == 0; wantUsage != (answer.Usage.Prompt > 0) {
		t.Errorf("request %d: usage %+v with %d calls", c.requests, answer.Usage, len(m.ToolCalls))
	}
	c.messages = append(c.messages, string(answer.Choices[0].Message))
	c.parallel = append(c.parallel, len(m.ToolCalls))
	return m
}

// run runs the tools until the answer is there.
func (c *chatClient) run(t *testing.T) string {
	t.Helper()
	for {
		m := c.send(t)
		if len(m.ToolCalls) == 0 {
			return m.Content
		}
		for _, call := range m.ToolCalls {
			var args struct{ What string }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil || call.Function.Name != "look" || call.Type != "function" {
				t.Fatalf("the call %+v: %v", call, err)
			}
			c.messages = append(c.messages, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"found %s"}`, call.ID, args.What))
		}
	}
}

const taskAnswer = "found a found b found c found d found e found f"

// settled is Options.Settle for tests of calls in one response: the server's next call comes sooner than that on a
// busy machine, too.
const settled = 500 * time.Millisecond

func TestToolLoop(t *testing.T) {
	t.Parallel()
	f := start(t, taskScript(0), server.Options{}, gateway.Options{Settle: settled})
	c := &chatClient{f: f, messages: []string{`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"Go."}`}}
	if got := c.run(t); got != taskAnswer {
		t.Errorf("the answer is %q, want %q", got, taskAnswer)
	}
	if want := []int{1, 1, 1, 3, 0}; !slices.Equal(c.parallel, want) {
		t.Errorf("the responses have %v calls, want %v", c.parallel, want)
	}
	if n := f.standin.Stats(); n.Streams.Opened != 1 || n.Execs.Answered != 6 || n.Execs.Rejected != 0 {
		t.Errorf("the stand-in counts %+v, want one stream and six answers", n)
	}
}

// TestColdToolLoop does the same without sessions: each request starts a stream that goes
// on where the history ends.
func TestColdToolLoop(t *testing.T) {
	t.Parallel()
	f := start(t, taskScript(0), server.Options{}, gateway.Options{NoReuse: true, Settle: settled})
	c := &chatClient{f: f, messages: []string{`{"role":"user","content":"Go."}`}}
	if got := c.run(t); got != taskAnswer {
		t.Errorf("the answer is %q, want %q", got, taskAnswer)
	}
	if n := f.standin.Stats(); n.Streams.Opened != 5 {
		t.Errorf("%d streams were opened, want 5", n.Streams.Opened)
	}
}

// TestOneBootstrap: the delay at the start of a stream is paid once for six calls.
func TestOneBootstrap(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	f := start(t, taskScript(int(delay/time.Millisecond)), server.Options{}, gateway.Options{})
	c := &chatClient{f: f, messages: []string{`{"role":"user","content":"Go."}`}}
	started := time.Now()
	if got := c.run(t); got != taskAnswer {
		t.Errorf("the answer is %q", got)
	}
	// The delay is that of a stream.
	if took, n := time.Since(started), f.standin.Stats(); took < delay || n.Streams.Opened != 1 {
		t.Errorf("%d requests took %v and %d streams, want one delay of %v", c.requests, took, n.Streams.Opened, delay)
	}
}

// TestStreamsAsItArrives reads the first delta of a stream whose upstream has not ended.
func TestStreamsAsItArrives(t *testing.T) {
	t.Parallel()
	f := start(t, `{"v":1,"turns":[{"steps":[{"text":"first "},{"wait":{"ms":600000}},{"text":"last"},{"turn_ended":{}}]}]}`, server.Options{}, gateway.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(toolRequest(true, `{"role":"user","content":"Go."}`)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "first") {
	}
	if err := lines.Err(); err != nil || !strings.Contains(lines.Text(), "first") {
		t.Fatalf("the first delta did not come: %v", err)
	}
	if n := f.standin.Stats(); n.Streams.Open != 1 || n.TurnsEnded != 0 {
		t.Errorf("the stand-in counts %+v, want a turn that runs", n)
	}
}

// TestBrokenUpstream: a stream that breaks, or ends without the end of its turn, never
// looks like a clean end.
func TestBrokenUpstream(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"reset":         `{"text":"Let me "},{"reset":true}`,
		"no turn_ended": `{"text":"Let me "}`,
		"no end":        `{"text":"Let me "},{"turn_ended":{}},{"drop_end":true}`,
		"error":         `{"text":"Let me "},{"error":{"code":"internal","message":"broken"}}`,
		"thinking only": `{"thinking":"Hmm."},{"turn_ended":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, `{"v":1,"turns":[{"steps":[`+steps+`]}]}`, server.Options{}, gateway.Options{})
			_, stream := f.do(t, http.MethodPost, "/v1/chat/completions", toolRequest(true, `{"role":"user","content":"Go."}`))
			if !strings.Contains(stream, `"error"`) || strings.Contains(stream, "[DONE]") || strings.Contains(stream, `"finish_reason":"stop"`) {
				t.Errorf("chat stream:\n%s", stream)
			}
			resp, whole := f.do(t, http.MethodPost, "/v1/chat/completions", toolRequest(false, `{"role":"user","content":"Go."}`))
			if resp.StatusCode < 500 {
				t.Errorf("chat: %d %s", resp.StatusCode, whole)
			}
			_, stream = f.do(t, http.MethodPost, "/v1/responses", `{"model":"composer-1","input":"Go.","stream":true}`)
			if strings.Contains(stream, "response.completed") || !strings.Contains(stream, "response.failed") && !strings.Contains(stream, "event: error") {
				t.Errorf("responses stream:\n%s", stream)
			}
			_, stream = f.do(t, http.MethodPost, "/v1/messages", `{"model":"composer-1","max_tokens":100,"messages":[{"role":"user","content":"Go."}],"stream":true}`, "anthropic-version", "2023-06-01")
			if !strings.Contains(stream, `"type":"error"`) || strings.Contains(stream, "message_stop") {
				t.Errorf("messages stream:\n%s", stream)
			}
		})
	}
}

// TestPoisonedConversation: the live service is reported to hang on a conversation whose
// stream was cut in a tool call. The stand-in does, so a continuation must have a new id.
func TestPoisonedConversation(t *testing.T) {
	t.Parallel()
	f := start(t, strings.Replace(taskScript(0), `{"v":1,`, `{"v":1,"poison":true,`, 1), server.Options{}, gateway.Options{Idle: 50 * time.Millisecond, Silence: time.Minute, Settle: settled})
	c := &chatClient{f: f, messages: []string{`{"role":"user","content":"Go."}`}}
	for {
		m := c.send(t)
		if len(m.ToolCalls) == 0 {
			if m.Content != taskAnswer {
				t.Errorf("the answer is %q, want %q", m.Content, taskAnswer)
			}
			break
		}
		for f.core.Counts().Waiting > 0 { // until the session has expired
			time.Sleep(10 * time.Millisecond)
		}
		for _, call := range m.ToolCalls {
			var args struct{ What string }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil {
				t.Fatal(err)
			}
			c.messages = append(c.messages, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"found %s"}`, call.ID, args.What))
		}
	}
	if n := f.standin.Stats(); n.Streams.Opened != 5 || n.Hung != 0 {
		t.Errorf("the stand-in counts %+v, want five streams and none that hangs", n)
	}
}
