// Package schemacmd has the commands about definitions: schema and its subcommands,
// align and drift.
//
// A file has the name of its command, such as infer, check, diff, extract, match,
// refs or merge-evidence; helpers have the inputs of an inference (captures, files of
// evidence), the sources of an update, captures and experiments that a change
// touches, and output to a file or folder. The work is done by the packages below
// schema/; schematext prints.
package schemacmd

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands returns the commands schema, align and drift.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		schemaCommand(a),
		alignCommand(a),
		driftCommand(a),
	}
}

// schemaCommand returns the command 'unwire schema' with its subcommands.
func schemaCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "schema",
		Example: `  # Write .proto files that describe the recorded messages
  unwire schema infer -o inferred/ F.uwc
  # Write the .proto files for the definitions in a package
  unwire schema extract -o extracted/ app.tgz
  # Compare recorded messages with .proto files
  unwire schema check --proto inferred/ F.uwc`,
		Short: "Infer, extract, check, compare and search .proto definitions",
	}
	cmd.AddCommand(inferCommand(a), mergeEvidenceCommand(a), historyCommand(a), extractCommand(a), checkCommand(a), updateCommand(a), matchCommand(a))
	cmd.AddCommand(diffCommand(a), printCommand(a), lsCommand(a), findCommand(a), refsCommand(a))
	return cmd
}
