package responses_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	api "github.com/openai/openai-go/v3/responses"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/responses"
	"unwire/replay/internal/fronttest"
)

var (
	hello = fronttest.Script(turn.Thinking{Text: "Let me "}, turn.Thinking{Text: "think."}, turn.Text{Text: "Hel"}, turn.Tokens{N: 1}, turn.Text{Text: "lo <b>"},
		turn.Ended{Reason: turn.Finished, Usage: &turn.Usage{Input: 12, Output: 5, CacheRead: 4, CacheWrite: 2, Reasoning: 3}})
	calls = fronttest.Script(turn.Text{Text: "Looking."},
		turn.Calling{Call: turn.Call{ID: "sess_a__call_1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}},
		turn.Calling{Call: turn.Call{ID: "sess_a__call_2", Name: "agents__close"}},
		turn.Calling{Call: turn.Call{ID: "sess_a__call_3", Name: "apply_patch", Arguments: json.RawMessage(`{"input":"*** Begin"}`)}},
		turn.Ended{Reason: turn.ToolCalls})
	broken = fronttest.Script(turn.Text{Text: "Hel"}, &turn.Error{Kind: turn.RateLimited, Message: "too many requests.", RetryAfter: 3 * time.Second})
	done   = fronttest.Script(turn.Text{Text: "Done."}, turn.Ended{Reason: turn.Finished})
)

const (
	ask   = `"model":"gpt-5","input":"Hi"`
	tools = `"tools":[{"type":"function","name":"read","description":"Reads.","strict":false,"parameters":{"type":"object"}},` +
		`{"type":"namespace","name":"agents","description":"Sub-agents.","tools":[{"type":"function","name":"close","description":"Closes.","strict":false,"parameters":{"type":"object"}}]},` +
		`{"type":"custom","name":"apply_patch","description":"Patches.","format":{"type":"grammar","syntax":"lark","definition":"start: X"}},` +
		`{"type":"web_search","external_web_access":false}]`
)

func serve(t testing.TB, scripts ...[]any) (*fronttest.Core, string) {
	core := fronttest.NewCore(scripts...)
	server := httptest.NewServer(responses.New(core, responses.Options{}))
	t.Cleanup(server.Close)
	return core, server.URL
}

func post(t testing.TB, url, body string) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.Post(url+"/v1/responses", "application/json", strings.NewReader(body))
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

func TestGoldens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body string
		script     []any
		status     int
	}{
		{name: "text.sse", body: `{"stream":true,` + ask + `}`, script: hello, status: 200},
		{name: "calls.sse", body: `{"stream":true,"instructions":"Be brief.","metadata":{"a":"b"},"max_output_tokens":99,` + tools + `,` + ask + `}`, script: calls, status: 200},
		{name: "incomplete.sse", body: `{"stream":true,` + ask + `}`, script: fronttest.Script(turn.Text{Text: "Hel"}, turn.Ended{Reason: turn.Length}), status: 200},
		{name: "broken.sse", body: `{"stream":true,` + ask + `}`, script: broken, status: 200},
		{name: "cut.sse", body: `{"stream":true,` + ask + `}`, script: fronttest.Script(turn.Thinking{Text: "Hm."}), status: 200},
		{name: "failed.sse", body: `{"stream":true,` + ask + `}`, script: fronttest.Script(time.Duration(0), &turn.Error{Kind: turn.Overloaded, Message: "try later"}), status: 503},
		{name: "text.json", body: `{` + ask + `}`, script: hello, status: 200},
		{name: "calls.json", body: `{` + tools + `,` + ask + `}`, script: calls, status: 200},
		{name: "broken.json", body: `{` + ask + `}`, script: broken, status: 429},
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

func client(url string, options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(url + "/v1"), option.WithAPIKey("key"), option.WithMaxRetries(0)}, options...)...)
}

// newParams returns a request with the tools that codex and others announce.
func newParams(t testing.TB) api.ResponseNewParams {
	var params api.ResponseNewParams
	if err := json.Unmarshal([]byte(`{`+tools+`,`+ask+`}`), &params); err != nil {
		t.Fatal(err)
	}
	return params
}

// TestOfficialClientStreams checks each event against the official types, and that the
// sequence is one that a client can follow.
func TestOfficialClientStreams(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]any{
		"text": hello, "calls": calls, "incomplete": fronttest.Script(turn.Text{Text: "Hel"}, turn.Ended{Reason: turn.Length}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, script)
			c := client(url)
			stream := c.Responses.NewStreaming(t.Context(), newParams(t))
			defer stream.Close()
			var sequence int64
			var last api.Response
			for stream.Next() {
				event := stream.Current()
				if event.SequenceNumber != sequence {
					t.Errorf("%s has the number %d, want %d", event.Type, event.SequenceNumber, sequence)
				}
				sequence++
				fronttest.Strict(t, event)
				last = event.Response
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			checkResponse(t, name, &last)
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
			answer, err := c.Responses.New(t.Context(), newParams(t))
			if err != nil {
				t.Fatal(err)
			}
			fronttest.Strict(t, answer)
			checkResponse(t, name, answer)
		})
	}
}

func checkResponse(t *testing.T, name string, r *api.Response) {
	t.Helper()
	var items []string
	for _, item := range r.Output {
		switch item := item.AsAny().(type) {
		case api.ResponseReasoningItem:
			items = append(items, "thinks "+item.Summary[0].Text)
		case api.ResponseOutputMessage:
			items = append(items, fmt.Sprintf("%s says %s", item.Status, item.Content[0].Text))
		case api.ResponseFunctionToolCall:
			items = append(items, fmt.Sprintf("%s calls %s %s %s", item.CallID, item.Namespace, item.Name, item.Arguments))
		case api.ResponseCustomToolCall:
			items = append(items, fmt.Sprintf("%s gives %s %s", item.CallID, item.Name, item.Input))
		}
	}
	want := map[string]string{
		"text": "thinks Let me think.; completed says Hello <b>",
		"calls": "completed says Looking.; sess_a__call_1 calls  read {\"path\":\"a\"}; sess_a__call_2 calls agents close {}; " +
			"sess_a__call_3 gives apply_patch *** Begin",
		"incomplete": "incomplete says Hel",
	}[name]
	if got := strings.Join(items, "; "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	status := "completed"
	if name == "incomplete" {
		status = name
	}
	if string(r.Status) != status || r.Model != "composer-1" || len(r.Tools) != 3 {
		t.Errorf("the response is %s, of %s, with %d tools", r.Status, r.Model, len(r.Tools))
	}
	if total := map[string]int64{"text": 17}[name]; r.Usage.TotalTokens != total || !r.JSON.Usage.Valid() {
		t.Errorf("the usage is %s", r.JSON.Usage.Raw())
	}
}

func TestOfficialClientSeesBrokenStream(t *testing.T) {
	t.Parallel()
	_, url := serve(t, broken)
	c := client(url)
	stream := c.Responses.NewStreaming(t.Context(), newParams(t))
	var last api.ResponseStreamEventUnion
	for stream.Next() {
		last = stream.Current()
		fronttest.Strict(t, last)
	}
	if last.Type != "response.failed" || last.Response.Status != "failed" || last.Response.Error.Code != "rate_limit_exceeded" {
		t.Errorf("the last event is %s", last.RawJSON())
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "too many requests") {
		t.Errorf("got %v, want the upstream's error", err)
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	for _, continued := range []bool{false, true} {
		t.Run(fmt.Sprintf("continued=%v", continued), func(t *testing.T) {
			t.Parallel()
			core, url := serve(t, calls, done)
			c := client(url)
			params := newParams(t)
			params.Instructions = openai.String("Be brief.")
			first, err := c.Responses.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}

			// The results, and without previous_response_id all before them.
			items := `[`
			if continued {
				params.PreviousResponseID = openai.String(first.ID)
			} else {
				output := first.JSON.Output.Raw()
				items = `[{"type":"message","role":"user","content":"Hi"},` + output[1:len(output)-1] + `,`
			}
			items += `{"type":"function_call_output","call_id":"sess_a__call_1","output":"text of a"},` +
				`{"type":"function_call_output","call_id":"sess_a__call_2","output":[{"type":"input_text","text":"ok"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,aGk="}]},` +
				`{"type":"custom_tool_call_output","call_id":"sess_a__call_3","output":"patched"}]`
			params.Input = api.ResponseNewParamsInputUnion{}
			if err := json.Unmarshal([]byte(items), &params.Input.OfInputItemList); err != nil {
				t.Fatal(err)
			}
			second, err := c.Responses.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			if got := second.OutputText(); got != "Done." {
				t.Errorf("got %q, want Done.", got)
			}
			want := []turn.Message{
				{Role: turn.System, Parts: []turn.Part{{Text: "Be brief."}}},
				{Role: turn.User, Parts: []turn.Part{{Text: "Hi"}}},
				{Role: turn.Assistant, Parts: []turn.Part{
					{Text: "Looking."},
					{Call: &turn.Call{ID: "sess_a__call_1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}},
					{Call: &turn.Call{ID: "sess_a__call_2", Name: "agents__close", Arguments: json.RawMessage(`{}`)}},
					{Call: &turn.Call{ID: "sess_a__call_3", Name: "apply_patch", Arguments: json.RawMessage(`{"input":"*** Begin"}`)}},
				}},
				{Role: turn.ToolRole, Parts: []turn.Part{
					{Result: &turn.Result{CallID: "sess_a__call_1", Parts: []turn.Part{{Text: "text of a"}}}},
					{Result: &turn.Result{CallID: "sess_a__call_2", Parts: []turn.Part{{Text: "ok"}, {Image: &turn.Image{MIME: "image/png", Data: []byte("hi")}}}}},
					{Result: &turn.Result{CallID: "sess_a__call_3", Parts: []turn.Part{{Text: "patched"}}}},
				}},
			}
			if got := core.Requests()[1].Messages; !reflect.DeepEqual(got, want) {
				t.Errorf("got the transcript\n%s\nwant\n%s", show(t, got), show(t, want))
			}
		})
	}
}

func show(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestBranches continues one response twice. The second branch must not see the first,
// though both begin with the same messages.
func TestBranches(t *testing.T) {
	t.Parallel()
	core, url := serve(t, done, done, done)
	_, body := post(t, url, `{`+ask+`}`)
	var first struct{ ID string }
	if err := json.Unmarshal(body, &first); err != nil {
		t.Fatal(err)
	}
	for i, branch := range []string{"A", "B"} {
		post(t, url, `{"model":"gpt-5","previous_response_id":"`+first.ID+`","input":[{"role":"assistant","content":"`+branch+`"},{"role":"user","content":"Go on"}]}`)
		want := []turn.Message{
			{Role: turn.User, Parts: []turn.Part{{Text: "Hi"}}},
			{Role: turn.Assistant, Parts: []turn.Part{{Text: "Done."}, {Text: branch}}},
			{Role: turn.User, Parts: []turn.Part{{Text: "Go on"}}},
		}
		if got := core.Requests()[i+1].Messages; !reflect.DeepEqual(got, want) {
			t.Errorf("branch %s: got %s", branch, show(t, got))
		}
	}
	if got := core.Requests()[1].Messages[1].Parts[1].Text; got != "A" {
		t.Errorf("the first branch was changed to %q", got)
	}
}

func TestPreviousResponseNotFound(t *testing.T) {
	t.Parallel()
	_, url := serve(t, done, done, done)
	mine, other := client(url), client(url, option.WithAPIKey("another"))
	kept, err := mine.Responses.New(t.Context(), newParams(t))
	if err != nil {
		t.Fatal(err)
	}
	unkept := newParams(t)
	unkept.Store = openai.Bool(false)
	forgotten, err := mine.Responses.New(t.Context(), unkept)
	if err != nil {
		t.Fatal(err)
	}

	check := func(c openai.Client, id, status string) {
		t.Helper()
		params := newParams(t)
		params.PreviousResponseID = openai.String(id)
		_, err := c.Responses.New(t.Context(), params)
		got := "ok"
		if e := (*openai.Error)(nil); errors.As(err, &e) {
			got = fmt.Sprintf("%d %s %s", e.StatusCode, e.Param, e.Code)
		}
		if got != status {
			t.Errorf("previous response %s: got %s, want %s", id, got, status)
		}
	}
	const notFound = "400 previous_response_id previous_response_not_found"
	check(other, kept.ID, notFound)
	check(mine, forgotten.ID, notFound)
	check(mine, "resp_unknown", notFound)
	check(mine, kept.ID, "ok")

	var e *openai.Error
	if _, err := mine.Responses.Get(t.Context(), kept.ID, api.ResponseGetParams{}); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("GET: got %v, want 404", err)
	}
	if err := other.Responses.Delete(t.Context(), kept.ID); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("DELETE by another client: got %v, want 404", err)
	}
	if err := mine.Responses.Delete(t.Context(), kept.ID); err != nil {
		t.Error(err)
	}
	check(mine, kept.ID, notFound)
}

func TestTranscriptsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler := responses.New(fronttest.NewCore(done, done, done, done, done, done), responses.Options{Idle: time.Minute, MaxKept: 2})
		ask := func(previous string) (id, code string) {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(`{"previous_response_id":`+previous+`,`+ask+`}`)))
			var body struct {
				ID    string
				Error *struct{ Code string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if body.Error != nil {
				return "", body.Error.Code
			}
			return `"` + body.ID + `"`, ""
		}
		first, _ := ask("null")
		time.Sleep(50 * time.Second)
		second, _ := ask(first)
		time.Sleep(50 * time.Second)
		if _, code := ask(first); code != "previous_response_not_found" {
			t.Errorf("after its time the code is %q", code)
		}
		third, code := ask(second)
		if code != "" {
			t.Errorf("within its time the code is %q", code)
		}
		fourth, _ := ask(third)
		if _, code := ask(second); code != "previous_response_not_found" {
			t.Errorf("the third oldest has the code %q", code)
		}
		if _, code := ask(fourth); code != "" {
			t.Errorf("the latest has the code %q", code)
		}
	})
}

func TestSilenceIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := fronttest.NewCore(fronttest.Script(25*time.Second, turn.Text{Text: "a"}, turn.Ended{Reason: turn.Finished}))
		w := httptest.NewRecorder()
		responses.New(core, responses.Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(`{"stream":true,`+ask+`}`)))
		got := w.Body.String()
		if !strings.HasPrefix(got, "event: response.created\n") || strings.Count(got, ": waiting for the upstream\n\n") != 2 || strings.Count(got, "response.created\n") != 1 {
			t.Errorf("got %q", got)
		}
	})
}

func TestLargeBody(t *testing.T) {
	t.Parallel()
	_, url := serve(t)
	resp, err := http.Post(url+"/v1/responses", "application/json", io.LimitReader(blanks{}, 100<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 413 || !strings.Contains(string(b), `"code":"request_too_large"`) {
		t.Errorf("got %d, %s, %v; want 413", resp.StatusCode, b, err)
	}
}

type blanks struct{}

func (blanks) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte(" "), len(b))), nil }

func TestNotes(t *testing.T) {
	t.Parallel()
	_, url := serve(t, hello)
	resp, _ := post(t, url, `{"reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"],"client_metadata":{},`+tools+`,`+ask+`}`)
	got := resp.Header.Get(front.NoteHeader)
	for _, want := range []string{"reasoning: ", "include: ", "client_metadata: ", "tools[] web_search: "} {
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
	handler := responses.New(fronttest.NewCore(script), responses.Options{})
	w := discard{header: http.Header{}}
	r := httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(`{"stream":true,`+ask+`}`))
	b.ReportAllocs()
	b.ResetTimer()
	handler.ServeHTTP(w, r)
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}
