package schemacmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
)

// mergeEvidenceCommand returns the command 'unwire schema merge-evidence'.
func mergeEvidenceCommand(a *app.App) *cobra.Command {
	var out, pkg string
	var asJSON bool
	var objects app.ObjectStore
	cmd := &cobra.Command{
		Use:   "merge-evidence EVIDENCE…",
		Short: "Combine evidence files of several runs of 'unwire schema infer'",
		Long: `An evidence file contains statistics about the fields in recorded traffic;
'unwire schema infer --evidence' writes such files. merge-evidence combines the evidence
files of several runs, also from different machines, in one file. The result is the same
as the evidence file of one run with all captures. The order of the files does not
matter. merge-evidence uses each file only once, also if you give it twice. The files
can be JSON, or compact binary files (*.pb). If the name of the output file ends with
.pb, merge-evidence writes it in the compact form.`,
		Example: `  # Combine the evidence of two days
  unwire schema merge-evidence -o all.json monday.json tuesday.json
  # Add a third day, and write the compact binary form
  unwire schema merge-evidence -o all.pb all.json wednesday.pb
  # Write .proto files from the combined evidence
  unwire schema infer -o all/ all.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema merge-evidence: missing argument EVIDENCE"), "usage: "+cmd.UseLine())
			}
			return runMergeEvidence(cmd.Context(), a, &objects, args, out, pkg, asJSON)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to which merge-evidence writes the result (default: stdout)")
	cmd.Flags().StringVar(&pkg, "package", "", "name of the protobuf package for all message names in the output (default: the packages in the URLs of the calls)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON on one line; with -o, print a JSON object that describes the written file")
	objects.AddTo(cmd.Flags(), false)
	return cmd
}

// runMergeEvidence executes 'unwire schema merge-evidence': it merges evidence files into one, and infers
// the types of all fields again.
func runMergeEvidence(ctx context.Context, a *app.App, objects *app.ObjectStore, inputs []string, out, pkg string, asJSON bool) error {
	inputs, err := expandLists(a, inputs)
	if err != nil {
		return err
	}
	if inputs, err = expandPatterns(ctx, objects, inputs); err != nil {
		return err
	}
	g := newInferInputs(a, defaultRoot, true)
	// A file that exists but is not evidence gets a clearer error than its parser's.
	for _, name := range inputs {
		if err := ctx.Err(); err != nil {
			return err
		}
		ev, err := readEvidence(ctx, objects, name)
		if err == nil && ev == nil {
			if _, err = a.ReadInput(name); err == nil {
				err = app.Fail(app.ExitInput, fmt.Errorf("%s is not an evidence file of 'unwire schema infer'", app.InputName(name)), "'unwire schema infer --evidence FILE' writes such files")
			}
		}
		if err != nil {
			return err
		}
		g.merge(name, ev)
	}

	// Infer again, because the merged evidence may change every type.
	in, err := infer.Infer(g.inference.Evidence, infer.Options{Package: pkg, Profile: a.Profile()})
	if err != nil {
		return err
	}
	if err := messages.Write(in, g.inference.Evidence, pkg); err != nil {
		return err
	}
	if !asJSON {
		return writeResult(a, out, app.ForAll, evidenceWriter(in, out))
	}

	// On stdout, the evidence itself is the JSON line.
	if out == "" || out == "-" {
		var whole, line bytes.Buffer
		if err := in.WriteEvidence(&whole); err != nil {
			return err
		}
		if err := json.Compact(&line, whole.Bytes()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.Out, "%s\n", line.Bytes())
		return err
	}
	if err := writeResult(a, out, app.ForAll, evidenceWriter(in, out)); err != nil {
		return err
	}
	return a.Print(&contract.MergedEvidence{Output: out, Inputs: len(inputs), Fields: len(in.Fields)})
}
