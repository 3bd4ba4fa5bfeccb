package cli

import "github.com/spf13/cobra"

// commands are all commands, in the order of the loop they serve.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.demoCommand(),
		a.demoClientCommand(),
		a.captureCommand(),
		a.namespaceCommand(),
		a.importCommand(),
		a.lsCommand(),
		a.showCommand(),
		a.decodeCommand(),
		a.encodeCommand(),
		a.grepCommand(),
		a.extractCommand(),
		a.diffCommand(),
		a.schemaCommand(),
		a.alignCommand(),
		a.driftCommand(),
		a.exportCommand(),
		a.replayCommand(),
		a.probeCommand(),
		a.credentialsCommand(),
		a.standinCommand(),
		a.redactCommand(),
		a.auditCommand(),
		a.caCommand(),
		a.doctorCommand(),
	}
}
