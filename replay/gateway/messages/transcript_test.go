package messages

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"unwire/replay/agent/turn"
)

// parseBody parses the text of a request.
func parseBody(body string) (*request, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		return nil, err
	}
	r, err := parse(members)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func parseMessages(t *testing.T, list, extra string) *request {
	t.Helper()
	r, err := parseBody(`{"model":"default","max_tokens":1,"messages":` + list + extra + `}`)
	if err != nil {
		t.Fatalf("%.300s: %v", list, err)
	}
	return r
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{ "path" : "a" }},{"type":"tool_use","id":"c2","name":"read","input":null}]}`
	for _, tt := range []struct{ name, list, extra, want string }{
		{
			name: "roles", list: `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":""}]}]`,
			want: `[{"Role":"user","Parts":["a"]},{"Role":"assistant","Parts":["b"]},{"Role":"user","Parts":["c"]}]`,
		},
		{
			name: "system", list: `[{"role":"user","content":"a"}]`, extra: `,"system":"s"`,
			want: `[{"Role":"system","Parts":["s"]},{"Role":"user","Parts":["a"]}]`,
		},
		{
			name: "system after the user", list: `[{"role":"user","content":"a"},{"role":"system","content":"s1"},{"role":"system","content":[{"type":"text","text":"s2"}]}]`, extra: `,"system":"s"`,
			want: `[{"Role":"system","Parts":["s"]},{"Role":"system","Parts":["s1"]},{"Role":"system","Parts":["s2"]},{"Role":"user","Parts":["a"]}]`,
		},
		{
			name: "system after results", list: `[{"role":"user","content":"a"},` + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"},{"type":"text","text":"loaded"}]},{"role":"system","content":"s"}]`,
			want: `[{"Role":"user","Parts":["a"]},{"Role":"assistant","Parts":["call c1 read {\"path\":\"a\"}","call c2 read {}"]},{"Role":"tool","Parts":["result c1 []","loaded","<system>\ns\n</system>"]}]`,
		},
		{
			name: "results", list: `[{"role":"user","content":"a"},` + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"x","is_error":true,"cache_control":{"type":"ephemeral"}},
				{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"y"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]}]}]`,
			want: `[{"Role":"user","Parts":["a"]},{"Role":"assistant","Parts":["call c1 read {\"path\":\"a\"}","call c2 read {}"]},{"Role":"tool","Parts":["failure c2 [x]","result c1 [y image/png of 2 bytes]"]}]`,
		},
		{
			name: "thinking", list: `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]`,
			want: `[{"Role":"user","Parts":["a"]},{"Role":"assistant","Parts":["(t)","b"]},{"Role":"user","Parts":["c"]}]`,
		},
		{
			name: "what other services answered", list: `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"server_tool_use","id":"x","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"x","content":[]},{"type":"compaction","content":"summary"}]},{"role":"user","content":"c"}]`,
			want: `[{"Role":"user","Parts":["a"]},{"Role":"assistant","Parts":["summary"]},{"Role":"user","Parts":["c"]}]`,
		},
		{
			name: "documents", list: `[{"role":"user","content":[{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"d"}},{"type":"document","source":{"type":"content","content":"e"}},
				{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}},{"type":"search_result","source":"https://s","title":"S","content":[{"type":"text","text":"f"}]}]}]`,
			want: `[{"Role":"user","Parts":["Document T:\nd","Document:","e","[Document: a document (application/pdf) was here, which this endpoint cannot pass on. Ask for its text.]","Search result S (https://s):","f"]}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := sketch(parseMessages(t, tt.list, tt.extra).turn.Messages); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestTools has the tools that a request offers, of those that it lists.
func TestTools(t *testing.T) {
	t.Parallel()
	const user = `[{"role":"user","content":"a"}]`
	loading := func(blocks string) string {
		return `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"ToolSearch","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[` + blocks + `]}]}]`
	}
	const listed = `,"tools":[{"name":"a","description":"d","input_schema":{"type":"object"}},{"type":"custom","name":"b","input_schema":{},"defer_loading":true},{"name":"Placeholder","input_schema":{},"defer_loading":true}`
	for _, tt := range []struct{ name, list, extra, want string }{
		{"none", user, ``, ""},
		{"deferred", user, listed + `]`, "a"},
		{"loaded", loading(`{"type":"tool_reference","tool_name":"b"}`), listed + `]`, "a b"},
		{"searched by the server", user, listed + `,{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"}]`, "a b Placeholder"},
		{"run by the client", user, `,"tools":[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}]`, "bash str_replace_based_edit_tool"},
		{"forbidden", user, listed + `],"tool_choice":{"type":"none"}`, ""},
		{"allowed", user, listed + `],"tool_choice":{"type":"auto"}`, "a"},
		{
			"changed", `[{"role":"user","content":"a"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"b"}},{"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}},
				{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"new","input_schema":{}}}}]}]`, listed + `]`, "b new",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, tool := range parseMessages(t, tt.list, tt.extra).turn.Tools {
				names = append(names, tool.Name)
				if !json.Valid(tool.Schema) {
					t.Errorf("%s has the schema %s", tool.Name, tool.Schema)
				}
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// entryGen draws the entries of a conversation as Claude Code sends them, in one of the
// forms that mean the same.
func drawEntries(t *rapid.T) []map[string]any {
	var entries []map[string]any
	calls := 0
	for n := range rapid.IntRange(1, 6).Draw(t, "rounds") {
		user := []any{map[string]any{"type": "text", "text": fmt.Sprintf("question %d", n)}}
		entries = append(entries, map[string]any{"role": "user", "content": user})
		for range rapid.IntRange(0, 2).Draw(t, "system") {
			entries = append(entries, map[string]any{"role": "system", "content": fmt.Sprintf("environment %d", n)})
		}
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			var asked, results []any
			for range rapid.IntRange(1, 3).Draw(t, "parallel") {
				calls++
				id := fmt.Sprintf("c%d", calls)
				asked = append(asked, map[string]any{"type": "tool_use", "id": id, "name": "read", "input": map[string]any{"n": calls}})
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": id, "content": "result of " + id})
			}
			entries = append(entries, map[string]any{"role": "assistant", "content": asked}, map[string]any{"role": "user", "content": results})
			if rapid.Bool().Draw(t, "tokens left") {
				entries = append(entries, map[string]any{"role": "system", "content": "tokens left"})
			}
		}
		entries = append(entries, map[string]any{"role": "assistant", "content": fmt.Sprintf("answer %d", n)})
	}
	return append(entries, map[string]any{"role": "user", "content": "and?"})
}

// otherForm writes an entry in another form of the same meaning: one text as a list, and
// cache_control somewhere.
func otherForm(entry map[string]any) map[string]any {
	content := entry["content"]
	if text, ok := content.(string); ok {
		content = []any{map[string]any{"type": "text", "text": text}}
	}
	var blocks []any
	for _, b := range content.([]any) {
		block := map[string]any{"cache_control": map[string]any{"type": "ephemeral"}}
		for name, value := range b.(map[string]any) {
			block[name] = value
		}
		blocks = append(blocks, block)
	}
	return map[string]any{"role": entry["role"], "content": blocks}
}

// TestTranscriptGrows checks what the core relies on: the requests of one conversation
// have transcripts that begin with the ones before, whatever form the client chose.
func TestTranscriptGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		read := func(entries []map[string]any) []turn.Message {
			b, err := json.Marshal(map[string]any{"model": "default", "max_tokens": 1, "messages": entries})
			if err != nil {
				t.Fatal(err)
			}
			r, err := parseBody(string(b))
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			return r.turn.Messages
		}
		all := read(entries)
		for n, entry := range entries {
			if n == 0 || entry["role"] != "assistant" {
				continue
			}
			// A request was sent before each message of the assistant.
			var changed []map[string]any
			for _, e := range entries[:n] {
				changed = append(changed, otherForm(e))
			}
			earlier := read(changed)
			if len(earlier) > len(all) || !reflect.DeepEqual(earlier, all[:len(earlier)]) {
				t.Fatalf("the transcript\n%s\ndoes not begin with\n%s", sketch(all), sketch(earlier))
			}
			if last := earlier[len(earlier)-1].Role; last != turn.User && last != turn.ToolRole {
				t.Fatalf("the last message is from the role %s", last)
			}
		}
	})
}

// TestManyMessages reads 10,000 messages with tool calls.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"role":"user","content":"begin"}`)
	for i := range 5000 {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"read","input":{"n":%d}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"ok"}]}`, i, i, i)
	}
	began := time.Now()
	r := parseMessages(t, "["+b.String()+"]", "")
	if len(r.turn.Messages) != 10_001 || r.turn.Messages[10_000].Role != turn.ToolRole {
		t.Errorf("%d messages", len(r.turn.Messages))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("10,000 messages took %v", took)
	}
}

// TestLargeImage has an image at the limit, and one above.
func TestLargeImage(t *testing.T) {
	t.Parallel()
	for size, ok := range map[int]bool{10 << 20: true, 10<<20 + 10: false} {
		data := base64.StdEncoding.EncodeToString(make([]byte, size))
		_, err := parseBody(`{"model":"default","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}]}]}`)
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// FuzzParse reads any request. What is accepted must be a conversation that an agent can
// continue, and the same one each time.
func FuzzParse(f *testing.F) {
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"system","content":[{"type":"text","text":"s"}]}],"system":[{"type":"text","text":"x-anthropic-billing-header: a"}]}`)
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"b"}]}]},{"role":"system","content":"s"}],"tools":[{"name":"b","input_schema":{},"defer_loading":true}]}`)
	f.Add(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"document","source":{"type":"url"}}]}],"thinking":{"type":"adaptive"},"tool_choice":{"type":"none"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := parseBody(body)
		if err != nil {
			return
		}
		if last := r.turn.Messages[len(r.turn.Messages)-1]; last.Role != turn.User && last.Role != turn.ToolRole || len(last.Parts) == 0 {
			t.Errorf("the last message is %+v", last)
		}
		for _, m := range r.turn.Messages {
			for _, p := range m.Parts {
				if p.Call != nil && !json.Valid(p.Call.Arguments) {
					t.Errorf("the arguments %s", p.Call.Arguments)
				}
			}
		}
		again, err := parseBody(body)
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("the second time: %v", err)
		}
	})
}

// BenchmarkParse reads a request of the size that Claude Code sends: 60 KB of prompt and
// tools, and 40 messages.
func BenchmarkParse(b *testing.B) {
	var messages strings.Builder
	messages.WriteString(`{"role":"user","content":"begin"}`)
	for i := range 20 {
		fmt.Fprintf(&messages, `,{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"c%d","name":"read","input":{"n":%d}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"%0500d"}]}`, i, i, i, i)
	}
	var tools []string
	for i := range 20 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool%d","description":"%01500d","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}`, i, i))
	}
	body := fmt.Sprintf(`{"model":"default","max_tokens":1,"system":"%030000d","tools":[%s],"messages":[%s]}`, 1, strings.Join(tools, ","), messages.String())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseBody(body); err != nil {
			b.Fatal(err)
		}
	}
}
