package schemacmd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/render/schematext"
	"unwire/proto"
	"unwire/schema/compare"
)

// refsCommand returns the command 'unwire schema refs', which lists the uses of a type or a field number.
func refsCommand(a *app.App) *cobra.Command {
	var f definitionFlags
	var number int32
	cmd := &cobra.Command{
		Use:   "refs [TYPE]",
		Short: "List the fields and methods that use a type or a field number",
		Long: `refs searches .proto definitions for uses of TYPE (a message or an enum): it
lists the fields with this type, and the methods whose request or answer has this type.
With --field-number N and without TYPE, refs lists the fields that have the number N, in
all messages. With --field-number N and TYPE, refs lists the fields that have this
number and this type.`,
		Example: `  # List the fields and methods that use a message
  unwire schema refs ` + proto.AgentPackage + `.TextDeltaUpdate
  # List the fields with the number 13, in all messages
  unwire schema refs --field-number 13`,
		Args: app.ArgsBetween(0, "TYPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && number == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema refs: missing argument TYPE, or --field-number"), "usage: "+cmd.UseLine())
			}
			what := ""
			if len(args) > 0 {
				what = args[0]
			}
			return runRefs(cmd.Context(), a, f, what, number)
		},
		ValidArgsFunction: f.complete(a, false),
	}
	f.addTo(cmd, "print one JSON object per use")
	cmd.Flags().Int32Var(&number, "field-number", 0, "list only fields that have this number")
	options.Alias(cmd.Flags(), "number", "field-number")
	return cmd
}

// runRefs executes 'unwire schema refs'. what is the name of a type, "" for none; number is a field
// number, 0 for any.
func runRefs(ctx context.Context, a *app.App, f definitionFlags, what string, number int32) error {
	if err := isElement(what); err != nil {
		return err
	}
	s, err := f.load(ctx, a)
	if err != nil {
		return err
	}
	var refs []compare.Ref
	if what == "" {
		refs = compare.RefsOfNumber(s, number)
	} else {
		name := strings.TrimPrefix(what, ".")
		if !strings.HasPrefix(name, "google.protobuf.") {
			// which are used without being own
			d, err := lookup(s, what)
			if err != nil {
				return err
			}
			name = string(d.FullName())
		}
		refs = compare.Refs(s, name)
	}

	// With both arguments, only fields that match both are listed.
	if number != 0 {
		refs = slices.DeleteFunc(refs, func(r compare.Ref) bool { return r.Number != number })
	}
	if len(refs) == 0 {
		a.Say("no uses found")
		return nil
	}
	if !f.json {
		return schematext.Refs(a.Out, refs)
	}
	for _, r := range refs {
		if err := a.Print(&contract.DefinitionRef{Ref: r}); err != nil {
			return err
		}
	}
	return nil
}
