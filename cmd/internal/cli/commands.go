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

// commands are all commands, by group. Help sorts them by name.
func commands(a *app.App) []*cobra.Command {
	return slices.Concat(democmd.Commands(a), record.Commands(a), inspect.Commands(a), annotate.Commands(a), share.Commands(a), schemacmd.Commands(a), replaycmd.Commands(a), probecmd.Commands(a), serve.Commands(a))
}
