package inspect

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/options"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/decode/diff"
)

// diffFlags are the values of the flags of 'unwire diff'.
type diffFlags struct {
	// json prints JSON.
	json bool

	// hex also prints the bytes of differing values.
	hex bool

	// side prints both inputs side by side.
	side bool

	// series compares all arguments and reports which paths vary.
	series bool

	// showIgnored also prints ignored differences or, with --series, paths that do not vary.
	showIgnored bool

	// volatile counts IDs, times and tokens as differences.
	volatile bool

	// forwarded compares received with forwarded bytes.
	forwarded bool

	// format is the output format: inline, side, tsv or json.
	format string

	// method selects the exchanges that series compares; "" for all.
	method string

	// proto names definitions for field names; "" for the default.
	proto string

	// typ is the full name of the message type of two files (--type); "" for none.
	typ string

	// as is the framing of connections without HTTP (--as).
	as string

	// context is the number of unchanged words or lines that are printed around a change.
	context int

	// ignore are the paths of fields that are not compared.
	ignore []string
}

const diffExamples = `  # Compare the same exchange of two captures
  unwire diff F.uwc#2 G.uwc#2
  # Compare two messages, in two columns
  unwire diff -y F.uwc#2/up/0 F.uwc#5/up/0
  # Show what a rule changed during the recording
  unwire diff --forwarded F.uwc#2
  # Compare two files, and print the bytes of values that differ
  unwire diff --hex old.bin new.bin
  # Compare two captures, exchange by exchange
  unwire diff old.uwc new.uwc
  # Find the fields that vary in three exchanges
  unwire diff --series F.uwc#1 F.uwc#2 F.uwc#3
  # Find the fields that vary in the calls of a method
  unwire diff --series --method Run F.uwc`

// diffCommand returns the command 'unwire diff'.
func diffCommand(a *app.App) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare the fields of two messages, exchanges or captures",
		Long: `diff decodes messages, and compares the fields that have the same path, such as
1.2. A and B are two messages (frames), two exchanges (requests with their answers), two
captures (files with recorded traffic), or two other files. A file that is not a capture
contains JSON, or protobuf as raw bytes, hex, base64 or gzip. If a file contains several
messages, diff calls them client frame 0, client frame 1, and so on. For two captures,
diff compares each exchange of A with the exchange of B that has the same method and is
the most similar.

In a repeated field, diff compares the elements that have the same content, or the same
value in a field that is probably a key, such as an ID. If an element has another
position in B, diff reports it as moved, and not as changed. If a stream sent a text in
pieces, diff joins the pieces before it compares the text.

IDs, times and tokens are different in every run of a program. diff ignores such
differences if each value in A always corresponds to the same value in B. The summary
contains the number of ignored differences; with --volatile, diff reports them as
differences. diff also ignores the order of fields, of map entries, and of the frames of
a stream. diff prints field names if .proto definitions describe the method.

With --forwarded, the only argument is one exchange or frame that was changed during the
recording ('unwire capture' with --rules or --intercept). diff then compares the data
that unwire received (A) with the data that unwire forwarded (B).

With --series, diff compares any number of messages or exchanges of one method. --method
selects all exchanges of a method in the captures. For each field path, diff reports
whether all messages have the same value. If the values differ, diff describes how they
vary.

The exit status is 1 if diff found a difference.`,
		Example: diffExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.series:
				return nil
			case f.forwarded:
				return app.ArgsBetween(1, "F.uwc#ID")(cmd, args)
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
			return runDiff(cmd.Context(), a, args, f)
		},
	}
	f.add(cmd)
	return cmd
}

// add registers the flags of diff with the command.
func (f *diffFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each difference, also for ignored differences")
	cmd.Flags().BoolVar(&f.showIgnored, "show-ignored", false, "also list the differences that diff ignores; with --series, also list fields that always have the same value")
	options.Alias(cmd.Flags(), "all", "show-ignored")
	cmd.Flags().BoolVar(&f.volatile, "volatile", false, "do not ignore IDs, times and tokens that are different in every run; report them as differences")
	cmd.Flags().StringArrayVar(&f.ignore, "ignore", nil, "do not compare the field at this path, such as 1.2 (without indexes), and the fields nested in it; can be repeated")
	cmd.Flags().BoolVarP(&f.side, "side-by-side", "y", false, "print A in a left column and B in a right column")
	cmd.Flags().StringVar(&f.format, "format", "inline", "output format: inline (both values in one line), side (A and B in two columns), tsv (columns separated by tabs) or json")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "also print the bytes of values that differ, in hex")
	cmd.Flags().IntVar(&f.context, "context", 8, "number of unchanged words or lines to print around a change in a long text")
	cmd.Flags().BoolVar(&f.forwarded, "forwarded", false, "for one exchange or message that a rule (capture --rules) changed: compare the data that unwire received with the data that unwire forwarded")
	cmd.Flags().BoolVar(&f.series, "series", false, "compare all arguments with each other, and report the fields whose values differ")
	cmd.Flags().StringVar(&f.method, "method", "", "with --series: compare the exchanges of this method (Run or pkg.Service/Run)")
	cmd.Flags().StringVar(&f.proto, "proto", "", ".proto definitions, from which diff takes field names; with the word none, diff prints only field numbers (default: the definitions in the capture, else the built-in definitions)")
	app.SplittingFlag(cmd.Flags(), &f.as)
	cmd.Flags().StringVar(&f.typ, "type", "", "if A and B are files: full name of the type of their messages, such as pkg.Message, so that diff can print field names")
}

// check returns an error if flags exclude each other. It also sets format for --json and --side-by-side.
func (f *diffFlags) check() error {
	if err := app.OneOf("--format", f.format, "inline", "side", "tsv", "json"); err != nil {
		return err
	}
	switch {
	case f.context < 0:
		return app.Usagef("--context must not be negative")
	case f.forwarded && f.series:
		return app.Usagef("--forwarded and --series cannot be used together")
	case f.method != "" && !f.series:
		return app.Usagef("--method requires --series")
	case f.json:
		f.format = "json"
	case f.side:
		f.format = "side"
	}
	return nil
}

// options returns the options of the comparison, as the flags set them. args are the compared inputs,
// among which definitions are looked for.
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

// runDiff executes 'unwire diff A B'. The exit status is 1 if there are differences.
func runDiff(ctx context.Context, a *app.App, args []string, f diffFlags) error {
	defer app.LimitMemory(app.WholeMemory)()
	o, err := f.options(ctx, a, args...)
	if err != nil {
		return err
	}
	var list []query.Comparison

	// A rule may replace one id by another. Comparing what was forwarded must report that, so volatile
	// values count.
	if f.forwarded {
		o.Volatile = true
		list, err = query.DiffForwarded(ctx, args[0], o)
	} else {
		list, err = query.Diff(ctx, args[0], args[1], o)
	}
	if err != nil {
		return diffFailure(err)
	}
	if f.format == "json" {
		err = printChanges(a, list, f.hex)
	} else {
		err = render.Differences(a.Out, list, render.DiffOptions{Format: f.format, All: f.showIgnored, Hex: f.hex, Context: f.context})
	}
	if err != nil {
		return err
	}

	// The exit status depends on the counted differences only; ignored ones are printed but do not
	// fail.
	found, _ := query.CountChanges(list)
	if f.format == "inline" && found > 0 {
		a.Say("%s", render.InlineMarks)
	}
	a.Say("%s", render.DifferenceCount(list))
	if found > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// printChanges prints all differences as JSON, including those that are ignored by default.
func printChanges(a *app.App, list []query.Comparison, withHex bool) error {
	for i := range list {
		for _, line := range list[i].Lines(withHex) {
			if err := a.Print(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// diffSeries executes 'unwire diff --series': it prints which fields vary over several messages or
// exchanges, or over all exchanges of one method.
func diffSeries(ctx context.Context, a *app.App, args []string, f diffFlags) error {
	if len(args) == 0 {
		return app.Fail(app.ExitUsage, errors.New("unwire diff --series: missing argument F.uwc"), "usage: unwire diff --series F.uwc#1 F.uwc#2 F.uwc#3, or --series --method Run F.uwc")
	}
	o, err := f.options(ctx, a, args...)
	if err != nil {
		return err
	}
	s, err := query.CompareSeries(ctx, args, f.method, o)
	if err != nil {
		return diffFailure(err)
	}

	// Output first, then the exit code: 1 if a path varies or is sometimes missing.
	if f.format == "json" {
		err = printVariations(a, s)
	} else {
		err = render.Series(a.Out, s, f.showIgnored)
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

// printVariations prints, as JSON Lines, how the fields of a series vary.
func printVariations(a *app.App, s *query.Series) error {
	for _, line := range s.Lines() {
		if err := a.Print(line); err != nil {
			return err
		}
	}
	return nil
}

// diffFailure adds an exit status and a hint to an error of a comparison.
func diffFailure(err error) error {
	e, ok := errors.AsType[*query.DiffError](err)
	if !ok {
		return err
	}
	switch e.Problem {
	case query.Unlike:
		return app.Fail(app.ExitUsage, err, "compare two captures (F.uwc), two exchanges (F.uwc#7) or two messages (files, or F.uwc#7/up/0 for the first one that the client sent)")
	case query.NoMethod:
		return app.Fail(app.ExitUsage, err, "give --method METHOD to compare all calls of one method, or name single exchanges, such as "+e.At.File+"#1")
	case query.NoExchange:
		return app.Fail(app.ExitInput, err, "'unwire ls F.uwc' lists the methods")
	case query.SeveralMessages:
		return app.Fail(app.ExitInput, err, "without --series, 'unwire diff' compares two such files")
	case query.NoFrame:
		return noFrame(err, e.At)
	case query.UnknownType:
		return app.Fail(app.ExitUsage, err, "'unwire schema find' searches the definitions")
	}
	return err
}
