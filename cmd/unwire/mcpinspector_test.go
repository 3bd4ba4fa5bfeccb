package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"unwire/captures/need"
)

// inspectorDir has the inspector of the Model Context Protocol, a program that lists and calls what
// a server offers.
const inspectorDir = "testdata/mcp"

// TestMCPInspector: the inspector, which has an implementation of the protocol of its own, lists and
// calls every tool, and reads resources.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	node := need.Node(t, inspectorDir)
	program, err := filepath.Abs(filepath.Join(inspectorDir, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"))
	if err != nil {
		t.Fatal(err)
	}
	dir := demoCapture(t)
	inspect := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{program, "--cli", unwireCommand(t), "mcp", "demo.uwc"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir())
		var talk bytes.Buffer
		cmd.Stderr = &talk
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v: %s%s", args, err, out, talk.String())
		}
		return out
	}

	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(inspect("--method", "tools/list"), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, mcpTools) {
		t.Errorf("tools: %v", names)
	}
	arguments := map[string][]string{
		"show": {"address=demo.uwc#2/up/0"}, "decode": {"address=demo.uwc#2/up/0"}, "explain": {"address=demo.uwc#2", "path=1"},
		"search": {"text=Backoff"}, "transcript": {"address=demo.uwc#2"}, "match": {"address=demo.uwc#2/up/0", "path=1"},
		"diff": {"a=demo.uwc#1", "b=demo.uwc#2"}, "definitions": {"find=request"}, "replay_plan": {"address=demo.uwc#1"},
		"probe_plan": {"address=demo.uwc#1"}, "note": {"address=demo.uwc#1", "text=from the inspector"}, "list": {"filter=method:Run"},
	}
	for _, name := range mcpTools {
		args := []string{"--method", "tools/call", "--tool-name", name}
		for _, a := range arguments[name] {
			args = append(args, "--tool-arg", a)
		}
		var result struct {
			IsError           bool
			Content           []struct{ Type, Text string }
			StructuredContent mcpAnswer
		}
		out := inspect(args...)
		if err := json.Unmarshal(out, &result); err != nil || result.IsError || len(result.Content) != 1 || len(result.StructuredContent.Items) == 0 {
			t.Errorf("%s: %v: %.2000s", name, err, out)
		}
	}

	var resources struct{ Resources []struct{ URI string } }
	if err := json.Unmarshal(inspect("--method", "resources/list"), &resources); err != nil || len(resources.Resources) != 4 {
		t.Errorf("%+v, %v", resources, err)
	}
	var read struct{ Contents []struct{ Text string } }
	if err := json.Unmarshal(inspect("--method", "resources/read", "--uri", "uwc://demo.uwc#2/up/0"), &read); err != nil || len(read.Contents) != 1 || !json.Valid([]byte(read.Contents[0].Text)) {
		t.Errorf("%+v, %v", read, err)
	}
}
