package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/annotate"
	democmd "unwire/cmd/internal/cli/demo"
	"unwire/cmd/internal/cli/inspect"
	probecmd "unwire/cmd/internal/cli/probe"
	"unwire/cmd/internal/cli/record"
	replaycmd "unwire/cmd/internal/cli/replay"
	schemacmd "unwire/cmd/internal/cli/schema"
	"unwire/cmd/internal/cli/serve"
	"unwire/cmd/internal/cli/share"
)

// commands are all commands, by package.
func commands(a *app.App) []*cobra.Command {
	return slices.Concat(democmd.Commands(a), record.Commands(a), inspect.Commands(a), annotate.Commands(a), share.Commands(a), schemacmd.Commands(a), replaycmd.Commands(a), probecmd.Commands(a), serve.Commands(a))
}

// groups are the groups of commands that help shows, each with its commands.
var groups = []struct {
	title    string
	commands []string
}{
	{"Record", []string{"capture", "import"}},
	{"Look", []string{"ls", "show", "chat", "grep", "diff", "decode", "note"}},
	{"Schema", []string{"schema", "use", "drift", "align"}},
	{"Ask", []string{"replay", "probe"}},
	{"Serve", []string{"serve", "standin"}},
	{"Set up", []string{"doctor", "config", "ca", "credentials", "demo", "completion", "version", "help"}},
	{"Advanced", []string{"encode", "export", "redact", "audit"}},
}

// group assigns the commands below root to their groups.
func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.title
			}
		}
	}
}
