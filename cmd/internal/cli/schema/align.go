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
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/schematext"
	"unwire/schema"
	"unwire/schema/align"
)

type alignFlags struct {
	json, all            bool
	proto, descriptorSet string
}

func alignCommand(a *app.App) *cobra.Command {
	var f alignFlags
	cmd := &cobra.Command{
		Use:   "align F.uwc…",
		Short: "Join field numbers to names, from calls recorded in protobuf and in JSON",
		Long: `align finds calls that were recorded in both codecs, and joins the names that
JSON has to the numbers that protobuf has: by presence and value, over all pairs of
a method's messages, in nested messages too. It gives names, exact types and the
names of enum values. 'unwire replay F ID --codec json -o F2.uwc' makes a pair.

A name is joined only where no other way to join fits what was seen; what could be
exchanged is listed as a doubt, with what would settle it. JSON has field names in
lowerCamelCase: json_name is as it was read, name is made of it.

--descriptor-set writes the joins as definitions, which the schema commands take.
Without --proto, and if the capture keeps no definitions, types are named by method
and field numbers, as schema infer does.
The exit status is 3 where no pair was found.`,
		Example: "  unwire align F.uwc\n  unwire align --json proto.uwc json.uwc\n  unwire align F.uwc --descriptor-set names.binpb",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.ExactArgs("F.uwc")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runAlign(cmd.Context(), a, args, f) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a join, and a doubt")
	cmd.Flags().BoolVar(&f.all, "all", false, "list calls that have no counterpart, too")
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files that name the types (default: those that the capture keeps; "+app.NoDefinitions+": none)")
	cmd.Flags().StringVar(&f.descriptorSet, "descriptor-set", "", "file to write the joins to, as a descriptor set")
	return cmd
}

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
		return app.Fail(app.ExitInput, fmt.Errorf("no call of %s is there in protobuf and in JSON", strings.Join(inputs, ", ")),
			"'unwire replay F.uwc ID --codec json -o F2.uwc' sends one again in JSON; then name both captures")
	}
	if f.descriptorSet != "" {
		if err := writeDescriptorSet(report, f.descriptorSet); err != nil {
			return err
		}
	}
	if err := printAlignment(a, report, f.json); err != nil {
		return err
	}
	for _, s := range report.Skipped {
		a.Say("left out: %s", s)
	}
	for _, s := range report.Differ {
		a.Say("not the same data in both, so only what is unmistakable counts: %s", s)
	}
	reportUnpaired(a, unpaired, f.all)
	a.Say("%s", schematext.AlignmentSummary(report))
	return damage
}

func writeDescriptorSet(r *align.Report, name string) error {
	set := r.DescriptorSet()
	if _, err := schema.FromDescriptorSet(set); err != nil {
		return fmt.Errorf("the joins make no definitions: %w", err)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return err
	}
	return app.WholeFile(name, app.ForOwner, func(w io.Writer) error { _, err := w.Write(data); return err })
}

func reportUnpaired(a *app.App, list []align.Unpaired, all bool) {
	for _, u := range list {
		if u.Why == "" && !all {
			continue
		}
		a.Say("%s", schematext.Unpaired(u))
	}
}

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
