package clientconfig

import (
	"path/filepath"
	"strings"
	"testing"
)

// server is one that tests add.
func server() Server {
	return Server{Name: "unwire", Command: "/usr/bin/unwire", Args: []string{"mcp", "/home/a b/F.uwc"}}
}

// edit edits a configuration of a client, and edits it once more, which must change nothing.
func edit(t *testing.T, client, old string) string {
	t.Helper()
	c, err := Find(client)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Edit([]byte(old), server())
	if err != nil {
		t.Fatalf("%s: %v", old, err)
	}
	again, err := c.Edit(out, server())
	if err != nil || string(again) != string(out) {
		t.Errorf("a second edit changes\n%s\ninto\n%s: %v", out, again, err)
	}
	return string(out)
}

// TestPath: each client has a configuration, in the scope or in the other one.
func TestPath(t *testing.T) {
	t.Parallel()
	env := Environment{Home: "/home/kim", Work: "/work", Config: "/home/kim/.config", Getenv: func(name string) string {
		return map[string]string{"CODEX_HOME": "/codex"}[name]
	}}
	for client, want := range map[string][2]string{
		"claude-code":    {"/work/.mcp.json", "/home/kim/.claude.json"},
		"claude-desktop": {"/home/kim/.config/Claude/claude_desktop_config.json", "/home/kim/.config/Claude/claude_desktop_config.json"},
		"codex":          {"/codex/config.toml", "/codex/config.toml"},
		"cursor":         {"/work/.cursor/mcp.json", "/home/kim/.cursor/mcp.json"},
		"gemini":         {"/work/.gemini/settings.json", "/home/kim/.gemini/settings.json"},
		"opencode":       {"/work/opencode.json", "/home/kim/.config/opencode/opencode.json"},
		"vscode":         {"/work/.vscode/mcp.json", "/home/kim/.config/Code/User/mcp.json"},
		"windsurf":       {"/home/kim/.codeium/windsurf/mcp_config.json", "/home/kim/.codeium/windsurf/mcp_config.json"},
	} {
		c, err := Find(client)
		if err != nil {
			t.Fatal(err)
		}
		for i, scope := range []Scope{Project, User} {
			if path, _ := c.Path(env, scope); filepath.ToSlash(path) != want[i] {
				t.Errorf("%s, %s: %s, want %s", client, scope, path, want[i])
			}
		}
		for _, dir := range c.Folders(env) {
			if dir == env.Home || dir == env.Work {
				t.Errorf("%s: %s says nothing about the client", client, dir)
			}
		}
	}
	if _, err := Find("nobody"); err == nil || len(Names()) != 8 {
		t.Errorf("%v, %v", err, Names())
	}
}

// TestEditSize: what is too large is refused.
func TestEditSize(t *testing.T) {
	t.Parallel()
	c, err := Find("cursor")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Edit([]byte(strings.Repeat(" ", MaxSize+1)), server()); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Error(err)
	}
}
