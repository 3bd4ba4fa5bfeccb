package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestEditJSON(t *testing.T) {
	t.Parallel()
	const entry = `"unwire": {
      "command": "/usr/bin/unwire",
      "args": [
        "mcp",
        "/home/a b/F.uwc"
      ]
    }`
	for _, c := range []struct{ name, client, old, want string }{
		{"no file", "cursor", "", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}\n"},
		{"an empty object", "cursor", "{}", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}"},
		{
			"other servers and members", "claude-code",
			"{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"}\n  },\n  \"b\": [1, 2.50]\n}\n",
			"{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"},\n    " + entry + "\n  },\n  \"b\": [1, 2.50]\n}\n",
		},
		{
			"an earlier entry", "cursor",
			"{\n  \"mcpServers\": {\n    \"unwire\": {\"command\": \"old\", \"env\": {\"A\": \"b\"}},\n    \"x\": {}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    " + entry + ",\n    \"x\": {}\n  }\n}\n",
		},
		{
			"comments and trailing commas", "cursor",
			"// \"mcpServers\": {\n{\n  /* one, */ \"mcpServers\": { // two }\n    \"x\": {\"url\": \"http://a//b\",},\n  },\n}\n",
			"// \"mcpServers\": {\n{\n  /* one, */ \"mcpServers\": { // two }\n    \"x\": {\"url\": \"http://a//b\",},\n    " + entry + ",\n  },\n}\n",
		},
		{"a byte order mark", "cursor", "\xef\xbb\xbf{}\n", "\xef\xbb\xbf{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}\n"},
		{"lines of Windows", "cursor", "{\r\n  \"a\": 1\r\n}\r\n", strings.ReplaceAll("{\n  \"a\": 1,\n  \"mcpServers\": {\n    "+entry+"\n  }\n}\n", "\n", "\r\n")},
		{"tabs", "vscode", "{\n\t\"servers\": {}\n}\n", "{\n\t\"servers\": {\n\t\t\"unwire\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/usr/bin/unwire\",\n\t\t\t\"args\": [\n\t\t\t\t\"mcp\",\n\t\t\t\t\"/home/a b/F.uwc\"\n\t\t\t]\n\t\t}\n\t}\n}\n"},
		{"opencode", "opencode", `{"$schema": "https://opencode.ai/config.json"}`, "{\"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"unwire\": {\n      \"type\": \"local\",\n      \"command\": [\n        \"/usr/bin/unwire\",\n        \"mcp\",\n        \"/home/a b/F.uwc\"\n      ],\n      \"enabled\": true\n    }\n  }}"},
	} {
		if got := edit(t, c.client, c.old); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestRefusedJSON: what cannot be parsed, or has another form, is not edited.
func TestRefusedJSON(t *testing.T) {
	t.Parallel()
	c, err := Find("cursor")
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{`{`, `{"a": }`, `{"a": "x`, `{/* never ends }`, `[]`, `"text"`, `null`, `{"mcpServers": []}`, `{"mcpServers": {"unwire": {}, "unwire": {}}}`, `{"mcpServers": {}, "mcpServers": {}}`, `{} {}`, "a: b\n"} {
		out, err := c.Edit([]byte(old), server())
		var syntax *syntaxError
		var conflict *conflictError
		if !errors.As(err, &syntax) && !errors.As(err, &conflict) {
			t.Errorf("%s became %s: %v", old, out, err)
		}
	}
}

// FuzzEditJSON: whatever is in a configuration, it is refused, or has the server and everything
// else as before.
func FuzzEditJSON(f *testing.F) {
	for _, old := range []string{"", "{}", "{\"mcpServers\":{\"x\":{},},}", "{ // c\n\"a\":[1,],/*,*/}", "\xef\xbb\xbf{\"mcpServers\":{\"unwire\":1}}", "{\"a\\\"//\":\"/*\"}"} {
		f.Add([]byte(old))
	}
	c, err := Find("cursor")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, old []byte) {
		out, err := c.Edit(old, server())
		if err != nil {
			return
		}
		before, after := decoded(t, old), decoded(t, out)
		servers, _ := after["mcpServers"].(map[string]any)
		entry, _ := servers["unwire"].(map[string]any)
		if entry["command"] != "/usr/bin/unwire" {
			t.Fatalf("%q has no server", out)
		}
		delete(servers, "unwire")
		if others, ok := before["mcpServers"].(map[string]any); ok {
			delete(others, "unwire")
		} else {
			delete(after, "mcpServers")
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", old, out)
		}
	})
}

// decoded is a configuration as a program reads it.
func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	plain, err := withoutComments(bytes.TrimPrefix(text, []byte(byteOrderMark)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if len(bytes.TrimSpace(plain)) > 0 {
		if err := json.Unmarshal(plain, &out); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	return out
}
