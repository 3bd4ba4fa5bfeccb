package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"unwire/replay/agent/internal/message"
	"unwire/replay/agent/internal/tools"
	"unwire/replay/agent/turn"
)

func load(t testing.TB) *message.Definitions {
	t.Helper()
	d, err := message.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// exec reads an ExecServerMessage from JSON.
func exec(t testing.TB, d *message.Definitions, text string) *tools.Exec {
	t.Helper()
	m := d.Agent("ExecServerMessage")
	if err := protojson.Unmarshal([]byte(text), m.Interface()); err != nil {
		t.Fatal(err)
	}
	e := tools.ExecOf(m)
	return &e
}

func set(t testing.TB, d *message.Definitions, table *tools.Map, list ...turn.Tool) *tools.Set {
	t.Helper()
	if table == nil {
		table = tools.Builtin()
	}
	s, err := tools.NewSet(d, list, table)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tool returns a tool with properties, all strings, of which those before a "?" are
// required.
func tool(name string, properties ...string) turn.Tool {
	declared := map[string]any{}
	required := []string{}
	for _, p := range properties {
		bare, optional := strings.CutSuffix(p, "?")
		declared[bare] = map[string]string{"type": "string"}
		if !optional {
			required = append(required, bare)
		}
	}
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": declared, "required": required, "additionalProperties": false})
	return turn.Tool{Name: name, Schema: schema}
}

// TestBuiltInTools maps requests of the server to the tools of real clients.
func TestBuiltInTools(t *testing.T) {
	t.Parallel()
	d := load(t)
	for _, test := range []struct{ name, exec, tools, want string }{
		{"shell", `{"shellArgs":{"command":"ls"}}`, "opencode", `bash {"command":"ls","description":"Run a command"}`},
		{"shell in a folder", `{"shellArgs":{"command":"ls","workingDirectory":"/tmp"}}`, "opencode", `bash {"command":"ls","description":"Run a command","workdir":"/tmp"}`},
		{"streamed shell", `{"shellStreamArgs":{"command":"ls"}}`, "opencode", `bash {"command":"ls","description":"Run a command"}`},
		{"shell in a folder, for a tool without one", `{"shellArgs":{"command":"ls","workingDirectory":"/it's"}}`, "claude", `Bash {"command":"cd '/it'\\''s' \u0026\u0026 ls","description":"Run a command"}`},
		{"read", `{"readArgs":{"path":"/a"}}`, "opencode", `read {"filePath":"/a"}`},
		{"read", `{"readArgs":{"path":"/a"}}`, "claude", `Read {"file_path":"/a"}`},
		{"read", `{"readArgs":{"path":"/a b"}}`, "codex", `exec_command {"cmd":"cat -- '/a b'"}`},
		{"ls", `{"lsArgs":{"path":"/a"}}`, "opencode", `list {"path":"/a"}`},
		{"grep", `{"grepArgs":{"pattern":"x","path":"/a","glob":"*.go"}}`, "opencode", `grep {"include":"*.go","path":"/a","pattern":"x"}`},
		{"grep for names", `{"grepArgs":{"glob":"*.go","path":"/a"}}`, "opencode", `glob {"path":"/a","pattern":"*.go"}`},
		{"write", `{"writeArgs":{"path":"/a","fileText":"x"}}`, "opencode", `write {"content":"x","filePath":"/a"}`},
		{"write nothing", `{"writeArgs":{"path":"/a"}}`, "claude", `Write {"content":"","file_path":"/a"}`},
		{"delete", `{"deleteArgs":{"path":"-a"}}`, "opencode", `bash {"command":"rm -- '-a'","description":"Delete a file"}`},
		{"write bytes", `{"writeArgs":{"path":"/a","fileBytes":"AAA="}}`, "opencode", `writeResult rejected`},
		{"no such tool", `{"readArgs":{"path":"/a"}}`, "", `readResult rejected`},
		{"grep without one", `{"grepArgs":{"pattern":"x"}}`, "", `grepResult error`},
		{"another schema", `{"readArgs":{"path":"/a"}}`, "strange", `readResult rejected`},
	} {
		t.Run(test.name+" "+test.tools, func(t *testing.T) {
			t.Parallel()
			s := set(t, d, nil, clients()[test.tools]...)
			call, refusal := s.Call(exec(t, d, test.exec))
			got := ""
			if call != nil {
				got = call.Name + " " + string(call.Arguments)
			} else {
				got = shape(t, refusal)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// clients are tools as known clients offer them.
func clients() map[string][]turn.Tool {
	return map[string][]turn.Tool{
		"opencode": {
			tool("bash", "command", "workdir?", "description"), tool("read", "filePath"), tool("list", "path"), tool("glob", "pattern", "path?"),
			tool("grep", "pattern", "path?", "include?"), tool("write", "content", "filePath"),
		},
		"claude":  {tool("Bash", "command", "description?"), tool("Read", "file_path"), tool("Write", "file_path", "content")},
		"codex":   {tool("exec_command", "cmd", "workdir?")},
		"strange": {tool("read", "handle"), {Name: "Read", Schema: json.RawMessage(`{"$ref":"https://example.com/schema"}`)}, tool("read_file", "path", "reason")},
	}
}

// shape is what a refusal has: the result and its member.
func shape(t *testing.T, messages []message.Message) string {
	t.Helper()
	if len(messages) != 1 {
		t.Fatalf("got %d messages", len(messages))
	}
	name, result := messages[0].Sub("exec_client_message").Case("message")
	member, _ := result.Case("result")
	return strings.ReplaceAll(name, "_result", "Result") + " " + member
}

// TestResultsOfBuiltInTools turns results of clients' tools into what the server expects.
func TestResultsOfBuiltInTools(t *testing.T) {
	t.Parallel()
	d := load(t)
	s := set(t, d, nil)
	for _, test := range []struct{ exec, text, want, wantError, wantRejected string }{
		{
			`{"id":3,"execId":"e","shellArgs":{"command":"ls","workingDirectory":"/w"}}`, "a\nb",
			`{"execClientMessage":{"id":3,"shellResult":{"success":{"command":"ls","workingDirectory":"/w","stdout":"a\nb"}},"execId":"e"}}`,
			`{"execClientMessage":{"id":3,"shellResult":{"failure":{"command":"ls","workingDirectory":"/w","exitCode":1,"stderr":"a\nb"}},"execId":"e"}}`,
			`{"execClientMessage":{"id":3,"shellResult":{"rejected":{"command":"ls","workingDirectory":"/w","reason":"a\nb"}},"execId":"e"}}`,
		},
		{
			`{"shellStreamArgs":{"command":"ls","workingDirectory":"/w"}}`, "a",
			`{"execClientMessage":{"shellStream":{"start":{}}}} {"execClientMessage":{"shellStream":{"stdout":{"data":"a"}}}} {"execClientMessage":{"shellStream":{"exit":{"cwd":"/w"}}}}`,
			`{"execClientMessage":{"shellStream":{"start":{}}}} {"execClientMessage":{"shellStream":{"stderr":{"data":"a"}}}} {"execClientMessage":{"shellStream":{"exit":{"code":1,"cwd":"/w"}}}}`,
			`{"execClientMessage":{"shellStream":{"rejected":{"command":"ls","workingDirectory":"/w","reason":"a"}}}}`,
		},
		{
			`{"id":1,"readArgs":{"path":"/a"}}`, "x\ny\n",
			`{"execClientMessage":{"id":1,"readResult":{"success":{"path":"/a","content":"x\ny\n","totalLines":2,"fileSize":"4"}}}}`,
			`{"execClientMessage":{"id":1,"readResult":{"error":{"path":"/a","error":"x\ny\n"}}}}`,
			`{"execClientMessage":{"id":1,"readResult":{"rejected":{"path":"/a","reason":"x\ny\n"}}}}`,
		},
		{
			`{"id":1,"lsArgs":{"path":"/a"}}`, "x.go\nsub/\n",
			`{"execClientMessage":{"id":1,"lsResult":{"success":{"directoryTreeRoot":{"absPath":"/a","childrenDirs":[{"absPath":"/a/sub"}],"childrenFiles":[{"name":"x.go"}],"childrenWereProcessed":true,"numFiles":1}}}}}`,
			`{"execClientMessage":{"id":1,"lsResult":{"error":{"path":"/a","error":"x.go\nsub/\n"}}}}`,
			`{"execClientMessage":{"id":1,"lsResult":{"rejected":{"path":"/a","reason":"x.go\nsub/\n"}}}}`,
		},
		{
			`{"id":1,"grepArgs":{"pattern":"x","path":"/a"}}`, "f.go:3:x := 1\nnote",
			`{"execClientMessage":{"id":1,"grepResult":{"success":{"pattern":"x","path":"/a","workspaceResults":{"/a":{"content":{"matches":[{"file":"f.go","matches":[{"lineNumber":3,"content":"x := 1"}]},{"matches":[{"content":"note"}]}],"totalLines":2,"totalMatchedLines":2}}}}}}}`,
			`{"execClientMessage":{"id":1,"grepResult":{"error":{"error":"f.go:3:x := 1\nnote"}}}}`,
			`{"execClientMessage":{"id":1,"grepResult":{"error":{"error":"f.go:3:x := 1\nnote"}}}}`,
		},
		{
			`{"id":1,"writeArgs":{"path":"/a","fileText":"x\ny"}}`, "ok",
			`{"execClientMessage":{"id":1,"writeResult":{"success":{"path":"/a","linesCreated":2,"fileSize":3}}}}`,
			`{"execClientMessage":{"id":1,"writeResult":{"error":{"path":"/a","error":"ok"}}}}`,
			`{"execClientMessage":{"id":1,"writeResult":{"rejected":{"path":"/a","reason":"ok"}}}}`,
		},
		{
			`{"id":1,"deleteArgs":{"path":"/a"}}`, "ok",
			`{"execClientMessage":{"id":1,"deleteResult":{"success":{"path":"/a","deletedFile":"/a"}}}}`,
			`{"execClientMessage":{"id":1,"deleteResult":{"error":{"path":"/a","error":"ok"}}}}`,
			`{"execClientMessage":{"id":1,"deleteResult":{"rejected":{"path":"/a","reason":"ok"}}}}`,
		},
		{
			`{"id":1,"fetchArgs":{"url":"http://a"}}`, "page",
			`{"execClientMessage":{"id":1,"fetchResult":{"success":{"url":"http://a","content":"page","statusCode":200,"contentType":"text/plain"}}}}`,
			`{"execClientMessage":{"id":1,"fetchResult":{"error":{"url":"http://a","error":"page"}}}}`,
			`{"execClientMessage":{"id":1,"fetchResult":{"error":{"url":"http://a","error":"page"}}}}`,
		},
		{
			`{"id":1,"mcpArgs":{"name":"add","toolName":"add"}}`, "3",
			`{"execClientMessage":{"id":1,"mcpResult":{"success":{"content":[{"text":{"text":"3"}}]}}}}`,
			`{"execClientMessage":{"id":1,"mcpResult":{"success":{"content":[{"text":{"text":"3"}}],"isError":true}}}}`,
			`{"execClientMessage":{"id":1,"mcpResult":{"rejected":{"reason":"3"}}}}`,
		},
	} {
		e := exec(t, d, test.exec)
		for i, want := range []string{test.want, test.wantError, test.wantRejected} {
			r := &turn.Result{Parts: []turn.Part{{Text: test.text}}, IsError: i == 1, Rejected: i == 2}
			if got := asJSON(t, s.Answer(e, r)); got != want {
				t.Errorf("%s, result %d:\ngot  %s\nwant %s", e.Kind, i, got, want)
			}
		}
	}
}

// asJSON writes messages as JSON without spaces.
func asJSON(t *testing.T, messages []message.Message) string {
	t.Helper()
	var list []string
	for _, m := range messages {
		data, err := protojson.Marshal(m.Interface())
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		want := new(strings.Builder)
		enc := json.NewEncoder(want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(json.RawMessage(data)); err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.TrimSpace(want.String()))
	}
	return strings.Join(list, " ")
}

func TestImagesInResults(t *testing.T) {
	t.Parallel()
	d := load(t)
	s := set(t, d, nil)
	r := &turn.Result{Parts: []turn.Part{{Text: "see"}, {Image: &turn.Image{MIME: "image/png", Data: []byte("png")}}}}
	want := `{"execClientMessage":{"id":1,"mcpResult":{"success":{"content":[{"text":{"text":"see"}},{"image":{"data":"cG5n","mimeType":"image/png"}}]}}}}`
	if got := asJSON(t, s.Answer(exec(t, d, `{"id":1,"mcpArgs":{"name":"x"}}`), r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Parts = r.Parts[1:]
	want = `{"execClientMessage":{"id":1,"readResult":{"success":{"path":"/a.png","data":"cG5n","fileSize":"3"}}}}`
	if got := asJSON(t, s.Answer(exec(t, d, `{"id":1,"readArgs":{"path":"/a.png"}}`), r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnnouncedNames(t *testing.T) {
	t.Parallel()
	d := load(t)
	s := set(t, d, nil, tool("add"), tool("mcp_unwire_odd"))
	for name, want := range map[string]string{
		"add": "add", "unwire-add": "add", "mcp_unwire_add": "add", "unwire_add": "add", "mcp_unwire_odd": "mcp_unwire_odd", "sub": "", "": "",
	} {
		call, refusal := s.Call(exec(t, d, fmt.Sprintf(`{"mcpArgs":{"name":%q}}`, name)))
		switch {
		case call != nil && call.Name != want, call == nil && want != "":
			t.Errorf("%q: got %+v, want %q", name, call, want)
		case call == nil && shape(t, refusal) != "mcpResult tool_not_found":
			t.Errorf("%q: got %s", name, shape(t, refusal))
		}
	}
}

func TestUserTable(t *testing.T) {
	t.Parallel()
	d := load(t)
	table, err := tools.ParseMap([]byte(`{"v":1,"tools":[{"exec":["read"],"tool":"my_reader","arguments":{"files":["${path}"],"why":"asked for ${path}"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := set(t, d, table, turn.Tool{Name: "my_reader"}, tool("list", "path"))
	call, _ := s.Call(exec(t, d, `{"readArgs":{"path":"/a"}}`))
	if call == nil || string(call.Arguments) != `{"files":["/a"],"why":"asked for /a"}` {
		t.Errorf("got %+v", call)
	}
	if call, _ := s.Call(exec(t, d, `{"lsArgs":{"path":"/a"}}`)); call == nil || call.Name != "list" {
		t.Errorf("the built-in rows are gone: %+v", call)
	}
}

func TestTablesThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{`:                   "cannot be read",
		`{"v":2,"tools":[]}`:  "version 2",
		`{"v":1,"tools":[]}x`: "text after its JSON document",
		`{"v":1,"rows":[]}`:   "unknown field",
		`{"v":1,"tools":[{"exec":["read"],"arguments":{}}]}`:                            "tools[0]",
		`{"v":1,"tools":[{"exec":["computer_use"],"tool":"x","arguments":{}}]}`:         "must be the name of a request that can be mapped to a tool",
		`{"v":1,"tools":[{"exec":["read"],"tool":"x","arguments":{"a":["${file}"]}}]}`:  `no field "file"`,
		`{"v":1,"tools":[{"exec":["read"],"when":["file"],"tool":"x","arguments":{}}]}`: `no field "file"`,
	} {
		if _, err := tools.ParseMap([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestMappableFields holds the fields that rows may name to the definitions.
func TestMappableFields(t *testing.T) {
	t.Parallel()
	d := load(t)
	server := d.Agent("ExecServerMessage")
	for exec, fields := range tools.Mappable() {
		args := server.At(exec + "_args")
		for _, name := range fields {
			args.Field(name) // panics for one that is not there
		}
	}
}

func TestToolsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := load(t)
	for want, list := range map[string][]turn.Tool{
		"no name":           {{}},
		"two tools":         {{Name: "a"}, {Name: "a"}},
		"not a JSON object": {{Name: "a", Schema: json.RawMessage(`[]`)}},
	} {
		_, err := tools.NewSet(d, list, tools.Builtin())
		if e := turn.AsError(err); e.Kind != turn.Invalid || !strings.Contains(e.Message, want) || e.Param == "" {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
