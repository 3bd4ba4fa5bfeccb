package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures/store"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/diff"
	"unwire/proto"
	"unwire/schema"
)

// A changeLine is a line of `unwire diff --json`.
type changeLine struct {
	V int `json:"v"`
	diff.Change
	// the path in field names, where a schema is known
	Name   string `json:"name,omitempty"`
	OldHex string `json:"old_hex,omitempty"`
	NewHex string `json:"new_hex,omitempty"`
}

type diffFlags struct {
	json, all, hex, side, series bool
	volatile                     bool
	format, method, proto, typ   string
	context                      int
	ignore                       []string
}

func (f diffFlags) options() diff.Options {
	return diff.Options{Volatile: f.volatile, Ignore: f.ignore}
}

func (a *app) diffCommand() *cobra.Command {
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
			return argsBetween(2, "A", "B")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if f.series {
				return a.diffSeries(cmd.Context(), args, f)
			}
			return a.diff(cmd.Context(), args[0], args[1], f)
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
	cmd.Flags().StringVar(&f.proto, "proto", "", "definitions for names (default: the built-in ones; none: no names)")
	cmd.Flags().StringVar(&f.typ, "type", "", "of two files, the full name of the message, for names")
	return cmd
}

// check checks what the flags mean together.
func (f *diffFlags) check() error {
	if err := oneOf("--format", f.format, "inline", "side", "tsv", "json"); err != nil {
		return err
	}
	switch {
	case f.context < 0:
		return usagef("--context must not be negative")
	case f.method != "" && !f.series:
		return usagef("--method goes with --series")
	case f.json:
		f.format = "json"
	case f.side:
		f.format = "side"
	}
	return nil
}

func (a *app) diff(ctx context.Context, left, right string, f diffFlags) error {
	groups, err := a.compare(ctx, left, right, f)
	if err != nil {
		return err
	}
	found, err := a.printChanges(groups, f)
	if err != nil {
		return err
	}
	if found > 0 {
		return fail(exitFinding, nil, "")
	}
	return nil
}

// A changeGroup is the differences of one pair.
type changeGroup struct {
	title   string // of a pair of a capture's exchanges, its call; else ""
	changes []diff.Change
	names   namer
}

// compare compares two things of the same sort.
func (a *app) compare(ctx context.Context, left, right string, f diffFlags) ([]changeGroup, error) {
	la, ra := parseAddress(left), parseAddress(right)
	defs, err := f.definitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, addr := range []address{la, ra} {
		if _, err := os.Stat(addr.File); err != nil && addr.File != "-" {
			return nil, err
		}
	}
	lc, rc := la.Exchange == 0 && isCapture(la.File), ra.Exchange == 0 && isCapture(ra.File)
	switch {
	case lc && rc:
		return a.compareCaptures(ctx, la, ra, defs, f.options())
	case lc != rc:
		return nil, usagef("one is a whole capture and the other is not: %s, %s", left, right)
	case la.Exchange != 0 && ra.Exchange != 0 && la.Frame < 0 && ra.Frame < 0:
		return compareExchanges(ctx, la, ra, defs, f.options())
	case la.Exchange != 0 && la.Frame < 0 || ra.Exchange != 0 && ra.Frame < 0:
		return nil, usagef("one is a whole exchange and the other is not: %s, %s", left, right)
	}
	return a.compareMessages(ctx, left, right, defs, f)
}

// compareMessages compares two frames, or files that hold messages.
func (a *app) compareMessages(ctx context.Context, left, right string, defs *schema.Schema, f diffFlags) ([]changeGroup, error) {
	l, err := a.readMessage(ctx, left)
	if err != nil {
		return nil, err
	}
	r, err := a.readMessage(ctx, right)
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
		names.root = frameType(defs, ex.Call, parseAddress(from).Dir)
	}
	o := f.options()
	if l.stream != nil || r.stream != nil {
		o.Records = l.records || r.records
		return []changeGroup{{changes: diff.Exchanges(l.exchange(), r.exchange(), o), names: names}}, nil
	}
	o.Choices = slices.Concat(l.choices, r.choices)
	return []changeGroup{{changes: diff.Messages(l.data, r.data, o), names: names}}, nil
}

// isCapture reports whether a file opens as a capture.
func isCapture(file string) bool {
	if file == "-" {
		return false
	}
	store, err := store.Open(file, store.ReadOptions{Profile: proto.Profile()})
	if err != nil {
		return false
	}
	store.Close()
	return true
}

func compareExchanges(ctx context.Context, la, ra address, defs *schema.Schema, o diff.Options) ([]changeGroup, error) {
	l, err := decodeAt(ctx, la)
	if err != nil {
		return nil, err
	}
	r, err := decodeAt(ctx, ra)
	if err != nil {
		return nil, err
	}
	return []changeGroup{{changes: diff.Exchanges(l, r, o), names: namer{defs: defs, call: l.Call}}}, nil
}

func decodeAt(ctx context.Context, addr address) (*decode.Exchange, error) {
	store, err := openCapture(addr.File)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	f, err := conversation.Resolve(ctx, store, addr.Exchange, addr.Part)
	return f.Exchange, err
}

// compareCaptures pairs the exchanges of two captures and compares each pair.
func (a *app) compareCaptures(ctx context.Context, la, ra address, defs *schema.Schema, o diff.Options) ([]changeGroup, error) {
	ls, err := openCapture(la.File)
	if err != nil {
		return nil, err
	}
	defer ls.Close()
	rs, err := openCapture(ra.File)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	a.remarkEmpty(ctx, ls)
	a.remarkEmpty(ctx, rs)
	calls, err := diff.Captures(ctx, ls, rs, o)
	groups := make([]changeGroup, len(calls))
	for i, c := range calls {
		groups[i] = changeGroup{title: fmt.Sprintf("%s[%d]", c.Name, c.Nth), changes: c.Changes, names: namer{defs: defs, call: c.Call}}
	}
	return groups, err
}

// valueText shows a value of a difference on one short line.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return term.Cut(v, 80)
	case []diff.Field:
		return term.Cut(fieldsText(v), 80)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return term.Cut(string(b), 80)
}

// fieldsText is a message on one line, as {1: 150, 2: {1: "text"}}.
func fieldsText(fields []diff.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		value := "{}"
		switch v := f.Value.(type) {
		case nil:
			if f.Fields != nil {
				value = fieldsText(f.Fields)
			}
		case string:
			value = strconv.Quote(v)
		case []byte:
			value = counted(len(v), "byte")
		default:
			value = fmt.Sprint(v)
		}
		parts[i] = fmt.Sprintf("%d: %s", f.Number, value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
