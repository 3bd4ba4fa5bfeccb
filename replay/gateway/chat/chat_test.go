package chat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/chat"
	"unwire/replay/gateway/front"
	"unwire/replay/internal/fronttest"
)

// reasoning is the one member that is not in the official client's types.
const reasoning = "reasoning_content"

var (
	hello = fronttest.Script(turn.Thinking{Text: "Let me "}, turn.Thinking{Text: "think."}, turn.Text{Text: "Hel"}, turn.Tokens{N: 1}, turn.Text{Text: "lo <b>"},
		turn.Ended{Reason: turn.Finished, Usage: &turn.Usage{Input: 12, Output: 5, CacheRead: 4, CacheWrite: 2, Reasoning: 3}})
	calls = fronttest.Script(turn.Text{Text: "Looking."},
		turn.Calling{Call: turn.Call{ID: "sess_a__call_1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}},
		turn.Calling{Call: turn.Call{ID: "sess_a__call_2", Name: "ls"}},
		turn.Ended{Reason: turn.ToolCalls})
	broken = fronttest.Script(turn.Text{Text: "Hel"}, &turn.Error{Kind: turn.Upstream, Message: "the upstream broke off"})
)

func serve(t testing.TB, scripts ...[]any) (*fronttest.Core, string) {
	core := fronttest.NewCore(scripts...)
	server := httptest.NewServer(chat.New(core))
	t.Cleanup(server.Close)
	return core, server.URL
}

// post sends a request and returns the response's body.
func post(t testing.TB, url, body string) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, b
}

const ask = `"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]`

func TestGoldens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body string
		script     []any
		status     int
	}{
		{name: "text.sse", body: `{"stream":true,"stream_options":{"include_usage":true},` + ask + `}`, script: hello, status: 200},
		{name: "calls.sse", body: `{"stream":true,"stream_options":{"include_usage":true},` + ask + `}`, script: calls, status: 200},
		{name: "no_usage.sse", body: `{"stream":true,` + ask + `}`, script: fronttest.Script(turn.Ended{Reason: turn.Length}), status: 200},
		{name: "broken.sse", body: `{"stream":true,` + ask + `}`, script: broken, status: 200},
		{name: "cut.sse", body: `{"stream":true,` + ask + `}`, script: fronttest.Script(turn.Text{Text: "Hel"}), status: 200},
		{name: "failed.sse", body: `{"stream":true,` + ask + `}`, script: fronttest.Script(time.Duration(0), &turn.Error{Kind: turn.Overloaded, Message: "try later"}), status: 503},
		{name: "text.json", body: `{` + ask + `}`, script: hello, status: 200},
		{name: "calls.json", body: `{` + ask + `}`, script: calls, status: 200},
		{name: "calls_alone.json", body: `{` + ask + `}`, script: calls[1:], status: 200},
		{name: "broken.json", body: `{` + ask + `}`, script: broken, status: 502},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			core, url := serve(t, tt.script)
			resp, body := post(t, url, tt.body)
			if resp.StatusCode != tt.status {
				t.Errorf("the status is %d, want %d", resp.StatusCode, tt.status)
			}
			fronttest.Golden(t, "testdata/"+tt.name, body)
			if got := core.Closed(); got != 1 {
				t.Errorf("%d turns were closed, want 1", got)
			}
		})
	}
}

func client(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("key"), option.WithMaxRetries(0))
}

func newParams() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "gpt-5", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")}}
}

func TestOfficialClientStreams(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]any{"text": hello, "calls": calls} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, script)
			params := newParams()
			params.StreamOptions.IncludeUsage = openai.Bool(true)
			c := client(url)
			stream := c.Chat.Completions.NewStreaming(t.Context(), params)
			defer stream.Close()
			var all openai.ChatCompletionAccumulator
			for stream.Next() {
				fronttest.Strict(t, stream.Current(), reasoning)
				if !all.AddChunk(stream.Current()) {
					t.Errorf("the chunk does not continue the answer: %s", stream.Current().RawJSON())
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			checkAnswer(t, name, &all.ChatCompletion)
		})
	}
}

func TestOfficialClientAnswers(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]any{"text": hello, "calls": calls} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, script)
			c := client(url)
			answer, err := c.Chat.Completions.New(t.Context(), newParams())
			if err != nil {
				t.Fatal(err)
			}
			fronttest.Strict(t, answer, reasoning)
			checkAnswer(t, name, answer)
			if name == "text" && answer.Choices[0].Message.JSON.ExtraFields[reasoning].Raw() != `"Let me think."` {
				t.Errorf("the reasoning is missing: %s", answer.RawJSON())
			}
		})
	}
}

func checkAnswer(t *testing.T, name string, answer *openai.ChatCompletion) {
	t.Helper()
	if answer.Model != "composer-1" || len(answer.Choices) != 1 {
		t.Fatalf("got %s", answer.RawJSON())
	}
	c, u := answer.Choices[0], answer.Usage
	if name == "text" {
		if c.Message.Content != "Hello <b>" || c.FinishReason != "stop" {
			t.Errorf("got %q, %s", c.Message.Content, c.FinishReason)
		}
		if u.PromptTokens != 12 || u.CompletionTokens != 5 || u.TotalTokens != 17 || u.PromptTokensDetails.CachedTokens != 4 || u.CompletionTokensDetails.ReasoningTokens != 3 {
			t.Errorf("the usage is %+v", u)
		}
		return
	}
	if c.Message.Content != "Looking." || c.FinishReason != "tool_calls" || u.TotalTokens != 0 || len(c.Message.ToolCalls) != 2 {
		t.Fatalf("got %q, %s, %+v, %d calls", c.Message.Content, c.FinishReason, u, len(c.Message.ToolCalls))
	}
	for i, want := range []string{"sess_a__call_1 read {\"path\":\"a\"}", "sess_a__call_2 ls {}"} {
		call := c.Message.ToolCalls[i]
		if got := call.ID + " " + call.Function.Name + " " + call.Function.Arguments; got != want || call.Type != "function" {
			t.Errorf("call %d is %s of type %s, want %s", i, got, call.Type, want)
		}
	}
}

func TestOfficialClientErrors(t *testing.T) {
	t.Parallel()
	for kind, want := range map[turn.Kind]string{
		turn.Internal:       "500 server_error ",
		turn.Invalid:        "400 invalid_request_error ",
		turn.Unauthorized:   "401 authentication_error invalid_api_key",
		turn.Forbidden:      "403 permission_error ",
		turn.NotFound:       "404 invalid_request_error not_found",
		turn.TooLarge:       "413 invalid_request_error request_too_large",
		turn.RateLimited:    "429 rate_limit_error rate_limit_exceeded",
		turn.Overloaded:     "503 server_error server_is_overloaded",
		turn.Upstream:       "502 server_error upstream_error",
		turn.Timeout:        "504 server_error timeout",
		turn.ContextTooLong: "400 invalid_request_error context_length_exceeded",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			fail := &turn.Error{Kind: kind, Message: "it failed", RetryAfter: 1500 * time.Millisecond}
			_, url := serve(t, fronttest.Script(fail), fronttest.Script(fail))
			c := client(url)
			_, err := c.Chat.Completions.New(t.Context(), newParams())
			stream := c.Chat.Completions.NewStreaming(t.Context(), newParams())
			for stream.Next() {
				t.Errorf("got the chunk %s", stream.Current().RawJSON())
			}
			for _, err := range []error{err, stream.Err()} {
				var e *openai.Error
				if !errors.As(err, &e) {
					t.Fatalf("got %v, want the API's error", err)
				}
				fronttest.Strict(t, e)
				if got := fmt.Sprintf("%d %s %s", e.StatusCode, e.Type, e.Code); got != want || e.Message != "it failed" {
					t.Errorf("got %s %q, want %s", got, e.Message, want)
				}
				if got := e.Response.Header.Get("Retry-After"); got != "2" {
					t.Errorf("Retry-After is %q, want 2", got)
				}
			}
		})
	}
}

func TestOfficialClientSeesBrokenStream(t *testing.T) {
	t.Parallel()
	_, url := serve(t, broken)
	c := client(url)
	stream := c.Chat.Completions.NewStreaming(t.Context(), newParams())
	chunks := 0
	for stream.Next() {
		chunks++
		if reason := stream.Current().Choices[0].FinishReason; reason != "" {
			t.Errorf("the stream ends with %q", reason)
		}
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "broke off") || chunks != 2 {
		t.Errorf("got %v after %d chunks, want the upstream's error after 2", err, chunks)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	_, url := serve(t)
	c := client(url)
	page, err := c.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fronttest.Strict(t, page.Data)
	if len(page.Data) != 2 || page.Data[0].ID != "composer-1" || page.Data[1].ID != "gpt-5" {
		t.Errorf("got %+v, want composer-1 and its alias", page.Data)
	}
	m, err := c.Models.Get(t.Context(), "gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	fronttest.Strict(t, m)
	if m.ID != "composer-1" {
		t.Errorf("gpt-5 is %s, want composer-1", m.ID)
	}
	var e *openai.Error
	if _, err := c.Models.Get(t.Context(), "a/b"); !errors.As(err, &e) || e.StatusCode != 404 || e.Code != "model_not_found" {
		t.Errorf("got %v, want model_not_found", err)
	}
	params := newParams()
	params.Model = "none"
	if _, err := c.Chat.Completions.New(t.Context(), params); !errors.As(err, &e) || e.StatusCode != 404 || e.Param != "model" {
		t.Errorf("got %v, want model_not_found", err)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	_, url := serve(t)
	for _, path := range []string{"/v1/nothing", "/", "/v1/chat/completions"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		checkErrorBody(t, resp, 404)
	}
}

func checkErrorBody(t *testing.T, resp *http.Response, status int) {
	t.Helper()
	defer resp.Body.Close()
	var body struct {
		Error struct{ Message, Type string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || body.Error.Message == "" || body.Error.Type == "" {
		t.Errorf("the error is not in the API's form: %+v, %v", body, err)
	}
	if resp.StatusCode != status {
		t.Errorf("the status is %d, want %d: %s", resp.StatusCode, status, body.Error.Message)
	}
}

func TestLargeBody(t *testing.T) {
	t.Parallel()
	_, url := serve(t)
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", io.LimitReader(zeros{}, 100<<20))
	if err != nil {
		t.Fatal(err)
	}
	checkErrorBody(t, resp, 413)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte(" "), len(b))), nil }

func TestSilenceIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := fronttest.NewCore(fronttest.Script(25*time.Second, turn.Text{Text: "a"}, turn.Ended{Reason: turn.Finished}))
		w := httptest.NewRecorder()
		chat.New(core).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"stream":true,`+ask+`}`)))
		if got := w.Body.String(); !strings.HasPrefix(got, ": waiting for the upstream\n\n: waiting for the upstream\n\ndata: {") || !strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("got %q", got)
		}
	})
}

func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	core, url := serve(t, fronttest.Script(turn.Text{Text: "a"}, never))
	c := client(url)
	stream := c.Chat.Completions.NewStreaming(t.Context(), newParams())
	if !stream.Next() {
		t.Fatal(stream.Err())
	}
	stream.Close()
	for deadline := time.Now().Add(time.Minute); core.Closed() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the turn was not closed")
		}
	}
}

func TestFirstDeltaLeavesAtOnce(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	_, url := serve(t, fronttest.Script(turn.Text{Text: "first"}, gate, turn.Ended{Reason: turn.Finished}))
	c := client(url)
	stream := c.Chat.Completions.NewStreaming(t.Context(), newParams())
	for stream.Next() {
		if d := stream.Current().Choices[0].Delta; d.Content == "first" {
			close(gate)
		}
	}
	if stream.Err() != nil {
		t.Error(stream.Err())
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	_, url := serve(t, hello)
	resp, _ := post(t, url, `{"temperature":0,"seed":7,"frobnicate":1,"tools":[{"type":"function","function":{"name":"a","strict":true}}],`+ask+`}`)
	got := resp.Header.Get(front.NoteHeader)
	for _, want := range []string{"temperature: the upstream", "seed: ", `"frobnicate": this parameter is unknown`, "tools[].function.strict: "} {
		if !strings.Contains(got, want) {
			t.Errorf("the notes %q lack %q", got, want)
		}
	}
}

// BenchmarkDelta measures one delta through the front end, without a network.
func BenchmarkDelta(b *testing.B) {
	script := make([]any, 0, b.N+1)
	for range b.N {
		script = append(script, turn.Text{Text: "word "})
	}
	script = append(script, turn.Ended{Reason: turn.Finished})
	handler := chat.New(fronttest.NewCore(script))
	w := discard{header: http.Header{}}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"stream":true,`+ask+`}`))
	b.ReportAllocs()
	b.ResetTimer()
	handler.ServeHTTP(w, r)
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}
