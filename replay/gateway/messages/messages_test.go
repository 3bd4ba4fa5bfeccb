package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

func send(t *testing.T, method, url, body, version string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if version != "" {
		r.Header.Set(VersionHeader, version)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// sketch writes messages in short.
func sketch(messages []turn.Message) string {
	type entry struct {
		Role  turn.Role
		Parts []string
	}
	var entries []entry
	for _, m := range messages {
		entries = append(entries, entry{m.Role, sketchParts(m.Parts)})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(entries); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

func sketchParts(parts []turn.Part) (out []string) {
	for _, p := range parts {
		switch {
		case p.Thinking != "":
			out = append(out, "("+p.Thinking+")")
		case p.Image != nil:
			out = append(out, fmt.Sprintf("%s of %d bytes", p.Image.MIME, len(p.Image.Data)))
		case p.Call != nil:
			out = append(out, fmt.Sprintf("call %s %s %s", p.Call.ID, p.Call.Name, p.Call.Arguments))
		case p.Result != nil:
			word := "result"
			if p.Result.IsError {
				word = "failure"
			}
			out = append(out, fmt.Sprintf("%s %s %v", word, p.Result.CallID, sketchParts(p.Result.Parts)))
		default:
			out = append(out, p.Text)
		}
	}
	return out
}

// TestGolden compares what is on the wire, byte by byte.
func TestGolden(t *testing.T) {
	t.Parallel()
	const asking = `"model":"default","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]`
	stopped := turn.Ended{Reason: turn.StoppedBy, Stop: "</end>", Usage: &turn.Usage{Input: 1, Output: 2}}
	for _, tt := range []struct {
		name, query, body string
		script            []any
	}{
		{name: "tools.sse", body: `"stream":true,"thinking":{"type":"adaptive"},`, script: toolTurn},
		{name: "omitted.sse", body: `"stream":true,"thinking":{"type":"adaptive","display":"omitted"},`, script: toolTurn},
		{name: "hidden.sse", body: `"stream":true,`, script: toolTurn},
		{name: "beta.sse", query: "?beta=true", body: `"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},`, script: []any{turn.Thinking{Text: "Hm."}, turn.Text{Text: "Hi."}, end}},
		{name: "stopped.sse", body: `"stream":true,`, script: []any{turn.Text{Text: "Hi."}, stopped}},
		{name: "broken.sse", body: `"stream":true,`, script: []any{turn.Text{Text: "Hi."}, &turn.Error{Kind: turn.Upstream, Message: "the upstream broke off"}}},
		{name: "empty.sse", body: `"stream":true,`, script: []any{end}},
		{name: "tools.json", body: `"thinking":{"type":"adaptive"},`, script: toolTurn},
		{name: "length.json", query: "?beta=true", script: []any{turn.Text{Text: "Hi."}, turn.Ended{Reason: turn.Length, Usage: &turn.Usage{Output: 10}}}},
		{name: "refused.json", script: []any{&turn.Error{Kind: turn.ContextTooLong, Message: "210000 tokens > 200000 maximum"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, &fakeCore{scripts: [][]any{tt.script}})
			_, got := post(t, url+"/v1/messages"+tt.query, "{"+tt.body+asking+"}")
			file := filepath.Join("testdata", "stream", tt.name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestPing keeps a stream alive while the turn is silent, or says nothing that the
// client sees.
func TestPing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		script := []any{25 * time.Second, turn.Text{Text: "a"}}
		for range 5 {
			script = append(script, 6*time.Second, turn.Thinking{Text: "hidden"})
		}
		h := newHandler(&fakeCore{scripts: [][]any{append(script, end)}}, numbered())
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"default","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
		r.Header.Set(VersionHeader, "2023-06-01")
		h.ServeHTTP(w, r)
		var names []string
		for line := range strings.Lines(w.Body.String()) {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				names = append(names, strings.TrimSpace(name))
			}
		}
		want := []string{"message_start", "ping", "ping", "content_block_start", "content_block_delta", "ping", "ping", "content_block_stop", "message_delta", "message_stop"}
		if !slices.Equal(names, want) {
			t.Errorf("got %v\nwant %v", names, want)
		}
	})
}

// TestRefusals has a request for each error that the front end finds by itself.
func TestRefusals(t *testing.T) {
	t.Parallel()
	url := serve(t, &fakeCore{})
	body := func(extra string) string {
		return `{"model":"default","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]` + extra + `}`
	}
	messages := func(list string) string { return `{"model":"default","max_tokens":1,"messages":` + list + `}` }
	for _, tt := range []struct{ body, want string }{
		{`{"model":`, "not valid JSON"},
		{`[]`, "must be a JSON object"},
		{`{}`, "model: is required"},
		{`{"model":7}`, "model must not be a number"},
		{`{"model":"default","messages":[]}`, "max_tokens: is required"},
		{`{"model":"default","max_tokens":0}`, "max_tokens: must be at least 1"},
		{`{"model":"default","max_tokens":1}`, "messages: at least one message"},
		{messages(`{}`), "messages: must be a list"},
		{messages(`[[]]`), "messages.0 must not be a array"},
		{messages(`[{"role":"tool","content":"x"}]`), `messages.0.role: must be user, assistant or system, not "tool"`},
		{messages(`[{"content":"x"}]`), "messages.0.role"},
		{messages(`[{"role":"user"}]`), "messages.0.content: is required"},
		{messages(`[{"role":"user","content":7}]`), "messages.0.content: must be a text or a list"},
		{messages(`[{"role":"user","content":[{"text":"x"}]}]`), "messages.0.content.0.type: is required"},
		{messages(`[{"role":"user","content":[{"type":"video"}]}]`), `"video" is not supported in a user message`},
		{messages(`[{"role":"user","content":""}]`), "all messages are empty"},
		{messages(`[{"role":"system","content":"x"}]`), "must be a message from the user"},
		{messages(`[{"role":"user","content":"x"},{"role":"assistant","content":"The answer is"}]`), "cannot continue an answer"},
		{messages(`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]`), `unexpected tool_use_id "x"`},
		{messages(`[{"role":"user","content":[{"type":"tool_result"}]}]`), "tool_use_id: is required"},
		{messages(`[{"role":"assistant","content":[{"type":"tool_use","name":"x"}]}]`), "messages.0.content.0.id: is required"},
		{messages(`[{"role":"assistant","content":[{"type":"tool_use","id":"x"}]}]`), "messages.0.content.0.name: is required"},
		{messages(`[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}]`), "unwire fetches no images, so send the image itself with the type base64"},
		{messages(`[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}]}]`), "not valid base64"},
		{body(`,"system":7`), "system: must be a text"},
		{body(`,"thinking":{"type":"deep"}`), "thinking.type"},
		{body(`,"stop_sequences":["a"," "]`), "stop_sequences.1: must not be only white space"},
		{body(`,"output_config":{"format":{"type":"json_schema","schema":{}}}`), "output_config.format is not supported"},
		{body(`,"output_format":{"type":"json_schema","schema":{}}`), "output_format is not supported"},
		{body(`,"mcp_servers":[{}]`), "mcp_servers is not supported"},
		{body(`,"tool_choice":{"type":"any"}`), "the type any is not supported"},
		{body(`,"tool_choice":{"type":"tool","name":"x"}`), "the type tool is not supported"},
		{body(`,"tool_choice":{}`), "tool_choice.type: is required"},
		{body(`,"tools":[{"input_schema":{}}]`), "tools.0.name: is required"},
		{body(`,"tools":[{"name":"a"}]`), "tools.0.input_schema: must be an object"},
		{body(`,"tools":[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}]`), "the name of an earlier tool"},
		{body(`,"tools":[{"type":"web_search_20250305","name":"web_search"}]`), "web_search_20250305"},
		{messages(`[` + strings.Repeat(`null,`, front.MaxMessages+1) + `null]`), "messages: has more than 20000 entries"},
	} {
		resp, text := post(t, url+"/v1/messages", tt.body)
		var e errorBody
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("%.200s: %v: %s", tt.body, err, text)
		}
		if resp.StatusCode != 400 || e.Type != "error" || e.Error.Type != "invalid_request_error" || !strings.Contains(e.Error.Message, tt.want) {
			t.Errorf("%.200s:\ngot %d %s\nwant %q", tt.body, resp.StatusCode, text, tt.want)
		}
		if resp.Header.Get("Request-Id") != e.RequestID {
			t.Errorf("%.200s: the header's request id is %q, the body's %q", tt.body, resp.Header.Get("Request-Id"), e.RequestID)
		}
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	url := serve(t, &fakeCore{})
	for _, tt := range []struct {
		method, path, version string
		status                int
		kind                  string
	}{
		{"POST", "/v1/messages", "", 400, "invalid_request_error"},
		{"GET", "/v1/models", "", 400, "invalid_request_error"},
		{"POST", "/v1/messages/count_tokens?beta=true", "2023-06-01", 404, "not_found_error"},
		{"GET", "/v1/messages", "2023-06-01", 405, "invalid_request_error"},
		{"POST", "/v1/models", "2023-06-01", 405, "invalid_request_error"},
		{"GET", "/v1/models/unknown", "2023-06-01", 404, "not_found_error"},
		{"GET", "/v1/models?limit=0", "2023-06-01", 400, "invalid_request_error"},
		{"GET", "/v1/files", "2023-06-01", 404, "not_found_error"},
	} {
		resp, text := send(t, tt.method, url+tt.path, "", tt.version)
		if resp.StatusCode != tt.status || !strings.Contains(text, `"type":"`+tt.kind+`"`) {
			t.Errorf("%s %s: got %d %s", tt.method, tt.path, resp.StatusCode, text)
		}
	}
	resp, text := post(t, url+"/v1/messages", `{"model":"gpt-0","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`)
	if resp.StatusCode != 404 || !strings.Contains(text, "gpt-0") {
		t.Errorf("an unknown model: got %d %s", resp.StatusCode, text)
	}
}

func TestModelPages(t *testing.T) {
	t.Parallel()
	url := serve(t, &fakeCore{})
	for query, want := range map[string]string{
		"":                                     "[composer-1 default small-1 vendor/big-1] false",
		"?limit=3":                             "[composer-1 default small-1] true",
		"?limit=2&after_id=small-1":            "[vendor/big-1] false",
		"?after_id=vendor/big-1":               "[] false",
		"?before_id=vendor/big-1&limit=1":      "[small-1] true",
		"?before_id=vendor/big-1":              "[composer-1 default small-1] false",
		"?before_id=composer-1":                "[] false",
		"?after_id=composer-1&before_id=small": "[] false",
	} {
		_, text := send(t, http.MethodGet, url+"/v1/models"+query, "", "2023-06-01")
		var page modelPage
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, m := range page.Data {
			ids = append(ids, m.ID)
		}
		if got := fmt.Sprint(ids, " ", page.HasMore); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
		if len(ids) > 0 && (*page.FirstID != ids[0] || *page.LastID != ids[len(ids)-1]) {
			t.Errorf("%s: first_id %s, last_id %s", query, *page.FirstID, *page.LastID)
		}
	}
}

// TestLargeBody sends 100 MB. The answer must come although the server does not read
// them all.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	url := serve(t, &fakeCore{})
	head := `{"model":"default","max_tokens":1,"messages":[{"role":"user","content":"`
	body := io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, 100<<20))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(VersionHeader, "2023-06-01")
	r.Header.Set("Expect", "100-continue")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 413 || !strings.Contains(string(text), `"type":"request_too_large"`) {
		t.Errorf("got %d %s, %v", resp.StatusCode, text, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestNotes reports each parameter without effect in the answer's header.
func TestNotes(t *testing.T) {
	t.Parallel()
	core := &fakeCore{scripts: [][]any{{turn.Text{Text: "Hi."}, end}}}
	resp, text := post(t, serve(t, core)+"/v1/messages?beta=true", `{"model":"default","max_tokens":1,"temperature":0.5,"top_p":1,"metadata":{"user_id":"x"},"novel":1,
		"context_management":{"edits":[]},"output_config":{"effort":"high"},"thinking":{"type":"adaptive"},"stop_sequences":["END"],
		"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2"},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"a","input_schema":{},"strict":true,"input_examples":[{}]}],"tool_choice":{"type":"none","disable_parallel_tool_use":true},
		"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}`)
	if resp.StatusCode != 200 {
		t.Fatal(text)
	}
	notes := resp.Header.Get(front.NoteHeader)
	for _, want := range []string{"temperature: ", "metadata: ", `"novel": this parameter is unknown`, "context_management: ", "output_config: ", "billing header", "cache_control: ", "strict: ", "input_examples", "disable_parallel_tool_use"} {
		if strings.Count(notes, want) != 1 {
			t.Errorf("the notes do not have %q once: %s", want, notes)
		}
	}
	if strings.Contains(notes, "top_p") || strings.Contains(notes, "thinking") {
		t.Errorf("a note for what has an effect: %s", notes)
	}
	r := core.requests[0]
	if len(r.Tools) != 0 || !slices.Equal(r.Stop, []string{"END"}) || sketch(r.Messages) != `[{"Role":"system","Parts":["Be brief."]},{"Role":"user","Parts":["Hi"]}]` {
		t.Errorf("the core got %+v", r)
	}
}

// BenchmarkDelta measures one delta of a stream, without the network.
func BenchmarkDelta(b *testing.B) {
	script := make([]any, 0, b.N+1)
	for range b.N {
		script = append(script, turn.Text{Text: "a few words of text "})
	}
	t := &fakeTurn{core: &fakeCore{}, script: append(script, end)}
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	b.ResetTimer()
	stream(b.Context(), w, "req_1", t, newAnswer("msg_1", "composer-1", shown, true))
	if b.N > 1 && w.n < b.N*40 {
		b.Errorf("%d bytes were written", w.n)
	}
}

type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Flush()              {}
func (d *discard) Write(p []byte) (int, error) {
	d.n += len(p)
	return len(p), nil
}
