package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/captures"
	"unwire/captures/store"
)

// mcpTools are the tools that are always offered.
var mcpTools = []string{
	"check", "decode", "definitions", "diff", "explain", "infer", "list", "match", "note", "probe_plan", "replay_plan", "search", "show", "transcript",
}

// An mcpClient is a client of 'unwire mcp', which runs as its child.
type mcpClient struct {
	t       *testing.T
	session *sdk.ClientSession
}

// An mcpAnswer is the answer of a tool.
type mcpAnswer struct {
	Begin string `json:"begin_recorded"`
	Items []struct {
		Address string
		Object  json.RawMessage
	}
	Addresses []string
	Remarks   []string
	LeftOut   []struct{ What, Address, Path string } `json:"left_out"`
	End       string                                 `json:"end_recorded"`
	Cursor    string
}

// startMCP starts 'unwire mcp' in a folder.
func startMCP(t *testing.T, dir string, args ...string) *mcpClient {
	t.Helper()
	cmd := exec.Command(unwireCommand(t), append([]string{"mcp"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+t.TempDir())
	cmd.Stderr = &bytes.Buffer{}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, cmd.Stderr)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("the server ended with %v: %s", err, cmd.Stderr)
		}
	})
	return &mcpClient{t, session}
}

// result calls a tool.
func (c *mcpClient) result(tool string, args map[string]any) *sdk.CallToolResult {
	c.t.Helper()
	r, err := c.session.CallTool(c.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		c.t.Fatalf("%s %v: %v", tool, args, err)
	}
	return r
}

// text is the only content of a result.
func text(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%d contents", len(r.Content))
	}
	content, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("the content is a %T", r.Content[0])
	}
	return content.Text
}

// page calls a tool and returns one page. The text and the structured content are the same.
func (c *mcpClient) page(tool string, args map[string]any) *mcpAnswer {
	c.t.Helper()
	r := c.result(tool, args)
	content := text(c.t, r)
	if r.IsError {
		c.t.Fatalf("%s %v: %s", tool, args, content)
	}
	var a mcpAnswer
	if err := json.Unmarshal([]byte(content), &a); err != nil {
		c.t.Fatalf("%s: %v: %s", tool, err, content)
	}
	var fromText any
	if err := json.Unmarshal([]byte(content), &fromText); err != nil || !reflect.DeepEqual(fromText, r.StructuredContent) {
		c.t.Errorf("%s: the text differs from the structured content", tool)
	}
	return &a
}

// call calls a tool and returns all its pages as one answer.
func (c *mcpClient) call(tool string, args map[string]any) *mcpAnswer {
	c.t.Helper()
	all := &mcpAnswer{}
	args = cloned(args)
	for {
		a := c.page(tool, args)
		all.Items, all.Remarks = append(all.Items, a.Items...), append(all.Remarks, a.Remarks...)
		all.Addresses = append(all.Addresses, a.Addresses...)
		if a.Cursor == "" {
			all.LeftOut = append(all.LeftOut, a.LeftOut...)
			return all
		}
		if len(a.LeftOut) == 0 {
			c.t.Errorf("%s: there is another page, but nothing is left out", tool)
		}
		args["cursor"] = a.Cursor
	}
}

func cloned(args map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range args {
		out[k] = v
	}
	return out
}

// failure is the text of a call that fails.
func (c *mcpClient) failure(tool string, args map[string]any) string {
	c.t.Helper()
	r := c.result(tool, args)
	if !r.IsError {
		c.t.Fatalf("%s %v: no error", tool, args)
	}
	return text(c.t, r)
}

// unwireIn runs a command in a folder, and returns what it prints.
func unwireIn(t *testing.T, dir string, args ...string) (stdout string, status int) {
	t.Helper()
	cmd := exec.Command(unwireCommand(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "UNWIRE_CONFIG="+filepath.Join(dir, "config"))
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() > 1 {
		t.Errorf("unwire %s: %v: %s", strings.Join(args, " "), err, talk.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// demoCapture records the traffic of the demo as demo.uwc in a new folder.
func demoCapture(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	unwireIn(t, dir, "demo", "-o", "demo.uwc")
	return dir
}

// TestMCPHasTheObjectsOfCommands: each tool returns what its command prints with --json.
func TestMCPHasTheObjectsOfCommands(t *testing.T) {
	t.Parallel()
	dir := demoCapture(t)
	c := startMCP(t, dir, "--allow-send", "demo.uwc")
	unwireIn(t, dir, "note", "demo.uwc#2/up/0/1", "a note")
	writeFile(t, filepath.Join(dir, "names.txt"), "alpha\nbeta\n")
	type arguments = map[string]any
	for _, x := range []struct {
		tool    string
		args    arguments
		command string
	}{
		{"list", nil, "ls --json demo.uwc"},
		{"list", arguments{"filter": "method:Run"}, "ls --json --filter method:Run demo.uwc"},
		{"show", arguments{"address": "demo.uwc#2", "max_bytes": 1 << 20}, "show --json demo.uwc 2"},
		{"show", arguments{"address": 2}, "show --json demo.uwc 2"},
		{"show", arguments{"address": "#2/down/4"}, "show --json demo.uwc#2/down/4"},
		{"show", arguments{"address": "1", "parts": true}, "show --json --parts demo.uwc 1"},
		{"decode", arguments{"address": "2/up/0"}, "decode --json demo.uwc#2/up/0"},
		{"explain", arguments{"address": "2", "path": "1.2"}, "show --json --explain 1.2 demo.uwc 2"},
		{"explain", arguments{"address": "2", "path": "down:1"}, "show --json --explain down:1 demo.uwc 2"},
		{"search", arguments{"text": "backoff", "ignore_case": true}, "grep --json -F -i backoff demo.uwc"},
		{"search", arguments{"regexp": "[Bb]ackoff", "headers": true, "dir": "up"}, "grep --json --headers --dir up [Bb]ackoff demo.uwc"},
		{"search", arguments{"path": "1.2.**", "captures": []string{"2"}}, "grep --json --path 1.2.** demo.uwc#2"},
		{"search", arguments{"number": "1", "method": "Run"}, "grep --json --number 1 --method Run demo.uwc"},
		{"search", arguments{"text": "a note"}, "grep --json -F -e note demo.uwc --filter note:*"},
		{"diff", arguments{"a": "2/up/0", "b": "2/up/2"}, "diff --json demo.uwc#2/up/0 demo.uwc#2/up/2"},
		{"diff", arguments{"a": "demo.uwc", "b": "demo.uwc"}, "diff --json demo.uwc demo.uwc"},
		{"diff", arguments{"series": []string{"2/down/1", "2/down/2", "2/down/3"}}, "diff --json --series demo.uwc#2/down/1 demo.uwc#2/down/2 demo.uwc#2/down/3"},
		{"transcript", arguments{"max_bytes": 1 << 20}, "chat --json demo.uwc"},
		{"transcript", arguments{"address": "2"}, "chat --json demo.uwc 2"},
		{"check", nil, "schema check --json demo.uwc"},
		{"match", arguments{"address": "2/up/0", "path": "1"}, "schema match --json demo.uwc#2/up/0 1"},
		{"definitions", arguments{"find": "thinking delta"}, "schema find --json thinking delta"},
		{"definitions", arguments{"element": "AgentRunRequest", "deps": true}, "schema print --json --deps AgentRunRequest"},
		{"definitions", arguments{"uses_of": "TextDeltaUpdate"}, "schema refs --json TextDeltaUpdate"},
		{"definitions", arguments{"prefix": "agent.v1", "kind": "method"}, "schema ls --json --kind method agent.v1"},
		{"replay_plan", arguments{"address": "2", "edits": []string{"set 1.2.1.1.1=hello"}, "omit": []string{"value"}}, "replay --dry-run --json --set 1.2.1.1.1=hello demo.uwc 2"},
		{"probe_plan", arguments{"to": "http://127.0.0.1:9", "method": "/a.B/C", "fields": "1-20", "max_bytes": 1 << 20}, "probe --dry-run --json --to http://127.0.0.1:9 --method /a.B/C --fields 1-20"},
		{"probe_plan", arguments{"to": "http://127.0.0.1:9", "method": "/a.B/C", "fields": "1-20", "names": []string{"alpha", "beta"}, "max_bytes": 1 << 20}, "probe --dry-run --json --to http://127.0.0.1:9 --method /a.B/C --fields 1-20 --names names.txt"},
		{"note", arguments{"address": "demo.uwc"}, "note --json demo.uwc"},
	} {
		t.Run(x.tool+" "+x.command, func(t *testing.T) {
			c := &mcpClient{t, c.session}
			a := c.call(x.tool, x.args)
			printed, _ := unwireIn(t, dir, strings.Fields(x.command)...)
			if x.tool == "search" && x.args["text"] == "a note" {
				return // the command would read the note as the name of a file
			}
			compareObjects(t, a, printed, x.args["omit"] != nil)
		})
	}

	// What inference decided about each field is in the file of evidence.
	inferred := c.call("infer", nil)
	printed, _ := unwireIn(t, dir, "schema", "infer", "--json", "--evidence", "evidence.json", "demo.uwc")
	files := strings.Count(printed, "\n")
	var evidence struct{ Fields []map[string]any }
	data, err := os.ReadFile(filepath.Join(dir, "evidence.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &evidence); err != nil {
		t.Fatal(err)
	}
	for _, f := range evidence.Fields {
		f["v"] = 1.0
		line, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		printed += string(line) + "\n"
	}
	if files < 2 || len(evidence.Fields) < 20 {
		t.Fatalf("%d files, %d fields", files, len(evidence.Fields))
	}
	compareObjects(t, inferred, printed, false)
}

// compareObjects compares the objects of an answer with lines of JSON. Secrets of plans are random.
func compareObjects(t *testing.T, a *mcpAnswer, printed string, ignoreValues bool) {
	t.Helper()
	var lines []string
	if printed != "" {
		lines = strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
	}
	if strings.HasPrefix(printed, `{"v":1,"as":`) {
		lines = []string{printed}
	}
	if len(lines) != len(a.Items) {
		t.Fatalf("%d objects, but the command prints %d", len(a.Items), len(lines))
	}
	for i, line := range lines {
		var want, got any
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if err := json.Unmarshal(a.Items[i].Object, &got); err != nil {
			t.Fatal(err)
		}
		if ignoreValues {
			want = withoutMember(want, "value")
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("object %d:\n%.2000s\nbut the command prints\n%.2000s", i, a.Items[i].Object, line)
		}
	}
}

// withoutMember removes a member from all objects of a value.
func withoutMember(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, name)
		for k := range v {
			v[k] = withoutMember(v[k], name)
		}
	case []any:
		for i := range v {
			v[i] = withoutMember(v[i], name)
		}
	}
	return v
}

// TestMCPTools: the tools have the names of the contract, schemas and texts, and each answer names
// its frames. The one that sends is offered only if that is allowed.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	dir := demoCapture(t)
	for _, send := range []bool{false, true} {
		args, want := []string{"demo.uwc"}, slices.Clone(mcpTools)
		if send {
			args, want = append(args, "--allow-send"), append(want, "replay_send")
		}
		c := startMCP(t, dir, args...)
		list, err := c.session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			schema, _ := json.Marshal(tool.InputSchema)
			if tool.Description == "" || !bytes.Contains(schema, []byte(`"max_bytes"`)) || bytes.Contains(schema, []byte("null")) {
				t.Errorf("%s: %q, %s", tool.Name, tool.Description, schema)
			}
			if writes := tool.Name == "note" || tool.Name == "replay_send"; tool.Annotations.ReadOnlyHint == writes {
				t.Errorf("%s: read-only: %v", tool.Name, tool.Annotations.ReadOnlyHint)
			}
		}
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("tools: %v, want %v", names, want)
		}
	}
	c := startMCP(t, dir, "demo.uwc")
	for tool, args := range map[string]map[string]any{
		"list": nil, "show": {"address": "2"}, "explain": {"address": "2", "path": "1"}, "search": {"text": "a"}, "transcript": nil,
		"infer": nil, "check": nil, "match": {"address": "2", "path": "1"}, "diff": {"a": "1", "b": "2"}, "replay_plan": {"address": "1"}, "decode": {"address": "2/up/0"},
	} {
		a := c.page(tool, args)
		if len(a.Addresses) == 0 || a.Begin == "" || a.Begin != a.End {
			t.Errorf("%s: addresses %v, begin %q, end %q", tool, a.Addresses, a.Begin, a.End)
		}
		for _, at := range a.Addresses {
			if !strings.HasPrefix(at, "demo.uwc#") {
				t.Errorf("%s: the address %s", tool, at)
			}
		}
	}
}

// TestMCPErrors: wrong arguments are answered with what is wrong and what to do.
func TestMCPErrors(t *testing.T) {
	t.Parallel()
	dir := demoCapture(t)
	writeDeepFile(t, filepath.Join(dir, "other.txt"), "not for agents")
	c := startMCP(t, dir, "demo.uwc", "missing.uwc")
	type arguments = map[string]any
	for _, x := range []struct {
		tool string
		args arguments
		want string
	}{
		{"show", nil, `the argument "address" is missing`},
		{"show", arguments{"adress": "1"}, `there is no argument "adress"; the arguments are address,`},
		{"explain", arguments{"address": "demo.uwc#2", "path": 7.2}, `the argument "path" must be a string, not number`},
		{"show", arguments{"address": true}, `the argument "address" must be a string, not bool`},
		{"show", arguments{"address": "demo.uwc#9"}, "exchange 9 does not exist"},
		{"show", arguments{"address": "demo.uwc#2/up/99"}, "hint: show with the address demo.uwc#2 lists the frames"},
		{"show", arguments{"address": "demo.uwc"}, "does not name an exchange"},
		{"show", arguments{"address": "2"}, "hint: name one of demo.uwc, missing.uwc"},
		{"show", arguments{"address": "demo.uwc#x"}, "is not an address"},
		{"show", arguments{"address": "other.txt#1"}, `"other.txt" is not one of the open captures`},
		{"show", arguments{"address": "../../etc/passwd#1"}, "the tools can read only the captures that 'unwire mcp' was started with"},
		{"show", arguments{"address": "demo.uwc#2", "framing": "words"}, "framing"},
		{"show", arguments{"address": "demo.uwc#2", "max_bytes": 1}, "max_bytes must be from 1024"},
		{"show", arguments{"address": "demo.uwc#2", "cursor": "1.ffff"}, "other arguments"},
		{"list", arguments{"captures": []string{"missing.uwc"}}, "hint: record it with 'unwire capture -o missing.uwc"},
		{"list", arguments{"captures": []string{"demo.uwc"}, "filter": "code:"}, "filter: column 6"},
		{"decode", arguments{}, "either the address of a frame or data"},
		{"decode", arguments{"address": "demo.uwc#2"}, "names an exchange, but no frame"},
		{"decode", arguments{"data": "zz", "encoding": "hex"}, "hex"},
		{"explain", arguments{"address": "demo.uwc#2", "path": "1..2"}, "path must be field numbers"},
		{"explain", arguments{"address": "demo.uwc#2", "path": "999"}, "has the field 999"},
		{"search", arguments{"captures": []string{"demo.uwc"}}, "nothing to search for"},
		{"search", arguments{"text": "a", "regexp": "b"}, "only one of"},
		{"search", arguments{"regexp": "("}, "use text for literal text"},
		{"diff", arguments{"a": "demo.uwc#1"}, "give both a and b"},
		{"diff", arguments{"a": "demo.uwc", "b": "demo.uwc#1"}, "cannot compare"},
		{"check", arguments{"captures": []string{"demo.uwc"}, "definitions": arguments{"a.proto": "mess"}}, "hint: correct the .proto text"},
		{"match", arguments{"address": "demo.uwc#2", "dir": "left"}, "dir up or down"},
		{"definitions", arguments{"element": "NoSuchThing"}, "NoSuchThing"},
		{"replay_plan", arguments{"address": "demo.uwc#1", "edits": []string{"chant 1=2"}}, "hint: an edit is such as"},
		{"replay_plan", arguments{"address": "demo.uwc#1", "to": "ftp://x"}, "must be a URL"},
		{"probe_plan", arguments{"method": "/a.B/C"}, "give to and method"},
		{"probe_plan", arguments{"to": "https://example.com", "method": "/a.B/C"}, "--live"},
		{"transcript", arguments{"address": "demo.uwc#2/x"}, "is not an address"},
		{"note", arguments{"address": "demo.uwc", "text": "x"}, "a note needs the address"},
		{"note", arguments{"address": "demo.uwc#1", "text": "x", "remove": "both"}, "cannot be combined"},
	} {
		if got := c.failure(x.tool, x.args); !strings.HasPrefix(got, x.tool+": ") || !strings.Contains(got, x.want) {
			t.Errorf("%s %v: %s, want %q", x.tool, x.args, got, x.want)
		}
	}
	if _, err := c.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "replay_send", Arguments: map[string]any{"address": "demo.uwc#1"}}); err == nil {
		t.Error("replay_send is there, although sending was not allowed")
	}
}

// runCapture records calls of a method Run whose field 7.2 is to be found out.
func runCapture(t *testing.T, path string) {
	t.Helper()
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	products := []string{"apple juice", "brown bread", "carrots", "dates", "eggs"}
	for i := range 60 {
		rec, err := s.Begin(captures.Exchange{Method: "POST", URL: "https://h.example/shop.v1.Orders/Run", HTTP: "2", RequestHeaders: captures.Headers{{Name: "content-type", Value: "application/proto"}}})
		if err != nil {
			t.Fatal(err)
		}
		// An item: the product, and its price.
		item := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), products[i%len(products)])
		item = protowire.AppendFixed64(protowire.AppendTag(item, 2, protowire.Fixed64Type), math.Float64bits(float64(i*37%410)/20))
		message := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), fmt.Sprintf("order number %d", i))
		message = protowire.AppendBytes(protowire.AppendTag(message, 7, protowire.BytesType), item)
		rec.Chunk(captures.Up, message)
		rec.Response(200, captures.Headers{{Name: "content-type", Value: "application/proto"}})
		rec.Chunk(captures.Down, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1))
		rec.End(captures.Complete, "")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMCPTask finds what field 7.2 of Run is, proves it, and writes the .proto, by nothing but
// calls of tools.
func TestMCPTask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runCapture(t, filepath.Join(dir, "F.uwc"))
	c := startMCP(t, dir, "F.uwc")
	type arguments = map[string]any

	// Which exchanges are there?
	calls := c.call("list", arguments{"filter": "method:Run"})
	if len(calls.Items) != 60 || calls.Items[0].Address != "F.uwc#1" {
		t.Fatalf("%d exchanges", len(calls.Items))
	}

	// Where is the field, and what does it look like?
	found := c.call("search", arguments{"path": "7.2", "method": "Run", "dir": "up"})
	if len(found.Items) != 60 || found.Items[2].Address != "F.uwc#3/up/0" {
		t.Fatalf("%d matches: %v", len(found.Items), found.Addresses)
	}

	// Why is it read as it is, and how sure is that?
	why := c.call("explain", arguments{"address": found.Items[0].Address, "path": "7.2"})
	var explanation struct {
		Messages int
		Type     string
		Settle   string
		Readings []struct {
			Kind, Type string
			P          float64
			Why        []struct{ Feature string }
		}
	}
	if err := json.Unmarshal(why.Items[0].Object, &explanation); err != nil {
		t.Fatal(err)
	}
	best := explanation.Readings[0]
	if explanation.Messages < 50 || best.Kind != "fixed64" || best.Type != "double" || best.P < 0.9 || len(best.Why) == 0 {
		t.Fatalf("%+v", explanation)
	}

	// The definitions, with the type of the field.
	inferred := c.call("infer", arguments{"package": "shop.v1"})
	var file struct{ File, Text string }
	if err := json.Unmarshal(inferred.Items[0].Object, &file); err != nil {
		t.Fatal(err)
	}
	var item struct {
		Message, Type string
		Number        int
		P             float64
	}
	for _, i := range inferred.Items[1:] {
		if err := json.Unmarshal(i.Object, &item); err != nil {
			t.Fatal(err)
		}
		if item.Number == 2 {
			break
		}
	}
	if item.Number != 2 || item.Type != "double" || item.P < 0.9 {
		t.Fatalf("%+v", item)
	}

	// The field gets its name, and the text is proved against the traffic.
	named := strings.Replace(file.Text, item.Type+" field_2 = 2", item.Type+" price = 2", 1)
	if named == file.Text {
		t.Fatalf("the field is not in\n%s", file.Text)
	}
	proof := c.check(arguments{"shop/v1/orders.proto": named})
	if len(proof.Unknown)+len(proof.Contradicted)+len(proof.UnknownMethods) != 0 || proof.Bytes == 0 || proof.Bytes != proof.Explained {
		t.Fatalf("%+v", proof)
	}
	// A wrong claim is contradicted, with the frames that show it.
	if wrong := c.check(arguments{"shop/v1/orders.proto": strings.Replace(named, item.Type+" price", "string price", 1)}); len(wrong.Contradicted) != 1 || len(wrong.Contradicted[0].Frames) == 0 {
		t.Errorf("%+v", wrong)
	}

	// What was found is noted, and the file is right for the command, too.
	noted := c.call("note", arguments{"address": found.Items[0].Address + "/7.2", "text": "the price"})
	if len(noted.Items) != 1 || noted.Items[0].Address != "F.uwc#1/up/0/7.2" {
		t.Errorf("%+v", noted)
	}
	writeDeepFile(t, filepath.Join(dir, "proto", "shop", "v1", "orders.proto"), named)
	if out, status := unwireIn(t, dir, "schema", "check", "--proto", "proto", "F.uwc"); status != 0 {
		t.Errorf("status %d: %s", status, out)
	}
	if out, _ := unwireIn(t, dir, "show", "--proto", "proto", "F.uwc#1/up/0"); !strings.Contains(out, "price") || !strings.Contains(out, "the price") {
		t.Errorf("%s", out)
	}
}

// An mcpCheck is the part of a check that tests look at.
type mcpCheck struct {
	Bytes          int
	Explained      int `json:"bytes_explained"`
	Unknown        []any
	Contradicted   []struct{ Frames []string }
	UnknownMethods []any `json:"unknown_methods"`
}

// check checks definitions.
func (c *mcpClient) check(definitions map[string]any) (r mcpCheck) {
	c.t.Helper()
	if err := json.Unmarshal(c.call("check", map[string]any{"definitions": definitions}).Items[0].Object, &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// writeDeepFile writes a file, and the folders that lead to it.
func writeDeepFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMCPEndsWithItsInput: what was asked before the end of the input is answered, and then the
// server ends.
func TestMCPEndsWithItsInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runCapture(t, filepath.Join(dir, "F.uwc"))
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, x := range []struct{ name, input, want string }{
		{"at once", "", ""},
		{"after questions", begin + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n", `"id":2,"result"`},
		{"within a message", begin + `{"jsonrpc":"2.0","id":2,`, `"id":1,"result"`},
		{"something else", "GET / HTTP/1.1\r\n\r\n", ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, unwireCommand(t), "mcp", "F.uwc")
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(x.input)
		started := time.Now()
		out, err := cmd.Output()
		if ctx.Err() != nil || !strings.Contains(string(out), x.want) {
			t.Errorf("%s: %v after %v: %s", x.name, err, time.Since(started), out)
		}
	}

	// A client that leaves does not wait for a search through everything.
	client := startMCP(t, dir, "F.uwc")
	started := time.Now()
	if err := client.session.Close(); err != nil || time.Since(started) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(started))
	}
}
