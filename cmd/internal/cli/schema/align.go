package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/schematext"
	"unwire/schema"
	"unwire/schema/align"
)

// alignFlags are the values of the flags of 'unwire align'.
type alignFlags struct {
	// json prints JSON.
	json bool

	// unmatched lists the calls without a counterpart.
	unmatched bool

	// proto names definitions; "" for none.
	proto string

	// descriptorSet is the file to which the result is written as a descriptor set; "" for none.
	descriptorSet string
}

// alignCommand returns the command 'unwire align', which finds field names by matching calls recorded in
// protobuf with the same calls in JSON.
func alignCommand(a *app.App) *cobra.Command {
	var f alignFlags
	cmd := &cobra.Command{
		Use:   "align F.uwc…",
		Short: "Find field names by comparing calls recorded in protobuf and in JSON",
		Long: `A protobuf message contains the numbers of fields, and a JSON message contains
their names. If a capture (a file with recorded traffic) contains calls of the same
method in protobuf and in JSON, align finds which name belongs to which number. To
record a protobuf call in JSON, too, send it again with 'unwire replay F.uwc ID --codec
json -o F2.uwc'.

align forms pairs of a protobuf message and the JSON message with the same content. In
each pair, align compares which fields are present and which values they have, also in
nested messages. From these comparisons, align finds the names of fields, their exact
types, and the names of enum values. align gives a name to a field only if the name fits
no other field. align lists all other names as ambiguous, and says which calls you must
record to resolve the ambiguity. align prints each name as in JSON (lowerCamelCase) and
as in .proto files (snake_case).

With --descriptor-set, align writes the found fields as a descriptor set, which the
commands of 'unwire schema' can read. The names of message types come from --proto or
from the definitions in the capture. For a type that neither contains, align makes a
name from the method and the field numbers, like 'unwire schema infer'. The exit status
is 3 if align found no pair.`,
		Example: `  # Find names in a capture that contains calls in protobuf and in JSON
  unwire align F.uwc
  # Compare a recording in protobuf with one in JSON, and print JSON
  unwire align --json proto.uwc json.uwc
  # Write the names to a file that the commands of 'unwire schema' can read
  unwire align F.uwc --descriptor-set names.binpb`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.ExactArgs("F.uwc")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runAlign(cmd.Context(), a, args, f) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each field whose name align found, and for each group of ambiguous names")
	cmd.Flags().BoolVar(&f.unmatched, "unmatched", false, "also list the calls that were recorded only in protobuf or only in JSON")
	options.Alias(cmd.Flags(), "all", "unmatched")
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions, from which align takes the names of message types; the word "+app.NoDefinitions+" means no definitions (default: the definitions in the capture)")
	cmd.Flags().StringVar(&f.descriptorSet, "descriptor-set", "", "file to which align writes the fields with their names, as a descriptor set")
	return cmd
}

// runAlign executes 'unwire align' for captures or exchanges.
func runAlign(ctx context.Context, a *app.App, inputs []string, f alignFlags) error {
	definitions, err := a.Remembered(ctx, f.proto, inputs...)
	if err != nil {
		return err
	}
	calls := align.Calls{Schema: definitions}
	damage := withCaptures(a, inputs, func(_ string, c *query.Capture, at query.Address) error {
		if err := a.NeedCalls(ctx, c, at, "align"); err != nil {
			return err
		}
		return calls.AddCapture(ctx, at.File, c, at.Exchange, at.Part)
	})
	if damage != nil && !errors.Is(damage, captures.ErrDamaged) {
		return damage
	}

	// Pair the calls that were recorded in both codecs, then find the names that fit all pairs.
	var aligner align.Aligner
	unpaired, err := calls.Pair(&aligner)
	if err != nil {
		return err
	}
	report := aligner.Solve()
	if report.Pairs == 0 && damage != nil {
		return damage
	}
	if report.Pairs == 0 {
		reportUnpaired(a, unpaired, true)
		return app.Fail(app.ExitInput, fmt.Errorf("%s contains no method that was called both in protobuf and in JSON", strings.Join(inputs, ", ")),
			"'unwire replay F.uwc ID --codec json -o F2.uwc' sends a call again in JSON; then run align with both captures")
	}
	if f.descriptorSet != "" {
		if err := writeDescriptorSet(report, f.descriptorSet); err != nil {
			return err
		}
	}

	// The result, then remarks about what limits it.
	if err := printAlignment(a, report, f.json); err != nil {
		return err
	}
	for _, s := range report.Skipped {
		a.Say("align did not compare the messages %s", s)
	}
	for _, s := range report.Differ {
		a.Say("the messages %s contain different data: align matches two of their fields only if both have the same value, and no other field has this value", s)
	}
	reportUnpaired(a, unpaired, f.unmatched)
	a.Say("%s", schematext.AlignmentSummary(report))
	return damage
}

// writeDescriptorSet writes the names that were found as a descriptor set to a file.
func writeDescriptorSet(r *align.Report, name string) error {
	set := r.DescriptorSet()
	if _, err := schema.FromDescriptorSet(set); err != nil {
		return fmt.Errorf("cannot convert the result to definitions: %w", err)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return err
	}
	return app.WholeFile(name, app.ForOwner, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// reportUnpaired prints the methods with calls that have no counterpart in the other codec; unless all is
// set, only those with a special reason.
func reportUnpaired(a *app.App, list []align.Unpaired, all bool) {
	for _, u := range list {
		if u.Why == "" && !all {
			continue
		}
		a.Say("%s", schematext.Unpaired(u))
	}
}

// printAlignment prints the names that were found and the ambiguous ones, as a table or JSON.
func printAlignment(a *app.App, r *align.Report, asJSON bool) error {
	if asJSON {
		for _, j := range r.Joins {
			if err := a.Print(&contract.FieldJoin{Join: j}); err != nil {
				return err
			}
		}
		for _, d := range r.Doubts {
			if err := a.Print(&contract.FieldDoubt{Doubt: d}); err != nil {
				return err
			}
		}
		return nil
	}
	return schematext.Alignment(a.Out, r)
}
