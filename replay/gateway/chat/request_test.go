package chat_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/chat"
	"unwire/replay/gateway/front"
	"unwire/replay/internal/fronttest"
)

func text(s string) turn.Part { return turn.Part{Text: s} }

func TestRequests(t *testing.T) {
	t.Parallel()
	user := turn.Message{Role: turn.User, Parts: []turn.Part{text("Hi")}}
	read := turn.Part{Call: &turn.Call{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}}
	for _, tt := range []struct {
		name, body string
		want       turn.Request
	}{
		{
			name: "roles and contents",
			body: `{"messages":[{"role":"system","content":"S"},{"role":"developer","content":[{"type":"text","text":"D"},{"type":"text","text":"E"}]},
				{"role":"user","name":"me","content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk=","detail":"low"}}]}]}`,
			want: turn.Request{Messages: []turn.Message{
				{Role: turn.System, Parts: []turn.Part{text("S")}},
				{Role: turn.System, Parts: []turn.Part{text("D"), text("E")}},
				{Role: turn.User, Parts: []turn.Part{text("See"), {Image: &turn.Image{MIME: "image/png", Data: []byte("hi")}}}},
			}},
		},
		{
			name: "calls and results",
			body: `{"messages":[{"role":"user","content":"Hi"},
				{"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},{"id":"c2","type":"function","function":{"name":"ls","arguments":""}}]},
				{"role":"tool","tool_call_id":"c2","content":"two"},
				{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},
				{"role":"assistant","content":"","tool_calls":[{"id":"c3","type":"function","function":{"name":"ls","arguments":"{\"cut"}}]},
				{"role":"tool","tool_call_id":"c3","content":""},
				{"role":"user","content":"Go on"}]}`,
			want: turn.Request{Messages: []turn.Message{
				user,
				{Role: turn.Assistant, Parts: []turn.Part{{Thinking: "Hm."}, read, {Call: &turn.Call{ID: "c2", Name: "ls", Arguments: json.RawMessage(`{}`)}}}},
				{Role: turn.ToolRole, Parts: []turn.Part{
					{Result: &turn.Result{CallID: "c2", Parts: []turn.Part{text("two")}}},
					{Result: &turn.Result{CallID: "c1", Parts: []turn.Part{text("one"), {Image: &turn.Image{MIME: "image/png", Data: []byte("hi")}}}}},
				}},
				{Role: turn.Assistant, Parts: []turn.Part{{Call: &turn.Call{ID: "c3", Name: "ls", Arguments: json.RawMessage(`{"input":"{\"cut"}`)}}}},
				{Role: turn.ToolRole, Parts: []turn.Part{{Result: &turn.Result{CallID: "c3", Parts: []turn.Part{text("")}}}}},
				{Role: turn.User, Parts: []turn.Part{text("Go on")}},
			}},
		},
		{
			name: "answers in a row are one, and a system message may be last",
			body: `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"refusal","refusal":"B"}]},
				{"role":"assistant","content":null,"refusal":"C"},{"role":"user","content":"Hi"},{"role":"system","content":"S"}]}`,
			want: turn.Request{Messages: []turn.Message{
				user, {Role: turn.Assistant, Parts: []turn.Part{text("A"), text("B"), text("C")}}, user, {Role: turn.System, Parts: []turn.Part{text("S")}},
			}},
		},
		{
			name: "limits",
			body: `{"messages":[{"role":"user","content":"Hi"}],"stop":["a","b"],"max_tokens":7,"max_completion_tokens":9,"n":1,"response_format":{"type":"text"},"logprobs":false,"modalities":["text"]}`,
			want: turn.Request{Messages: []turn.Message{user}, Stop: []string{"a", "b"}, MaxTokens: 9},
		},
		{
			name: "one stop, and a limit",
			body: `{"messages":[{"role":"user","content":"Hi"}],"stop":"a","max_tokens":7}`,
			want: turn.Request{Messages: []turn.Message{user}, Stop: []string{"a"}, MaxTokens: 7},
		},
		{
			name: "tools",
			body: `{"messages":[{"role":"user","content":"Hi"}],"tool_choice":"auto","tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object"}}},{"type":"function","function":{"name":"ls"}}]}`,
			want: turn.Request{Messages: []turn.Message{user}, Tools: []turn.Tool{{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "ls"}}},
		},
		{
			name: "no tools",
			body: `{"messages":[{"role":"user","content":"Hi"}],"tool_choice":"none","tools":[{"type":"function","function":{"name":"ls"}}]}`,
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
					g, _ := json.Marshal(got)
					w, _ := json.Marshal(tt.want)
					t.Errorf("got\n%s\nwant\n%s", g, w)
				}
			}
		})
	}
}

func send(core front.Core, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	chat.New(core).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	return w
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const user = `"messages":[{"role":"user","content":"Hi"}]`
	message := func(m string) string {
		return `{"model":"gpt-5","messages":[{"role":"user","content":"Hi"},` + m + `,{"role":"user","content":"Hi"}]}`
	}
	with := func(m string) string { return `{"model":"gpt-5",` + user + `,` + m + `}` }
	for _, tt := range []struct{ body, param, text string }{
		{`{"model":"gpt-5"`, "", "not valid JSON at byte"},
		{`[1]`, "", "must be a JSON object"},
		{`{` + user + `}`, "model", "is required"},
		{`{"model":7,` + user + `}`, "model", "must not be a number"},
		{`{"model":"none",` + user + `}`, "model", "no model"},
		{`{"model":"gpt-5"}`, "messages", "must have a message of the user"},
		{`{"model":"gpt-5","messages":[]}`, "messages", "must have a message of the user"},
		{`{"model":"gpt-5","messages":"Hi"}`, "messages", "must not be a string"},
		{`{"model":"gpt-5","messages":[7]}`, "messages.0", "must not be a number"},
		{`{"model":"gpt-5","messages":[{"role":"system","content":"S"}]}`, "messages", "must have a message of the user"},
		{`{"model":"gpt-5","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"A"}]}`, "messages", "must end with a message of the user"},
		{message(`{"content":"Hi"}`), "messages.1.role", "is required"},
		{message(`{"role":"critic","content":"Hi"}`), "messages.1.role", "must be one of system, developer, user, assistant, tool"},
		{message(`{"role":"user"}`), "messages.1.content", "is required"},
		{message(`{"role":"user","content":7}`), "messages.1.content", "must be a string or a list of parts"},
		{message(`{"role":"user","content":[{"type":"text","text":7}]}`), "messages.1.content.0.text", "must not be a number"},
		{message(`{"role":"user","content":[{"type":"input_audio"}]}`), "messages.1.content.0.type", `must be one of text, image_url, not "input_audio"`},
		{message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`), "messages.1.content.0.image_url.url", "does not fetch remote images"},
		{message(`{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,aGk="}]}`), "messages.1.content.0.image_url", "must not be a string"},
		{message(`{"role":"tool","content":"x"}`), "messages.1.tool_call_id", "is required"},
		{message(`{"role":"tool","content":"x","tool_call_id":"c9"}`), "messages.1.tool_call_id", "no tool call with this id"},
		{message(`{"role":"assistant","function_call":{"name":"f"}}`), "messages.1.function_call", "use tool_calls"},
		{message(`{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f"}}]}`), "messages.1.tool_calls.0.id", "is required"},
		{message(`{"role":"assistant","tool_calls":[{"id":"a","type":"custom"}]}`), "messages.1.tool_calls.0.type", "must be one of function"},
		{with(`"tools":[{"type":"custom","custom":{}}]`), "tools.0.type", "must be one of function"},
		{with(`"tools":[{"type":"function","function":{"name":"a b"}}]`), "tools.0.function.name", "characters"},
		{with(`"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]`), "tools.1.function.name", "another tool"},
		{with(`"tools":[{"type":"function","function":{"name":"a","parameters":[]}}]`), "tools.0.function.parameters", "JSON Schema object"},
		{with(`"tool_choice":"required"`), "tool_choice", "tool_choice must be auto: the upstream cannot be forced to call a tool"},
		{with(`"tool_choice":{"type":"function","function":{"name":"a"}}`), "tool_choice", `cannot be of the type "function"`},
		{with(`"tool_choice":"sometimes"`), "tool_choice", "must be one of auto, none"},
		{with(`"tool_choice":7`), "tool_choice", "must not be a number"},
		{with(`"response_format":{"type":"json_object"}`), "response_format.type", "cannot enforce a format"},
		{with(`"response_format":{"type":"json_schema","json_schema":{}}`), "response_format.type", "cannot enforce a format"},
		{with(`"response_format":{}`), "response_format.type", "is required"},
		{with(`"n":2`), "n", "one answer"},
		{with(`"logprobs":true`), "logprobs", "no probabilities"},
		{with(`"modalities":["text","audio"]`), "modalities", "answers are text"},
		{with(`"audio":{"voice":"alloy"}`), "audio", "answers are text"},
		{with(`"functions":[{"name":"f"}]`), "functions", "use tools"},
		{with(`"stop":["a","b","c","d","e"]`), "stop", "at most 4"},
		{with(`"stop":["a",""]`), "stop.1", "must not be empty"},
		{with(`"stop":7`), "stop", "must not be a number"},
		{with(`"max_tokens":0`), "max_tokens", "at least 1"},
		{with(`"max_completion_tokens":1.5`), "max_completion_tokens", "must not be a number"},
		{with(`"stream_options":{"include_usage":true}`), "stream_options", "only allowed with stream"},
		{with(`"stream":"yes"`), "stream", "must not be a string"},
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
			if w.Code != 400 && w.Code != 404 || body.Error.Type != "invalid_request_error" || body.Error.Param != tt.param || !strings.Contains(body.Error.Message, tt.text) {
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
	for _, p := range chat.Params {
		if seen[p.Name] {
			t.Errorf("%s has two rows", p.Name)
		}
		seen[p.Name] = true
		if p.Treatment != front.Honoured && p.Note == "" {
			t.Errorf("%s has no note", p.Name)
		}
	}
}

func TestManyMessages(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"model":"gpt-5","messages":[`)
	for range 5000 {
		b.WriteString(`{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},`)
	}
	core := fronttest.NewCore(hello)
	w := send(core, b.String()+`{"role":"user","content":"Hi"}]}`)
	if w.Code != 200 || len(core.Requests()[0].Messages) != 10_001 {
		t.Errorf("got %d: %.200s", w.Code, w.Body)
	}

	many := `{"model":"gpt-5","messages":[` + strings.Repeat(`{"role":"user","content":"Hi"},`, front.MaxMessages) + `{"role":"user","content":"Hi"}]}`
	if w := send(core, many); w.Code != 400 || !strings.Contains(w.Body.String(), "more than 20000 messages") {
		t.Errorf("got %d: %.200s", w.Code, w.Body)
	}
}

// FuzzRequest checks that a request of any bytes is either answered or refused in the
// API's form.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}`,
		`{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`,
		`{"model":"gpt-5","tools":[{"type":"function","function":{"name":"a","parameters":{}}}],"tool_choice":{"type":"function"},"stop":["a"],"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"b","arguments":"{"}}]},{"role":"tool","tool_call_id":"a","content":null}]}`,
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
