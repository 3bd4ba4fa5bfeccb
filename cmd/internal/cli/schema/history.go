package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/schematext"
	"unwire/schema/history"
	"unwire/schema/infer/sources"
)

// historyFlags are the values of the flags of 'unwire schema history'.
type historyFlags struct {
	// method is a pattern that selects methods; "" for all.
	method string

	// json prints JSON.
	json bool

	// objects are the options for object stores.
	objects app.ObjectStore
}

// historyCommand returns the command 'unwire schema history', which reports how an API changed over time.
func historyCommand(a *app.App) *cobra.Command {
	var f historyFlags
	cmd := &cobra.Command{
		Use:   "history EVIDENCE…",
		Short: "List the methods and fields that changed between versions of a client",
		Long: `history reads evidence files (*.pb). An evidence file contains statistics about
the fields in recorded traffic; the separate program unwire-pipeline writes such files.
EVIDENCE is a file, a folder (its name must end with a slash), a pattern such as
2026-*.pb, or files in an object store, such as s3://BUCKET/PREFIX/*.pb.

From these statistics, history infers which fields each version of a client uses.
history compares each version with the version before it, and lists new methods, new
fields, fields with another inferred type, and fields that no longer occur. history
orders the versions by the day of their first recording.

If a field no longer occurs, the new version may still have the field: a rare field can
be missing in the recorded traffic by chance. The column PROBABILITY contains the
probability of the inferred type.`,
		Example: `  # Compare all versions of the client
  unwire schema history results/evidence/*.pb
  # Print only the paths of new fields
  unwire schema history --json results/evidence/ | jq -r 'select(.change == "added") | .path'
  # Read the evidence files from an S3 bucket
  unwire schema history --live --allow-host s3.eu-west-1.amazonaws.com 's3://bucket/results/evidence/*.pb'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema history: missing argument EVIDENCE"), "usage: "+cmd.UseLine())
			}
			return runHistory(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().StringVar(&f.method, "method", "", "list only changes of methods whose name matches this pattern, such as '*Service/Run'; * matches any text")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each change")
	f.objects.AddTo(cmd.Flags(), false)
	return cmd
}

// runHistory executes 'unwire schema history'. inputs are shards: evidence files about one method, client
// version and day each.
func runHistory(ctx context.Context, a *app.App, f historyFlags, inputs []string) error {
	if _, err := path.Match(f.method, ""); err != nil {
		return app.Usagef("--method %s: %v", f.method, err)
	}

	// Lists come first, then folders, then patterns: a list may name folders, and a folder becomes a
	// pattern.
	inputs, err := expandLists(a, inputs)
	if err != nil {
		return err
	}
	for i, in := range inputs {
		if app.NamesFolder(in) {
			inputs[i] = in + "*.pb"
		}
	}
	if inputs, err = expandPatterns(ctx, &f.objects, inputs); err != nil {
		return err
	}
	shards, parts, err := readShards(ctx, a, f, inputs)
	if err != nil {
		return err
	}

	// Changes of fields come from the evidence, those of methods from the mere existence of shards.
	changes, err := history.Fields(shards, history.Options{Profile: a.Profile()})
	if err != nil {
		return err
	}
	changes = append(changes, history.Methods(parts)...)
	history.Sort(changes)
	if f.json {
		for i := range changes {
			if err := a.Print(&contract.HistoryChange{Change: changes[i]}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(changes) == 0 {
		a.Say("no changes in %s", app.Counted(len(shards), "evidence file"))
		return nil
	}
	return schematext.History(a.Out, changes)
}

// readShards reads the shards of the selected methods, and returns with each the method, client version
// and day that it covers. A second shard for the same ones is skipped.
func readShards(ctx context.Context, a *app.App, f historyFlags, inputs []string) (shards []history.Shard, parts []sources.Part, err error) {
	seen := map[sources.Part]bool{}
	for _, name := range inputs {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		ev, err := readEvidence(ctx, &f.objects, name)

		// readEvidence returns nothing for a file of another kind; reading it again tells a wrong kind
		// from a missing file.
		if err == nil && ev == nil {
			if _, err = a.ReadInput(name); err == nil {
				err = app.Fail(app.ExitInput, fmt.Errorf("%s is not an evidence file", app.InputName(name)), "the program unwire-pipeline writes such files (*.pb)")
			}
		}
		if err != nil {
			return nil, nil, err
		}
		shard, err := history.ShardOf(ev)
		if err != nil {
			return nil, nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", app.InputName(name), err), "")
		}

		// Two shards of one part would count the same messages twice.
		if seen[shard.Part] {
			a.Say("unwire: skipped %s: another file has the same method, client and day", app.InputName(name))
			continue
		}
		seen[shard.Part] = true
		if ok, _ := path.Match(f.method, shard.Part.Method); f.method == "" || ok {
			shards = append(shards, shard)
			parts = append(parts, shard.Part)
		}
	}
	return shards, parts, nil
}
