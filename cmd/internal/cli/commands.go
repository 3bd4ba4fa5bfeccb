package cli

import (
	"bytes"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"unwire/captures/budget"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/annotate"
	callcmd "unwire/cmd/internal/cli/call"
	democmd "unwire/cmd/internal/cli/demo"
	"unwire/cmd/internal/cli/inspect"
	mcpcmd "unwire/cmd/internal/cli/mcp"
	mockcmd "unwire/cmd/internal/cli/mock"
	probecmd "unwire/cmd/internal/cli/probe"
	"unwire/cmd/internal/cli/record"
	reflectioncmd "unwire/cmd/internal/cli/reflection"
	replaycmd "unwire/cmd/internal/cli/replay"
	schemacmd "unwire/cmd/internal/cli/schema"
	"unwire/cmd/internal/cli/serve"
	"unwire/cmd/internal/cli/share"
	"unwire/cmd/internal/cli/workbench"
)

// commands returns all top-level commands of the program.
func commands(a *app.App) []*cobra.Command {
	return slices.Concat(democmd.Commands(a), record.Commands(a, runner(a)), inspect.Commands(a), annotate.Commands(a), share.Commands(a), schemacmd.Commands(a), replaycmd.Commands(a), probecmd.Commands(a), callcmd.Commands(a), serve.Commands(a), mockcmd.Commands(a), reflectioncmd.Commands(a), mcpcmd.Commands(a), workbench.Commands(a, runner(a)))
}

// runner returns the function with which the workbench (the web page of 'unwire ui') runs an unwire
// command as if the user had typed it. Such a command cannot read standard input.
func runner(a *app.App) workbench.Runner {
	return func(ctx context.Context, args ...string) (stdout, stderr []byte, status int) {
		var out, said bytes.Buffer
		ctx = budget.With(ctx, budget.New())
		inner := app.New(ctx, a.Signals, bytes.NewReader(nil), &out, &said)
		root := rootCommand(inner, &out, &said)
		root.SetArgs(args)
		root.SetIn(bytes.NewReader(nil))
		root.SetOut(&out)
		root.SetErr(&said)
		cmd, err := root.ExecuteContextC(ctx)
		status = inner.Report(ctx, cmd, err)
		return out.Bytes(), said.Bytes(), status
	}
}

// groups are the groups of commands that help shows, each with its commands.
var groups = []struct {
	title    string
	commands []string
}{
	{"Record", []string{"capture", "intercept", "import"}},
	{"Look", []string{"ui", "ls", "show", "chat", "grep", "diff", "decode", "note"}},
	{"Schema", []string{"schema", "use", "drift", "align"}},
	{"Ask", []string{"call", "replay", "probe", "probe-client"}},
	{"Serve", []string{"serve", "standin", "mock", "reflection", "mcp"}},
	{"Set up", []string{"doctor", "config", "ca", "credentials", "demo", "completion", "version", "help"}},
	{"Advanced", []string{"encode", "export", "redact", "audit"}},
}

// group puts the commands below root into the groups that help shows.
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
