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

// printCommand returns the command 'unwire schema print', which prints the .proto text of an element.
func printCommand(a *app.App) *cobra.Command {
	var f definitionFlags
	var deps bool
	cmd := &cobra.Command{
		Use:   "print TYPE|FILE",
		Short: "Print the .proto text of a type, a service or a file",
		Long: `print prints the definition of TYPE (a message, an enum or a service) or of all
types in FILE, with comments. The text is the same as in the .proto file. If the
definitions come from a descriptor set, print generates the text. With --deps, print
also prints the types that TYPE uses in its fields or methods.`,
		Example: `  # Print the definition of one message
  unwire schema print ` + proto.AgentPackage + `.AgentRunRequest
  # Also print the types that the message uses
  unwire schema print --deps TextDeltaUpdate
  # Print all definitions in one file
  unwire schema print agent/v1/agent.proto`,
		Args: app.ExactArgs("TYPE|FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPrint(cmd.Context(), a, f, args[0], deps)
		},
		ValidArgsFunction: f.complete(a, true),
	}
	f.addTo(cmd, "print one JSON object per definition, with its text")
	cmd.Flags().BoolVar(&deps, "deps", false, "also print all types that TYPE uses, and the types that these use")
	return cmd
}

// runPrint executes 'unwire schema print' for the element that what names; deps also prints the types
// that it refers to.
func runPrint(ctx context.Context, a *app.App, f definitionFlags, what string, deps bool) error {
	if err := isElement(what); err != nil {
		return err
	}
	s, err := f.load(ctx, a)
	if err != nil {
		return err
	}
	d, err := lookup(s, what)
	if err != nil {
		return err
	}

	// Dependencies follow the element, so that the output compiles when it is put into one file.
	list := []protoreflect.Descriptor{d}
	if deps {
		list = append(list, s.Dependencies(d)...)
	}
	for i, d := range list {
		text, err := interrupt.Run(ctx, func() (string, error) { return s.Text(d) })
		if err != nil {
			return err
		}

		// JSON prints one object for each element; text separates the elements by comments with their
		// names.
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
