package inspect

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/diff"
	"unwire/schema"
)

type DiffFlags struct {
	json, All, hex, side, series bool
	volatile                     bool
	Format, method, proto, typ   string
	context                      int
	ignore                       []string
}

func (f DiffFlags) options() diff.Options {
	return diff.Options{Volatile: f.volatile, Ignore: f.ignore}
}

func diffCommand(a *app.App) *cobra.Command {
	var f DiffFlags
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
	cmd.Flags().BoolVar(&f.All, "all", false, "list ignored differences too")
	cmd.Flags().BoolVar(&f.volatile, "volatile", false, "count volatile values as differences too")
	cmd.Flags().StringArrayVar(&f.ignore, "ignore", nil, "ignore this path, without indexes, and all below it; may be repeated")
	cmd.Flags().BoolVarP(&f.side, "side-by-side", "y", false, "A in a left column, B in a right one")
	cmd.Flags().StringVar(&f.Format, "format", "inline", "inline, side, tsv or json")
	cmd.Flags().BoolVar(&f.hex, "hex", false, "also the bytes of what differs")
	cmd.Flags().IntVar(&f.context, "context", 8, "words, or lines, of a long text that are shown around a change in it")
	cmd.Flags().BoolVar(&f.series, "series", false, "say which paths vary over all of the arguments")
	cmd.Flags().StringVar(&f.method, "method", "", "with --series, the exchanges of a capture that call this method (Run, pkg.Service/Run)")
	cmd.Flags().StringVar(&f.proto, "proto", "", "definitions for names (default: the built-in ones; none: no names)")
	cmd.Flags().StringVar(&f.typ, "type", "", "of two files, the full name of the message, for names")
	return cmd
}

// check checks what the flags mean together.
func (f *DiffFlags) check() error {
	if err := app.OneOf("--format", f.Format, "inline", "side", "tsv", "json"); err != nil {
		return err
	}
	switch {
	case f.context < 0:
		return app.Usagef("--context must not be negative")
	case f.method != "" && !f.series:
		return app.Usagef("--method goes with --series")
	case f.json:
		f.Format = "json"
	case f.side:
		f.Format = "side"
	}
	return nil
}

func runDiff(ctx context.Context, a *app.App, left, right string, f DiffFlags) error {
	groups, err := runCompare(ctx, a, left, right, f)
	if err != nil {
		return err
	}
	found, err := PrintChanges(a, groups, f)
	if err != nil {
		return err
	}
	if found > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// A ChangeGroup is the differences of one pair.
type ChangeGroup struct {
	title   string // of a pair of a capture's exchanges, its call; else ""
	Changes []diff.Change
	names   namer
}

// runCompare compares two things of the same sort.
func runCompare(ctx context.Context, a *app.App, left, right string, f DiffFlags) ([]ChangeGroup, error) {
	la, ra := query.ParseAddress(left), query.ParseAddress(right)
	defs, err := f.definitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, addr := range []query.Address{la, ra} {
		if _, err := os.Stat(addr.File); err != nil && addr.File != "-" {
			return nil, err
		}
	}
	lc, rc := la.Exchange == 0 && app.IsCapture(la.File), ra.Exchange == 0 && app.IsCapture(ra.File)
	switch {
	case lc && rc:
		return compareCaptures(ctx, a, la, ra, defs, f.options())
	case lc != rc:
		return nil, app.Usagef("one is a whole capture and the other is not: %s, %s", left, right)
	case la.Exchange != 0 && ra.Exchange != 0 && la.Frame < 0 && ra.Frame < 0:
		return compareExchanges(ctx, la, ra, defs, f.options())
	case la.Exchange != 0 && la.Frame < 0 || ra.Exchange != 0 && ra.Frame < 0:
		return nil, app.Usagef("one is a whole exchange and the other is not: %s, %s", left, right)
	}
	return compareMessages(ctx, a, left, right, defs, f)
}

// compareMessages compares two frames, or files that hold messages.
func compareMessages(ctx context.Context, a *app.App, left, right string, defs *schema.Schema, f DiffFlags) ([]ChangeGroup, error) {
	l, err := readMessage(ctx, a, left)
	if err != nil {
		return nil, err
	}
	r, err := readMessage(ctx, a, right)
	if err != nil {
		return nil, err
	}
	names := namer{defs: defs}
	if names.root, err = f.root(defs); err != nil {
		return nil, err
	}
	ex, from := l.of, left
	if ex == nil {
		ex, from = r.of, right
	}
	if ex != nil && names.root == nil {
		names.root = app.FrameType(defs, ex.Call, query.ParseAddress(from).Dir)
	}
	o := f.options()
	if l.stream != nil || r.stream != nil {
		o.Records = l.records || r.records
		return []ChangeGroup{{Changes: diff.Exchanges(l.exchange(), r.exchange(), o), names: names}}, nil
	}
	o.Choices = slices.Concat(l.choices, r.choices)
	return []ChangeGroup{{Changes: diff.Messages(l.data, r.data, o), names: names}}, nil
}

func compareExchanges(ctx context.Context, la, ra query.Address, defs *schema.Schema, o diff.Options) ([]ChangeGroup, error) {
	l, err := decodeAt(ctx, la)
	if err != nil {
		return nil, err
	}
	r, err := decodeAt(ctx, ra)
	if err != nil {
		return nil, err
	}
	return []ChangeGroup{{Changes: diff.Exchanges(l, r, o), names: namer{defs: defs, call: l.Call}}}, nil
}

func decodeAt(ctx context.Context, addr query.Address) (*decode.Exchange, error) {
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	f, err := conversation.Resolve(ctx, store, addr.Exchange, addr.Part)
	return f.Exchange, err
}

// compareCaptures pairs the exchanges of two captures and compares each pair.
func compareCaptures(ctx context.Context, a *app.App, la, ra query.Address, defs *schema.Schema, o diff.Options) ([]ChangeGroup, error) {
	ls, err := app.OpenCapture(la.File)
	if err != nil {
		return nil, err
	}
	defer ls.Close()
	rs, err := app.OpenCapture(ra.File)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	a.RemarkEmpty(ctx, ls)
	a.RemarkEmpty(ctx, rs)
	calls, err := diff.Captures(ctx, ls, rs, o)
	groups := make([]ChangeGroup, len(calls))
	for i, c := range calls {
		groups[i] = ChangeGroup{title: fmt.Sprintf("%s[%d]", c.Name, c.Nth), Changes: c.Changes, names: namer{defs: defs, call: c.Call}}
	}
	return groups, err
}
