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

// matchFlags are the values of the flags of 'unwire schema match'.
type matchFlags struct {
	// proto names the definitions whose types are candidates.
	proto string

	// raw means that each input file is one message.
	raw bool

	// json prints JSON.
	json bool

	// top is the number of candidate types that are printed.
	top int

	// path is the field whose messages are matched; "" for all messages without a definition.
	path string

	// dir is "up" or "down"; "" for both directions.
	dir string

	// as is the framing of connections without HTTP.
	as string
}

// matchCommand returns the command 'unwire schema match', which finds known message types that fit
// unknown messages.
func matchCommand(a *app.App) *cobra.Command {
	var f matchFlags
	cmd := &cobra.Command{
		Use:   "match F.uwc [PATH]",
		Short: "Find the message types that fit a message of unknown type",
		Long: `match compares recorded messages of an unknown type with all message types in
.proto definitions, and prints the types that fit best. The messages come from a capture
F.uwc (a file with recorded traffic). match ranks the types by their cost: the number of
bits that are needed to describe the messages with a type. The type with the lowest cost
fits best. Types that fit equally well have the same rank. If a type cannot be the type
of the messages, match prints the reason.

With PATH, such as 1.2, match examines the messages in this field. Without PATH, match
examines all messages whose type the definitions do not contain: the messages of unknown
methods, and the messages in unknown fields. If no type fits a message, match also
examines the messages nested in it. match regards all messages at the same path as
messages of one type. With --raw, each argument is a file with one serialized message,
and all messages have the same type.

The exit status is 1 if no type fits.`,
		Example: `  # Find types for all messages that the definitions do not describe
  unwire schema match F.uwc
  # Find the type of the message in field 1.1.2 of a captured message
  unwire schema match F.uwc#2/up/0 1.1.2
  # Find the type of a message in a file, among the types of other APIs
  unwire schema match --proto googleapis/ --raw message.bin --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema match: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			if f.top < 1 {
				return app.Usagef("--top must be at least 1")
			}
			if f.dir != "" && f.dir != captures.Up.String() && f.dir != captures.Down.String() {
				return app.Usagef("--dir must be up or down, not %q", f.dir)
			}
			return runMatch(cmd.Context(), a, f, args)
		},
	}
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions; match compares the messages with the types in these definitions (default: the definitions in the capture, else the built-in definitions)")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "each argument is a file with one serialized message")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each path")
	cmd.Flags().IntVar(&f.top, "top", 10, "print at most this many types; --json also prints all further types of rank 1")
	cmd.Flags().StringVar(&f.dir, "dir", "", "examine only messages from the client (up) or only messages from the server (down)")
	cmd.Flags().StringVar(&f.path, "path", "", "examine the messages in this field, such as 1.2; the same as the argument PATH")
	app.SplittingFlag(cmd.Flags(), &f.as)
	return cmd
}

// looksLikePath matches the path of a field, such as 1.2[0].5.
var looksLikePath = regexp.MustCompile(`^[0-9]+(\[[0-9]+\])?(\.[0-9]+(\[[0-9]+\])?)*$`)

// runMatch executes 'unwire schema match'. The last of args may be a field path, such as 1.2.
func runMatch(ctx context.Context, a *app.App, f matchFlags, args []string) error {
	// The path is optional, so the last argument counts as one if it looks like one.
	if n := len(args); n > 1 && f.path == "" && looksLikePath.MatchString(args[n-1]) {
		f.path, args = args[n-1], args[:n-1]
	}
	path, err := fieldpath.ParseNumbers(f.path)
	if err != nil {
		return app.Fail(app.ExitUsage, err, "a path is field numbers joined by dots, such as 1.2")
	}
	if len(args) > 1 && !f.raw {
		return app.Usagef("unexpected argument %q: match needs one capture, exchange or frame, and an optional path such as 1.2", args[1])
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

	// A damaged capture is matched as far as it can be read.
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
		a.Say("unwire: only the first %d paths are matched", match.MaxTargets)
	}
	if err := printMatches(a, f, defs, ts); err != nil && damage == nil {
		return err
	}
	return damage
}

// addMessages adds files that contain one message each, all of the same unknown type, to the messages to
// be matched.
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

// addFrames adds the frames of a capture or exchange, or the one frame that name addresses, to the
// messages to be matched.
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

// reportNoTarget prints why there is no message to be matched, and returns the error with the exit
// status; nil if the definitions describe all messages.
func reportNoTarget(a *app.App, ts *match.Targets, path string) error {
	switch {
	case path != "":
		a.Say("the input has no message at the path %s", path)
	case ts.Trees == 0 && ts.Others == 0:
		a.Say("nothing to match: the input contains no message")
	case ts.Trees == 0:
		a.Say("nothing to match: the input contains no protobuf message, only %s in JSON or another format without field numbers", app.Counted(ts.Others, "frame"))
	default:
		a.Say("nothing to match: every message has a definition already")
		return nil
	}
	return app.Fail(app.ExitFinding, nil, "")
}

// printMatches prints the candidate types for each message. The exit status is 1 if none fits.
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
			a.Say("  %s", text)
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
