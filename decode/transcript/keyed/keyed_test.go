package keyed

import (
	"fmt"
	"testing"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/transcript/event"
)

func find(dir captures.Direction, name, body string) *Pieces {
	ex := &decode.Exchange{Frames: []decode.Frame{{Dir: dir, Frame: envelope.Frame{Data: []byte(body), Event: name}}}}
	return Find(event.Read(ex))
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name, event, body string
		dir               captures.Direction
		want              string
	}{
		{"role", "", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"Ho"}]}]}`, captures.Up, `[1 0 "Hi" 2 0 "Ho"]`},
		{"thinking by type", "", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`, captures.Down, `[0 1 "Hm"]`},
		{"thinking by a flag", "", `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm","thought":true},{"text":"Ho"}]}}]}`, captures.Down, `[2 1 "Hm" 2 0 "Ho"]`},
		{"settings are no thinking", "", `{"reasoning":{"effort":"high","summary":"auto"},"text":{"format":{"type":"text"}}}`, captures.Down, `[]`},
		{"a choice of a tool is no call", "", `{"tool_choice":{"type":"function","name":"get"},"tools":[{"type":"function","name":"get","description":"Gets.","parameters":{}}]}`, captures.Down, `[]`},
		{"call", "", `{"delta":{"tool_calls":[{"index":1,"id":"c1","function":{"name":"get","arguments":"{"}}]}}`, captures.Down, `[0 2 "{" c1 get]`},
		{"call with an object", "", `{"functionCall":{"name":"get","args":{"a":[1]}}}`, captures.Down, `[0 2 "{\"a\":[1]}"  get]`},
		{"result", "", `{"messages":[{"role":"tool","tool_call_id":"c1","content":"42"}]}`, captures.Up, `[4 3 "42" c1 ]`},
		{"event", "contentBlockDelta", `{"delta":{"reasoningContent":{"text":"Hm"}}}`, captures.Down, `[0 1 "Hm"]`},
		{"sources", "", `{"citations":[{"title":"T","url":"https://x","text":"no"}],"text":"yes"}`, captures.Down, `[0 0 "yes"]`},
		{"compound names", "", `{"user_event":{"user_transcript":"Hi"},"agentResponse":"Ho","response_format":"no"}`, captures.Down, `[1 0 "Hi" 2 0 "Ho"]`},
		{"a message by its name", "", `{"history":[{"userInputMessage":{"content":"Hi"}},{"assistantResponseMessage":{"content":"Ho"}}]}`, captures.Up, `[1 0 "Hi" 2 0 "Ho"]`},
		{"a result by its members", "", `{"toolCallId":"c1","result":"42"}`, captures.Down, `[0 3 "42" c1 ]`},
		{"sound", "", `{"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"AAAA"}},{"text":"Ho"}]}`, captures.Down, `[0 0 "Ho"]`},
		{"a state", "", `{"text":"Searching","channelData":{"streamType":"informative"}}`, captures.Down, `[]`},
		{"patches", "", `{"ops":[{"op":"add","path":"/messages/0","value":{"role":"assistant","content":""}},{"op":"append","path":"/messages/0/content","value":"Ho"}]}`, captures.Down, `[2 0 "Ho"]`},
		{"a patch of arguments", "", `{"incremental":[{"items":[{"id":"c1","name":"get","arguments":[]}],"path":["messages",0]},{"items":["{}"],"path":["messages",0,"arguments",0]}]}`, captures.Down, `[0 2 "" c1 get 0 2 "{}" c1 get]`},
		{"a file is no patch", "", `{"path":"/etc/hosts","content":"yes"}`, captures.Down, `[0 0 "yes"]`},
		{"a kind", "", `{"event_kind":"part_delta","delta":{"content_delta":"Hm","part_delta_kind":"thinking"}}`, captures.Down, `[0 1 "Hm"]`},
		{"progress of a text", "", `{"type":"intent-progress","data":{"chat_log_delta":{"content":"Ho"}}}`, captures.Down, `[0 0 "Ho"]`},
		{"progress of the server", "", `{"type":"load-progress","data":{"content":"no"}}`, captures.Down, `[]`},
		{"a summary without spaces", "", `{"thinking":{"summary":"我先看看文件。"}}`, captures.Down, `[0 1 "我先看看文件。"]`},
		{"a piece of arguments", "", `{"type":"ToolCallPart","payload":{"arguments_part":"{\"a\""}}`, captures.Down, `[0 2 "{\"a\""  ]`},
		{"arguments of an action", "", `{"action_name":"get","action_input":{"a":1}}`, captures.Down, `[0 2 "{\"a\":1}"  get]`},
		{"the identifier of a request", "", `{"tool_request_id":"c1","plugin_name":"get","params":{}}`, captures.Down, `[0 2 "{}" c1 get]`},
		{"a returned result", "", `{"part_kind":"tool-return","tool_name":"get","content":"42","tool_call_id":"c1"}`, captures.Up, `[0 3 "42" c1 get]`},
		{"a name next to arguments", "", `{"arguments":{"a":1},"component_code":"get"}`, captures.Down, `[]`},
		{"a name next to the arguments of a call", "", `{"type":"function_call","text":{"arguments":{"a":1},"component_code":"get"}}`, captures.Down, `[0 2 "{\"a\":1}"  get]`},
		{"the identifiers of a call and of a tool", "", `{"tool_id":"c1","tool_kwargs":{"a":1},"tool_name":"get"}`, captures.Down, `[0 2 "{\"a\":1}" c1 get]`},
		{"a tool with an identifier only", "", `{"tool_call_id":"c1","tool_id":"get","params":{"a":1},"type":"tool_call"}`, captures.Down, `[0 2 "{\"a\":1}" c1 get]`},
		{"a request of JSON-RPC that is a call", "", `{"method":"conversation/invokeTool","params":{"name":"get","input":{"a":1},"toolCallId":"c1"}}`, captures.Down, `[0 2 "{\"a\":1}" c1 get]`},
		{"a piece of arguments that is a word", "", `{"tool_calls":[{"index":0,"function":{"arguments":"path"}}]}`, captures.Down, `[0 2 "path"  ]`},
		{"a call without a result yet", "", `{"toolCalls":[{"id":"c1","name":"get","input":{},"result":[]}]}`, captures.Down, `[0 2 "{}" c1 get]`},
		{"arguments as the content of a call", "", `{"type":"ToolCall","id":"c1","name":"get","content":"{}"}`, captures.Down, `[0 2 "{}" c1 get]`},
		{"a wrapped call with its result", "", `{"type":"ToolCallResult","value":{"tool_name":"get","tool_kwargs":{},"tool_call_id":"c1","tool_output":"42"}}`, captures.Down, `[0 2 "{}" c1 get 0 3 "42" c1 get]`},
		{"what a tool says", "", `{"items":[{"type":"call","name":"get_weather","arguments":{}},{"type":"get_weather","text":"42"}]}`, captures.Down, `[0 2 "{}"  get_weather 0 3 "42"  ]`},
		{"an identifier is no text", "", `{"token":"193a77e5-36a3-4d85-a7b3-901cf0d398e9","data":"Ho"}`, captures.Down, `[0 0 "Ho"]`},
		{"the end of a text", "", `{"token":{"text":"</s>","special":true}}`, captures.Down, `[]`},
	} {
		var got []string
		for _, p := range find(c.dir, c.event, c.body).List {
			s := fmt.Sprintf("%d %d %q", p.Speaker, p.Channel, p.Text)
			if p.Channel == Call || p.Channel == Result {
				s += fmt.Sprintf(" %s %s", p.ID, p.Name)
			}
			got = append(got, s)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, fmt.Sprint(got), c.want)
		}
	}
}

// A word between objects, such as "end", is no text.
func TestWordBetweenObjects(t *testing.T) {
	frame := func(s string) decode.Frame {
		return decode.Frame{Dir: captures.Down, Frame: envelope.Frame{Data: []byte(s)}}
	}
	for words, want := range map[string]int{`{"text":"Ho"}`: 1, `Hi`: 2} {
		ex := &decode.Exchange{Frames: []decode.Frame{frame(words), frame("end")}}
		if got := Find(event.Read(ex)).List; len(got) != want {
			t.Errorf("%s: %+v", words, got)
		}
	}
}

// A number tells kinds apart although it does not say what they are.
func TestNumberedTypes(t *testing.T) {
	a, b := find(captures.Down, "", `{"type":0,"content":"Ho"}`).List, find(captures.Down, "", `{"type":2,"content":"Ho"}`).List
	if len(a) != 1 || len(b) != 1 || a[0].Type == b[0].Type {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestErrorsAndCounts(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}`:     "overloaded_error Busy",
		`{"type":"error","errorText":"Broken"}`:                                     " Broken",
		`{"response":{"status":"failed","error":{"code":"rate","message":"Slow"}}}`: "rate Slow",
		`{"error":"no such model"}`:                                                 " no such model",
	} {
		p := find(captures.Down, "", body)
		if len(p.Errors) != 1 || p.Errors[0].Code+" "+p.Errors[0].Message != want {
			t.Errorf("%s: %v", body, p.Errors)
		}
	}
	p := find(captures.Down, "", `{"usage":{"input_tokens":3,"cache_creation_input_tokens":9,"output_tokens":4,"tokens_per_second":7}}`)
	if len(p.Counts) != 2 || p.Counts[0].Value != 3 || p.Counts[1].Value != 4 {
		t.Errorf("%+v", p.Counts)
	}
	if p := find(captures.Down, "throttlingException", `{"message":"slow down"}`); len(p.Errors) != 1 || p.Errors[0].Code != "throttlingException" {
		t.Errorf("%+v", p.Errors)
	}
}
