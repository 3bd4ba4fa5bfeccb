package schemacmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
)

func mergeEvidenceCommand(a *app.App) *cobra.Command {
	var out, pkg string
	cmd := &cobra.Command{
		Use:   "merge-evidence EVIDENCE…",
		Short: "Make one file of the evidence of several runs of schema infer",
		Long: `merge-evidence reads files that 'schema infer --evidence' wrote, perhaps on other
machines, and writes their sum: the same as if one run had read everything, in
any order. A file whose inputs are all counted already is left out, and so is
read twice without harm.`,
		Example: "  unwire schema merge-evidence -o all.json monday.json tuesday.json\n  unwire schema infer -o all/ all.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema merge-evidence: missing argument EVIDENCE"), "usage: "+cmd.UseLine())
			}
			return runMergeEvidence(cmd.Context(), a, args, out, pkg)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write (default: stdout)")
	cmd.Flags().StringVar(&pkg, "package", "", "package of the messages in the list of fields (default: the methods' own)")
	return cmd
}

func runMergeEvidence(ctx context.Context, a *app.App, inputs []string, out, pkg string) error {
	inputs, err := expandLists(a, inputs)
	if err != nil {
		return err
	}
	g := newInferInputs(a, defaultRoot, true)
	for _, name := range inputs {
		if err := ctx.Err(); err != nil {
			return err
		}
		ev, err := readEvidenceFile(name)
		if err == nil && ev == nil {
			if _, err = a.ReadInput(name); err == nil {
				err = fmt.Errorf("%s is no evidence of schema infer", app.InputName(name))
			}
		}
		if err != nil {
			return err
		}
		g.merge(name, ev)
	}
	in, err := infer.Infer(g.inference.Evidence, infer.Options{Package: pkg, Profile: a.Profile()})
	if err != nil {
		return err
	}
	if err := messages.Write(in, g.inference.Evidence, pkg); err != nil {
		return err
	}
	return writeResult(a, out, app.ForAll, in.WriteEvidence)
}
