package schemacmd

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/schematext"
	"unwire/proto"
	"unwire/schema/compare"
)

// lsCommand returns the command 'unwire schema ls', which lists the elements of definitions.
func lsCommand(a *app.App) *cobra.Command {
	var f definitionFlags
	var kind string
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List services, methods, messages and enums",
		Long: `ls lists the services, methods, messages and enums in .proto definitions. For
each of them, ls prints the name, the number of its methods, fields or values, and the
file that contains it. With PREFIX, such as the name of a package, ls lists only names
that begin with PREFIX.`,
		Example: `  # List everything in the default definitions, such as those of unwire.yaml
  unwire schema ls
  # List only the methods of one package
  unwire schema ls ` + proto.AgentPackage + ` --kind method
  # List the contents of a descriptor set as JSON
  unwire schema ls --proto old.binpb --json`,
		Args: app.ArgsBetween(0, "PREFIX"),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := ""
			if len(args) > 0 {
				prefix = args[0]
			}
			return runLs(cmd.Context(), a, f, prefix, kind)
		},
		ValidArgsFunction: f.complete(a, false),
	}
	f.addTo(cmd, "print one JSON object per definition")
	cmd.Flags().StringVar(&kind, "kind", "", "list only services, only methods, only messages or only enums: service, method, message or enum")
	return cmd
}

// runLs executes 'unwire schema ls'. It lists elements whose full name begins with prefix and that are of
// kind, such as "message"; "" for all kinds.
func runLs(ctx context.Context, a *app.App, f definitionFlags, prefix, kind string) error {
	switch compare.ElementKind(kind) {
	case "", compare.ServiceElement, compare.MethodElement, compare.MessageElement, compare.EnumElement:
	default:
		return app.Usagef("--kind must be service, method, message or enum, not %q", kind)
	}
	s, err := f.load(ctx, a)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(compare.Contents(s), func(l compare.Listing) bool {
		return kind != "" && l.Kind != compare.ElementKind(kind) || !strings.HasPrefix(l.Element, prefix)
	})
	if len(list) == 0 && prefix != "" {
		a.Say("unwire: the definitions declare no name that begins with %s; --proto selects the definitions", strconv.Quote(prefix))
	}
	if !f.json {
		return schematext.Contents(a.Out, list)
	}
	for _, l := range list {
		if err := a.Print(&contract.DefinitionListing{Listing: l}); err != nil {
			return err
		}
	}
	return nil
}
