package schemacmd

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/proto"
	"unwire/schema/interrupt"
)

func printCommand(a *app.App) *cobra.Command {
	var f definitionFlags
	var deps bool
	cmd := &cobra.Command{
		Use:   "print TYPE|FILE",
		Short: "The .proto text of a type, a service or a file",
		Long: `print writes the text of one definition as its source has it, comments and all;
of a descriptor set, as a .proto file would have it. TYPE is a full name, or a
simple one that only one type has. With --deps, what it refers to follows.`,
		Example: "  unwire schema print " + proto.AgentPackage + ".AgentRunRequest\n  unwire schema print --deps TextDeltaUpdate\n  unwire schema print agent/v1/agent.proto",
		Args:    app.ExactArgs("TYPE|FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPrint(cmd.Context(), a, f, args[0], deps)
		},
		ValidArgsFunction: f.complete(a, true),
	}
	f.addTo(cmd, "a JSON object a definition, with its text")
	cmd.Flags().BoolVar(&deps, "deps", false, "also the types that it refers to, directly or not")
	return cmd
}

func runPrint(ctx context.Context, a *app.App, f definitionFlags, what string, deps bool) error {
	s, err := f.load(ctx, a)
	if err != nil {
		return err
	}
	d, err := lookup(s, what)
	if err != nil {
		return err
	}
	list := []protoreflect.Descriptor{d}
	if deps {
		list = append(list, s.Needs(d)...)
	}
	for i, d := range list {
		text, err := interrupt.Run(ctx, func() (string, error) { return s.Text(d) })
		if err != nil {
			return err
		}
		if f.json {
			element := string(d.FullName())
			if file, ok := d.(protoreflect.FileDescriptor); ok {
				element = file.Path()
			}
			if err := a.Print(&contract.Definition{Element: element, File: d.ParentFile().Path(), Text: text}); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			text = "\n// " + string(d.FullName()) + "\n" + text
		}
		if _, err := a.Out.Write([]byte(term.CleanText(text))); err != nil {
			return err
		}
	}
	return nil
}
