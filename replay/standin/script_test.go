package standin

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/walk"
)

func TestScriptErrorsNameTheirPlace(t *testing.T) {
	a, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	turn := func(steps string) string { return `{"v":1,"turns":[{"steps":[` + steps + `]}]}` }
	for _, c := range []struct{ script, want string }{
		{``, "unexpected end of JSON input"},
		{"{\n\"v\": 1,\n}", "line 3: invalid character"},
		{`[]`, "must be an object, not []"},
		{`{}`, "v: the version must be 1, not 0"},
		{`{"v":2}`, "v: the version must be 1, not 2"},
		{`{"v":"1"}`, `v: must be a whole number, not "1"`},
		{`{"v":1,"turn":[]}`, `the member "turn" is unknown; the valid members are announced_twice, answer_timeout_ms, answers,`},
		{`{"v":1,"turns":{}}`, "turns: must be a list, not {}"},
		{`{"v":1,"turns":null}`, "turns: null is not allowed"},
		{`{"v":1,"sse":"xml"}`, `sse: must be raw, base64 or connect, not "xml"`},
		{`{"v":1,"answer_timeout_ms":-1}`, "answer_timeout_ms: must be from 0 to 600000, not -1"},
		{`{"v":1,"appends":{"window":0}}`, "appends.window: must be from 1 to 10000, not 0"},
		{`{"v":1,"compression":{"names":["lzma"]}}`, `compression.names[0]: must be br, gzip or zstd, not "lzma"`},
		{`{"v":1,"compression":{"min_bytes":-5}}`, "compression.min_bytes: must be from 0 to"},
		{`{"v":1,"gate":{"min_version":"new","error":{"code":"ok"}}}`, "gate.min_version:"},
		{`{"v":1,"gate":{"min_version":"1","error":{"code":"denied"}}}`, `gate.error: code: "denied" is not a Connect code`},
		{turn(`{}`), "turns[0].steps[0]: a step must have exactly one action, but this one has 0 ()"},
		{turn(`{"text":"a"},{"text":"b","thinking":"c"}`), "turns[0].steps[1]: a step must have exactly one action, but this one has 2 (thinking, text)"},
		{turn(`{"text":"a","text":"b"}`), `turns[0].steps[0]: the member "text" occurs twice`},
		{turn(`{"txt":"a"}`), `turns[0].steps[0]: the member "txt" is unknown`},
		{turn(`{"text":"a","split":[0]}`), "turns[0].steps[0]: split[0] is 0: each part needs at least one character"},
		{turn(`{"tokens":3,"split":[1]}`), "turns[0].steps[0]: split and pace_ms are allowed only together with text or thinking"},
		{turn(`{"text":"a","delay_ms":600001}`), "turns[0].steps[0]: delay_ms: must be from 0 to"},
		{turn(`{"text":"${nobody}"}`), "turns[0].steps[0]: text: ${nobody}: no variable has this name"},
		{turn(`{"text":"${prompt"}`), "turns[0].steps[0]: text: ${prompt: the closing brace is missing"},
		{turn(`{"text":"${f.success.path}"}`), `no earlier tool call has the name "f"`},
		{turn(`{"tool":{"name":"read","as":"f"}},{"text":"${f.success.nmae}"}`), `turns[0].steps[1]: text: ${f.success.nmae}: agent.v1.ReadSuccess has no field "nmae"`},
		{turn(`{"tool":{"name":"read","as":"f"}},{"text":"${f.success}"}`), "is a message, not a single value"},
		{turn(`{"tool":{"name":"read","as":"F f"}}`), `turns[0].steps[0]: tool.as: "F f" is not a valid name`},
		{turn(`{"tool":{"name":"fly"}}`), `turns[0].steps[0]: tool.name: "fly" is not a tool`},
		{turn(`{"tool":{"nmae":"read"}}`), `turns[0].steps[0].tool: the member "nmae" is unknown`},
		{turn(`{"tool":{"name":"read","args":{"pth":"x"}}}`), `turns[0].steps[0]: tool.args: agent.v1.ReadArgs: `},
		{turn(`{"tool":{"name":"read","args":{"path":"${x}"}}}`), `turns[0].steps[0]: tool.args: ${x}: no variable has this name`},
		{turn(`{"tool":{"name":"read","require":"luck"}}`), `tool.require: agent.v1.ReadResult has no result "luck"`},
		{turn(`{"tool":{"name":"read","args_split":-1}}`), `tool.args_split: must not be negative, as -1 is`},
		{turn(`{"kv_set":{}}`), "turns[0].steps[0]: kv_set: give either data or json"},
		{turn(`{"kv_set":{"json":{"a":["${b}"]}}}`), "turns[0].steps[0]: kv_set: ${b}: no variable has this name"},
		{turn(`{"kv_get":{"blob":"x"}}`), `turns[0].steps[0]: kv_get.blob: no earlier kv_set has the name "x"`},
		{turn(`{"heartbeat":0}`), "turns[0].steps[0]: heartbeat: must be from 1 to"},
		{turn(`{"wait":{"ms":600000,"heartbeat_every_ms":1}}`), "turns[0].steps[0]: wait.heartbeat_every_ms: gives more than"},
		{turn(`{"send":{"interactionUpdate":{"nothing":{}}}}`), "turns[0].steps[0]: send: agent.v1.AgentServerMessage: "},
		{turn(`{"raw":"0g"}`), "turns[0].steps[0]: raw: encoding/hex"},
		{turn(`{"reset":false}`), "turns[0].steps[0]: reset: false has no effect"},
		{turn(`{"error":{"code":"nope"}}`), `turns[0].steps[0]: error.code: "nope" is not a Connect code`},
		{turn(`{"error":{"code":"internal","details":[{"type":"a.B"}]}}`), `error.details[0].type: proto/ has no message "a.B"`},
		{`{"v":1,"chats":[{"steps":[{"tokens":1}]}]}`, `chats[0].steps[0]: tokens: allowed only in an element of "turns", not of "chats"`},
		{`{"v":1,"chats":[{"steps":[{"wait":{"ms":5,"heartbeat_every_ms":1}}]}]}`, `chats[0].steps[0]: wait.heartbeat_every_ms: allowed only in an element of "turns"`},
		{strings.Repeat(" ", maxScriptBytes+1), "bytes; the limit is"},
	} {
		if _, err := readScript(a, []byte(c.script)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s\n got %v\nwant %s", c.script, err, c.want)
		}
	}
}

func TestAnswerErrorsNameTheirPlace(t *testing.T) {
	for answers, want := range map[string]string{
		`{"/agent.v1.AgentService/NameAgent":{"nmae":1}}`:                          `standin: script: answers["/agent.v1.AgentService/NameAgent"]: agent.v1.NameAgentResponse: `,
		`{"/agent.v1.AgentService/NameAgent":{"$error":{"code":"x"}}}`:             `$error.code: "x" is not a Connect code`,
		`{"/agent.v1.AgentService/Run":{"$error":{"code":"internal","text":1}}}`:   `$error: the member "text" is unknown`,
		`{"/later.v1.Service/New":{"a":1}}`:                                        "its answer can only be {}",
		`{"later":{}}`:                                                             "not of the form /package.Service/Method",
		`{"/aiserver.v1.AiService/AvailableModels/x":{}}`:                          "not of the form",
		`{"/aiserver.v1.AiService/{x}":{}}`:                                        "not of the form",
		`{"/agent.v1.AgentService/RunSSE":{"name":"streams have no such answer"}}`: "only a $error or null",
	} {
		_, err := New(Options{Script: []byte(`{"v":1,"answers":` + answers + `}`)})
		if err == nil || !strings.HasPrefix(err.Error(), "standin: script: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", answers, err, want)
		}
	}
}

func TestDefaultScriptIsReadBack(t *testing.T) {
	a, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	s, err := readScript(a, DefaultScript())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Turns) < 5 || len(s.Chats) == 0 || len(s.Answers) < 20 {
		t.Errorf("%d turns, %d chats, %d answers", len(s.Turns), len(s.Chats), len(s.Answers))
	}
}

// The example in Script's comment is what people copy.
func TestDocumentedExampleIsRead(t *testing.T) {
	source, err := os.ReadFile("script.go")
	if err != nil {
		t.Fatal(err)
	}
	var example strings.Builder
	for line := range strings.Lines(string(source)) {
		if text, ok := strings.CutPrefix(line, "//\t"); ok {
			example.WriteString(text)
		}
	}
	s := start(t, Options{Script: []byte(example.String())})
	if len(s.script.Turns) != 1 || len(s.script.Turns[0].Steps) < 10 {
		t.Errorf("%d turns", len(s.script.Turns))
	}
	got, err := run(t, s, &player{prompt: "backoff", request: weatherTool("mcpTools"), tools: map[string]string{
		"get_weather":  `{"success":{"content":[{"text":{"text":"sunny"}}]}}`,
		"exec_command": `{"success":{"content":[{"text":{"text":"Monday"}}]}}`,
	}})
	if err != nil || answerOf(got) != "It has 3 lines; sunny; no images." {
		t.Errorf("its turn: %q, %v", answerOf(got), err)
	}
}

func TestTemplates(t *testing.T) {
	vars := variables{text: map[string]string{"prompt": "P", "answer": "${prompt}"}}
	for text, want := range map[string]string{
		"": "", "plain $ {x}": "plain $ {x}", "a${prompt}b": "aPb", "$${prompt}": "${prompt}", "${answer}": "${prompt}", "${prompt}${prompt}": "PP", "$$${prompt}": "$${prompt}",
	} {
		got, err := vars.expandText(text)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzScript(f *testing.F) {
	a, err := loadAPI()
	if err != nil {
		f.Fatal(err)
	}
	// Small seeds: the fuzzer shrinks what it finds, which takes long for large ones.
	for _, steps := range []string{
		`{"tool":{"name":"mcp","args":{"args":{"a":{"listValue":{"values":["${prompt}"]}}}}}}`,
		`{"tool":{"name":"read","as":"f","require":"success"}},{"text":"${f.success.path}","split":[1,2]}`,
		`{"kv_set":{"json":{"a":["${answer}"]},"as":"k"}},{"kv_get":{"blob":"k"}}`,
		`{"kv_set":{"data":"$${a}${model}"}},{"wait":{"ms":3,"heartbeat_every_ms":1}}`,
		`{"send":{"interactionUpdate":{"summary":{"summary":"${prompt}"}}}},{"raw":"0a 00"},{"turn_ended":{}}`,
		`{"error":{"code":"aborted","details":[{"type":"aiserver.v1.ErrorDetails","value":{"error":2}}]}}`,
	} {
		f.Add([]byte(`{"v":1,"turns":[{"steps":[` + steps + `]}]}`))
	}
	f.Add([]byte(`{"v":1,"chats":[{"steps":[{"thinking":"a"},{"drop_end":true}]}],"gate":{"min_version":"1.2","error":{"code":"aborted"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readScript(a, data)
		if err != nil {
			return
		}
		// What was accepted can be expanded: placeholders that a binder let through
		// must not fail in mid-call.
		for _, turn := range append(s.Turns, s.Chats...) {
			vars := variables{results: map[string]protoreflect.Message{}}
			for _, st := range turn.Steps {
				_ = vars.expand(st.text)
				if st.message != nil {
					_ = vars.expandMessage(st.message)
				}
				if st.Tool != nil {
					_ = vars.expandMessage(st.Tool.args)
					if st.Tool.As != "" {
						vars.results[st.Tool.As] = dynamicpb.NewMessage(st.Tool.resultField.Message())
					}
				}
				if st.KVSet != nil && st.KVSet.JSON != nil {
					if _, err := walk.JSON(st.KVSet.JSON, vars.expandText); err != nil {
						t.Errorf("kv_set: %v", err)
					}
				}
			}
		}
	})
}
