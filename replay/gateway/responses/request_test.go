package responses_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
	"unwire/replay/gateway/responses"
	"unwire/replay/internal/fronttest"
)

func text(s string) turn.Part { return turn.Part{Text: s} }

func send(core front.Core, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	responses.New(core, responses.Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(body)))
	return w
}

func TestRequests(t *testing.T) {
	t.Parallel()
	user := turn.Message{Role: turn.User, Parts: []turn.Part{text("Hi")}}
	const inputSchema = `{"type":"object","properties":{"input":{"type":"string","description":"the tool's whole input, as text"}},"required":["input"],"additionalProperties":false}`
	for _, tt := range []struct {
		name, body string
		want       turn.Request
	}{
		{
			name: "text and instructions",
			body: `{"input":"Hi","instructions":"S","max_output_tokens":9,"text":{"format":{"type":"text"}},"background":false}`,
			want: turn.Request{Messages: []turn.Message{{Role: turn.System, Parts: []turn.Part{text("S")}}, user}, MaxTokens: 9},
		},
		{
			name: "items as codex sends them",
			body: `{"input":[{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"D"}]},
				{"type":"message","role":"user","content":[{"type":"input_text","text":"See"},{"type":"input_image","detail":"high","image_url":"data:image/png;base64,aGk="}]},
				{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":null},
				{"type":"web_search_call","id":"ws_1","status":"completed"},
				{"type":"message","id":"msg_2","role":"assistant","status":"completed","content":[{"type":"output_text","text":"A","annotations":[],"logprobs":[]}]},
				{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"path\":\"a\"}","status":"completed"},
				{"type":"function_call","call_id":"c2","namespace":"agents","name":"close","arguments":"{}"},
				{"type":"custom_tool_call","call_id":"c3","name":"apply_patch","input":"*** Begin"},
				{"type":"function_call_output","call_id":"c2","output":"two"},
				{"type":"custom_tool_call_output","call_id":"c3","output":[{"type":"input_text","text":"three"}]},
				{"type":"function_call_output","call_id":"c1","output":"aborted"}]}`,
			want: turn.Request{Messages: []turn.Message{
				{Role: turn.System, Parts: []turn.Part{text("D")}},
				{Role: turn.User, Parts: []turn.Part{text("See"), {Image: &turn.Image{MIME: "image/png", Data: []byte("hi")}}}},
				{Role: turn.Assistant, Parts: []turn.Part{
					text("A"),
					{Call: &turn.Call{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}},
					{Call: &turn.Call{ID: "c2", Name: "agents__close", Arguments: json.RawMessage(`{}`)}},
					{Call: &turn.Call{ID: "c3", Name: "apply_patch", Arguments: json.RawMessage(`{"input":"*** Begin"}`)}},
				}},
				{Role: turn.ToolRole, Parts: []turn.Part{
					{Result: &turn.Result{CallID: "c2", Parts: []turn.Part{text("two")}}},
					{Result: &turn.Result{CallID: "c3", Parts: []turn.Part{text("three")}}},
					{Result: &turn.Result{CallID: "c1", Parts: []turn.Part{text("aborted")}}},
				}},
			}},
		},
		{
			name: "messages without a type",
			body: `{"input":[{"role":"user","content":"Hi"},{"role":"assistant","content":"A"},{"role":"assistant","content":[{"type":"refusal","refusal":"B"}]},{"role":"user","content":"Hi"}]}`,
			want: turn.Request{Messages: []turn.Message{user, {Role: turn.Assistant, Parts: []turn.Part{text("A"), text("B")}}, user}},
		},
		{
			name: "tools",
			body: `{"input":"Hi",` + tools + `}`,
			want: turn.Request{Messages: []turn.Message{user}, Tools: []turn.Tool{
				{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object"}`)},
				{Name: "agents__close", Description: "Closes. (agents: Sub-agents.)", Schema: json.RawMessage(`{"type":"object"}`)},
				{Name: "apply_patch", Description: "Patches.\n\nThe input must match this lark grammar:\nstart: X", Schema: json.RawMessage(inputSchema)},
			}},
		},
		{
			name: "no tools",
			body: `{"input":"Hi","tool_choice":"none",` + tools + `}`,
			want: turn.Request{Messages: []turn.Message{user}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// The same request gives the same turn each time.
			for range 2 {
				core := fronttest.NewCore(hello)
				w := send(core, `{"model":"gpt-5",`+tt.body[1:])
				if w.Code != 200 {
					t.Fatalf("got %d: %s", w.Code, w.Body)
				}
				tt.want.Model = "composer-1"
				if got := core.Requests()[0]; !reflect.DeepEqual(*got, tt.want) {
					t.Errorf("got\n%s\nwant\n%s", show(t, got), show(t, tt.want))
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	item := func(i string) string {
		return `{"model":"gpt-5","input":[{"role":"user","content":"Hi"},` + i + `,{"role":"user","content":"Hi"}]}`
	}
	with := func(m string) string { return `{` + ask + `,` + m + `}` }
	for _, tt := range []struct{ body, param, text string }{
		{`{"model":"gpt-5"`, "", "not valid JSON at byte"},
		{`null`, "", "must be a JSON object"},
		{`{"input":"Hi"}`, "model", "is required"},
		{`{"model":"none","input":"Hi"}`, "model", "no model"},
		{`{"model":"gpt-5"}`, "input", "must have a message of the user"},
		{`{"model":"gpt-5","input":7}`, "input", "must be a string or a list of items"},
		{`{"model":"gpt-5","input":[7]}`, "input.0", "must not be a number"},
		{`{"model":"gpt-5","input":[{"role":"user","content":"Hi"},{"role":"assistant","content":"A"}]}`, "input", "must end with a message of the user"},
		{item(`{"type":"message","content":"Hi"}`), "input.1.role", "is required"},
		{item(`{"role":"critic","content":"Hi"}`), "input.1.role", "must be one of user, assistant, system, developer"},
		{item(`{"role":"user"}`), "input.1.content", "is required"},
		{item(`{"role":"user","content":[{"type":"input_file"}]}`), "input.1.content.0.type", "must be one of input_text"},
		{item(`{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}`), "input.1.content.0.image_url", "does not fetch remote images"},
		{item(`{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}`), "input.1.content.0.file_id", "stores no files"},
		{item(`{"type":"function_call_output","output":"x"}`), "input.1.call_id", "is required"},
		{item(`{"type":"function_call_output","call_id":"c9","output":"x"}`), "input.1.call_id", "no tool call with this id"},
		{item(`{"type":"function_call","call_id":"c1","arguments":"{}"}`), "input.1.name", "is required"},
		{item(`{"type":"compaction","encrypted_content":"x"}`), "input.1.type", "must be one of message"},
		{item(`{"type":"item_reference","id":"msg_1"}`), "input.1.id", "does not store items"},
		{with(`"tools":[{"type":"telepathy"}]`), "tools.0.type", "must be one of function, custom, namespace"},
		{with(`"tools":[{"type":"function","name":"a b"}]`), "tools.0.name", "characters"},
		{with(`"tools":[{"type":"namespace","name":"n","tools":[{"type":"namespace","name":"m"}]}]`), "tools.0.tools.0.type", "must be one of"},
		{with(`"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"}]},{"type":"function","name":"n__a"}]`), "tools.1.name", "another tool"},
		{with(`"tool_choice":"required"`), "tool_choice", "tool_choice must be auto: the upstream cannot be forced to call a tool"},
		{with(`"tool_choice":{"type":"function","name":"a"}`), "tool_choice", "cannot be of the type"},
		{with(`"text":{"format":{"type":"json_schema","name":"x","schema":{}}}`), "text.format.type", "cannot enforce a format"},
		{with(`"background":true`), "background", "not stored"},
		{with(`"conversation":"conv_1"`), "conversation", "stores no conversations"},
		{with(`"prompt":{"id":"p"}`), "prompt", "stores no prompts"},
		{with(`"top_logprobs":3`), "top_logprobs", "no probabilities"},
		{with(`"max_output_tokens":-1`), "max_output_tokens", "at least 1"},
		{with(`"metadata":{"a":1}`), "metadata", "must not be a number"},
		{with(`"previous_response_id":"resp_1"`), "previous_response_id", "Previous response with id 'resp_1' not found."},
	} {
		t.Run(tt.param+" "+tt.text, func(t *testing.T) {
			t.Parallel()
			core := fronttest.NewCore(hello)
			w := send(core, tt.body)
			var body struct {
				Error struct{ Message, Type, Param string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if w.Code != 400 && w.Code != 404 || body.Error.Type != "invalid_request_error" || !strings.HasPrefix(body.Error.Param, tt.param) || !strings.Contains(body.Error.Message, tt.text) {
				t.Errorf("%s: got %d, %+v; want %q for %s", tt.body, w.Code, body.Error, tt.text, tt.param)
			}
			if len(core.Requests()) > 0 {
				t.Error("the request reached the core")
			}
		})
	}
}

// TestParamsAreReadOnce checks that the table has one row for a name, and a reason for
// all that is not honoured.
func TestParamsAreReadOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range responses.Params {
		if seen[p.Name] {
			t.Errorf("%s has two rows", p.Name)
		}
		seen[p.Name] = true
		if p.Treatment != front.Honoured && p.Note == "" {
			t.Errorf("%s has no note", p.Name)
		}
	}
}

func TestManyItems(t *testing.T) {
	t.Parallel()
	body := `{"model":"gpt-5","input":[` + strings.Repeat(`{"role":"user","content":"Hi"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"},`, 3500) + `{"role":"user","content":"Hi"}]}`
	core := fronttest.NewCore(hello)
	if w := send(core, body); w.Code != 200 || len(core.Requests()[0].Messages) != 10_501 {
		t.Errorf("got %d: %.200s", w.Code, w.Body)
	}
}

// FuzzRequest checks that a request of any bytes is either answered or refused in the
// API's form.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"model":"gpt-5","input":"Hi"}`,
		`{"model":"gpt-5","stream":true,` + tools + `,"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}]}`,
		`{"model":"gpt-5","previous_response_id":"a","metadata":{"a":"b"},"input":[{"type":"function_call","call_id":"a","name":"b","arguments":"{"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text"}]}]}`,
		`{"model":"gpt-5","input":[{"type":"custom_tool_call","call_id":"a","name":"b","input":"x"},{"type":"custom_tool_call_output","call_id":"a","output":null},{"type":"reasoning"}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := send(fronttest.NewCore(hello), string(body))
		if w.Code == 200 {
			return
		}
		var e struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" || w.Code < 400 || w.Code >= 500 {
			t.Errorf("got %d: %s", w.Code, w.Body)
		}
	})
}
