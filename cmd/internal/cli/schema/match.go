package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/schematext"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/wire"
	"unwire/schema"
	"unwire/schema/match"
)

type matchFlags struct {
	proto string
	raw   bool
	json  bool
	top   int
	path  string
	dir   string
	as    string
}

func matchCommand(a *app.App) *cobra.Command {
	var f matchFlags
	cmd := &cobra.Command{
		Use:   "match F.uwc[#ID[/up/N]] [PATH]",
		Short: "Say which known messages fit an anonymous frame or field, and which cannot",
		Long: `match compares messages with all types of definitions, and ranks those that they
may be of by how few bits it takes to describe them so. A type that they cannot
be of is named with the reason; types that nothing tells apart are ties.

PATH is a field, such as 1.2, whose payloads are the messages. Without it, what
the definitions leave open is matched: the messages of unknown methods, and the
unknown fields that hold messages; where none fits, what is inside them. All
messages of one place, of all frames of the capture, exchange or frame that is
named, are taken together. With --raw the
arguments are files of one serialized message each, all of one type.

The exit status is 1 where no known type fits any place.`,
		Example: `  unwire schema match F.uwc
  unwire schema match F.uwc#2/up/0 1.1.2
  unwire schema match --proto googleapis/ --raw message.bin --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema match: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			if f.top < 1 {
				return app.Usagef("--top must be at least 1")
			}
			if f.dir != "" && f.dir != captures.Up.String() && f.dir != captures.Down.String() {
				return app.Usagef("--dir is up or down, not %q", f.dir)
			}
			return runMatch(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files, .proto file or descriptor set (default: those that the capture keeps, or the built-in ones)")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "inputs are files of one serialized message each")
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a place")
	cmd.Flags().IntVar(&f.top, "top", 10, "how many candidates to list, beside the ties of the first")
	cmd.Flags().StringVar(&f.dir, "dir", "", "only frames of this direction: up or down")
	cmd.Flags().StringVar(&f.path, "path", "", "PATH, as a flag")
	app.SplittingFlag(cmd.Flags(), &f.as)
	return cmd
}

var looksLikePath = regexp.MustCompile(`^[0-9]+(\[[0-9]+\])?(\.[0-9]+(\[[0-9]+\])?)*$`)

func runMatch(ctx context.Context, a *app.App, f matchFlags, args []string) error {
	if n := len(args); n > 1 && f.path == "" && looksLikePath.MatchString(args[n-1]) {
		f.path, args = args[n-1], args[:n-1]
	}
	path, err := fieldpath.ParseNumbers(f.path)
	if err != nil {
		return app.Fail(app.ExitUsage, err, "a path is field numbers with dots between them, such as 1.2")
	}
	if len(args) > 1 && !f.raw {
		return app.Usagef("unexpected argument %q: one capture, exchange or frame, and a path such as 1.2", args[1])
	}
	defs, err := a.NeedDefinitions(ctx, f.proto, "match", args...)
	if err != nil {
		return err
	}
	ts := match.NewTargets(defs, path)
	if f.raw {
		err = addMessages(a, ts, args)
	} else {
		err = addFrames(ctx, a, ts, args[0], f)
	}
	damage := err
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return err
	}
	if ts.Empty() && damage != nil {
		return damage
	}
	if ts.Empty() {
		return reportNoTarget(a, ts, f.path)
	}
	if ts.Full {
		a.Say("unwire: only the first %d places are matched", match.MaxTargets)
	}
	if err := printMatches(a, f, defs, ts); err != nil && damage == nil {
		return err
	}
	return damage
}

// addMessages adds files of one message each, all of one place.
func addMessages(a *app.App, ts *match.Targets, inputs []string) error {
	names, err := expandLists(a, inputs)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := a.ReadInput(name)
		if err != nil {
			return err
		}
		ts.AddMessage(app.InputName(name), wire.Parse(data, wire.Options{}))
	}
	return nil
}

// addFrames adds the frames of a capture or exchange, or the one that name is the address of.
func addFrames(ctx context.Context, a *app.App, ts *match.Targets, name string, o matchFlags) error {
	split, err := app.ParseSplitting(o.as)
	if err != nil {
		return err
	}
	return withCapture(a, name, func(c *query.Capture, at query.Address) error {
		return ts.AddCapture(ctx, c, at.Exchange, at.Part, match.FrameOptions{
			Split: split,
			Wanted: func(f *decode.Frame) bool {
				return (at.Frame < 0 || f.Dir == at.Dir && f.Seq == at.Frame) && (o.dir == "" || f.Dir.String() == o.dir)
			},
			Chosen: at.Frame >= 0,
			Address: func(ex *decode.Exchange, f *decode.Frame, part bool) string {
				return query.FrameAddress(at.File, ex, f, part).String()
			},
		})
	})
}

func reportNoTarget(a *app.App, ts *match.Targets, path string) error {
	switch {
	case path != "":
		a.Say("no message at %s", path)
	case ts.Trees == 0 && ts.Others == 0:
		a.Say("nothing to match: no message there")
	case ts.Trees == 0:
		a.Say("nothing to match: no protobuf message there; %s in JSON or another form, which tells no field numbers", app.Counted(ts.Others, "frame"))
	default:
		a.Say("nothing to match: the definitions know every message")
		return nil
	}
	return app.Fail(app.ExitFinding, nil, "")
}

func printMatches(a *app.App, f matchFlags, defs *schema.Schema, ts *match.Targets) error {
	fits, first := false, true
	for t, r := range ts.Match(match.New(defs, match.Options{Top: f.top})) {
		fits = fits || r.Conclusion != match.NoMatch
		if f.json {
			if err := a.Print(contract.NewSchemaMatch(t, r)); err != nil {
				return err
			}
			continue
		}
		if !first {
			fmt.Fprintln(a.Out)
		}
		first = false
		a.Say("%s", schematext.MatchSummary(t, r))
		for _, text := range r.Settle {
			a.Say("  what would tell: %s", text)
		}
		if err := schematext.Match(a.Out, r, f.top); err != nil {
			return err
		}
	}
	if !fits {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}
