package clientconfig

import (
	"errors"
	"reflect"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestEditTOML(t *testing.T) {
	t.Parallel()
	const table = "[mcp_servers.unwire]\ncommand = '/usr/bin/unwire'\nargs = ['mcp', '/home/a b/F.uwc']\n"
	for _, c := range []struct{ name, old, want string }{
		{"no file", "", table},
		{"other settings", "# mine\nmodel = \"x\"\n\n[projects.\"/a.b\"]\ntrust = true", "# mine\nmodel = \"x\"\n\n[projects.\"/a.b\"]\ntrust = true\n\n" + table},
		{
			"an earlier entry", "a = 1\n[mcp_servers.\"unwire\"] # old\ncommand = \"old\"\n[mcp_servers.unwire.env]\nB = \"c\"\n\n[mcp_servers.x]\ncommand = \"x\"\n",
			"a = 1\n" + table + "\n[mcp_servers.x]\ncommand = \"x\"\n",
		},
	} {
		if got := edit(t, "codex", c.old); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestRefusedTOML: what cannot be parsed, or where an edit would change something else, is not
// edited.
func TestRefusedTOML(t *testing.T) {
	t.Parallel()
	for _, old := range []string{
		"a = ", "[a\n", "a = 1\na = 2\n", "mcp_servers = {x = {command = \"x\"}}\n", "mcp_servers = 1\n",
		"text = '''\n[mcp_servers.unwire]\ninside = 1\n'''\n[b]\nc = 1\n",
	} {
		out, err := editTOML([]byte(old), server())
		var syntax *syntaxError
		var conflict *conflictError
		if !errors.As(err, &syntax) && !errors.As(err, &conflict) {
			t.Errorf("%s became %s: %v", old, out, err)
		}
	}
}

// FuzzEditTOML: whatever is in a configuration, it is refused, or has the server and everything
// else as before.
func FuzzEditTOML(f *testing.F) {
	for _, old := range []string{"", "a=1", "[mcp_servers.unwire]\ncommand='x'\n[b]\nc=[1,\n2]\n", "x = \"\"\"\n[mcp_servers.unwire]\n\"\"\"\n", "[[l]]\na=1\n[[l]]\n", "mcp_servers.x.command = 'x'\n"} {
		f.Add(old)
	}
	f.Fuzz(func(t *testing.T, old string) {
		out, err := editTOML([]byte(old), server())
		if err != nil {
			return
		}
		var before, after map[string]any
		if err := toml.Unmarshal([]byte(old), &before); err != nil {
			t.Fatal(err)
		}
		if err := toml.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		servers, _ := after[tomlList].(map[string]any)
		entry, _ := servers["unwire"].(map[string]any)
		if entry["command"] != "/usr/bin/unwire" {
			t.Fatalf("%q has no server", out)
		}
		delete(servers, "unwire")
		if others, ok := before[tomlList].(map[string]any); ok {
			delete(others, "unwire")
		} else {
			delete(after, tomlList)
		}
		if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", old, out)
		}
	})
}
