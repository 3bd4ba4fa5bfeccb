package inspect

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode/diff"
)

type diffFlags struct {
	json, all, hex, side, series bool
	volatile                     bool
	format, method, proto, typ   string
	as                           string
	context                      int
	ignore                       []string
}

func diffCommand(a *app.App) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two frames, exchanges or captures by structure",
		Long: `diff compares by field path, not by byte: repeated fields are aligned by content
and likely key, what moved is told from what changed, text that came in pieces is
joined first, and values that differ in every run (IDs, times, tokens) are told
apart from real changes: renamed one to one, they count as ignored. A and B are two
frames, two exchanges, two captures, or two files, protobuf (in hex, base64 or gzip,
too) or JSON. Several messages in a file are compared as a stream's, under @up/0 and on;
where each is delimited by its length, a text is not joined over them.
The exchanges of captures are paired by method, order and likeness.

The order of fields is no difference, nor is that of what looks like a map's
entries, nor of the frames of a stream; that of a repeated field is. Names stand
beside numbers where the method is known.

With --series, any number of messages or exchanges of one method, or captures with
--method, are laid side by side: which paths are constant, which vary, and how.
The exit status is 1 where there is a difference.`,
		Example: "  unwire diff F.uwc#2 G.uwc#2\n  unwire diff -y F.uwc#2/up/0 F.uwc#5/up/0\n  unwire diff --hex old.bin new.bin\n  unwire diff old.uwc new.uwc\n" +
			"  unwire diff --series F.uwc#1 F.uwc#2 F.uwc#3\n  unwire diff --series --method Run F.uwc",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.series {
				return nil
			}
			return app.ArgsBetween(2, "A", "B")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if f.series {
				return diffSeries(cmd.Context(), a, args, f)
			}
			return runDiff(cmd.Context(), a, args[0], args[1], f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a difference, ignored ones too")
	cmd.Flags().BoolVar(&f.all, "all", false, "list ignored differences too")
	cmd.Flags().BoolVar(&f.volatile, "volatile", false, "count volatile values as differences too")
	cmd.Flags().StringArrayVar(&f.ignore, "ignore", nil, "ignore this path, without indexes, and all below it; may be repeated")
	cmd.Flags().BoolVarP(&f.side, "side-by-side", "y", false, "A in a left column, B in a right one")
	cmd.Flags().StringVar(&f.format, "format", "inline", "inline, side, tsv or json")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "also the bytes of what differs")
	cmd.Flags().IntVar(&f.context, "context", 8, "words, or lines, of a long text that are shown around a change in it")
	cmd.Flags().BoolVar(&f.series, "series", false, "say which paths vary over all of the arguments")
	cmd.Flags().StringVar(&f.method, "method", "", "with --series, the exchanges of a capture that call this method (Run, pkg.Service/Run)")
	cmd.Flags().StringVar(&f.proto, "proto", "", "definitions for names (default: those that the capture keeps, or the built-in ones; none: no names)")
	app.SplittingFlag(cmd.Flags(), &f.as)
	cmd.Flags().StringVar(&f.typ, "type", "", "of two files, the full name of the message, for names")
	return cmd
}

// check checks what the flags mean together.
func (f *diffFlags) check() error {
	if err := app.OneOf("--format", f.format, "inline", "side", "tsv", "json"); err != nil {
		return err
	}
	switch {
	case f.context < 0:
		return app.Usagef("--context must not be negative")
	case f.method != "" && !f.series:
		return app.Usagef("--method goes with --series")
	case f.json:
		f.format = "json"
	case f.side:
		f.format = "side"
	}
	return nil
}

// options are what the flags say of the comparison.
func (f *diffFlags) options(ctx context.Context, a *app.App, args ...string) (query.DiffOptions, error) {
	split, err := app.ParseSplitting(f.as)
	if err != nil {
		return query.DiffOptions{}, err
	}
	defs, err := a.LoadDefinitions(ctx, f.proto, args...)
	return query.DiffOptions{
		Options:     diff.Options{Volatile: f.volatile, Ignore: f.ignore},
		Definitions: defs,
		Type:        f.typ,
		Open: func(path string) (*query.Capture, error) {
			c, err := a.OpenCapture(path)
			if c != nil {
				c.Splitting = split
			}
			return c, err
		},
		Read:   a.ReadInput,
		Opened: func(c *query.Capture) { a.RemarkEmpty(ctx, c) },
	}, err
}

func runDiff(ctx context.Context, a *app.App, left, right string, f diffFlags) error {
	o, err := f.options(ctx, a, left, right)
	if err != nil {
		return err
	}
	list, err := query.Diff(ctx, left, right, o)
	if err != nil {
		return diffFailure(err)
	}
	if f.format == "json" {
		err = printChanges(a, list, f.hex)
	} else {
		err = render.Differences(a.Out, list, render.DiffOptions{Format: f.format, All: f.all, Hex: f.hex, Context: f.context})
	}
	if err != nil {
		return err
	}
	a.Say("%s", render.DifferenceCount(list))
	if found, _ := query.CountChanges(list); found > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// printChanges prints all differences, ignored ones too, as JSON.
func printChanges(a *app.App, list []query.Comparison, withHex bool) error {
	for i := range list {
		for _, c := range list[i].Changes {
			c, _, name := list[i].Describe(c)
			c.Path = strings.TrimSpace(list[i].Call + " " + c.Path)
			line := contract.Change{Change: c, Name: name}
			if withHex {
				line.OldHex, line.NewHex = hex.EncodeToString(c.OldBytes.Data), hex.EncodeToString(c.NewBytes.Data)
			}
			if err := a.Print(&line); err != nil {
				return err
			}
		}
	}
	return nil
}

// diffSeries prints which paths vary over messages, exchanges, or the exchanges of one
// method.
func diffSeries(ctx context.Context, a *app.App, args []string, f diffFlags) error {
	if len(args) == 0 {
		return app.Fail(app.ExitUsage, errors.New("unwire diff --series: missing argument"), "usage: unwire diff --series F.uwc#1 F.uwc#2 F.uwc#3, or --series --method Run F.uwc")
	}
	o, err := f.options(ctx, a, args...)
	if err != nil {
		return err
	}
	s, err := query.CompareSeries(ctx, args, f.method, o)
	if err != nil {
		return diffFailure(err)
	}
	if f.format == "json" {
		err = printVariations(a, s)
	} else {
		err = render.Series(a.Out, s, f.all)
	}
	if err != nil {
		return err
	}
	a.Say("%s", render.SeriesCount(s))
	for _, v := range s.Variations {
		if v.Class == diff.Varies || v.Present < v.Of {
			return app.Fail(app.ExitFinding, nil, "")
		}
	}
	return nil
}

func printVariations(a *app.App, s *query.Series) error {
	for i := range s.Variations {
		_, name := s.Field(&s.Variations[i])
		if err := a.Print(&contract.Variation{Variation: s.Variations[i], Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// diffFailure adds to an error of a comparison what to do about it.
func diffFailure(err error) error {
	e, ok := errors.AsType[*query.DiffError](err)
	if !ok {
		return err
	}
	switch e.Problem {
	case query.Unlike:
		return app.Fail(app.ExitUsage, err, "")
	case query.NoMethod:
		return app.Fail(app.ExitUsage, err, "name it with --method, or single exchanges as "+e.At.File+"#1")
	case query.NoExchange:
		return app.Fail(app.ExitInput, err, "'unwire ls F.uwc' lists the methods")
	case query.SeveralMessages:
		return app.Fail(app.ExitInput, err, "'unwire diff' compares two such files")
	case query.NoFrame:
		return noFrame(err, e.At)
	case query.UnknownType:
		return app.Fail(app.ExitUsage, err, "'unwire schema find' searches them")
	}
	return err
}
