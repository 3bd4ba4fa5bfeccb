package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/diff"
	"unwire/decode/wire"
)

// A changeLine is a line of `unwire diff --json`.
type changeLine struct {
	V int `json:"v"`
	diff.Change
}

func (a *app) diffCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two frames, exchanges or captures by structure",
		Long: `diff compares by field path, not by byte: repeated fields are aligned, text that
came in pieces is joined first, and values that differ in every run (IDs, times,
tokens) are told apart from real changes. Two files that are no captures are
compared as single messages. The exit status is 1 where there is a difference.`,
		Example: "  unwire diff F.uwc#2 G.uwc#2\n  unwire diff F.uwc#2/up/0 F.uwc#5/up/0\n  unwire diff old.uwc new.uwc",
		Args:    exactArgs("A", "B"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diff(cmd.Context(), args[0], args[1], asJSON, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object a difference, ignored ones too")
	cmd.Flags().BoolVar(&all, "all", false, "list ignored differences too")
	return cmd
}

func (a *app) diff(ctx context.Context, left, right string, asJSON, all bool) error {
	changes, err := a.compare(ctx, left, right)
	if err != nil {
		return err
	}
	found, err := a.printChanges(changes, asJSON, all)
	if err != nil {
		return err
	}
	if found > 0 {
		return fail(exitFinding, nil, "")
	}
	return nil
}

// compare compares two things of the same sort.
func (a *app) compare(ctx context.Context, left, right string) ([]diff.Change, error) {
	la, ra := parseAddress(left), parseAddress(right)
	switch {
	case la.Exchange == 0 && ra.Exchange == 0 && isCapture(la.File) && isCapture(ra.File):
		return compareCaptures(ctx, la, ra)
	case la.Exchange != 0 && ra.Exchange != 0 && la.Frame < 0 && ra.Frame < 0:
		return compareExchanges(ctx, la, ra)
	}
	lb, _, err := a.readBytes(ctx, left)
	if err != nil {
		return nil, err
	}
	rb, _, err := a.readBytes(ctx, right)
	if err != nil {
		return nil, err
	}
	return diff.Trees(wire.Parse(lb, wire.Options{}), wire.Parse(rb, wire.Options{}), diff.Options{}), nil
}

// isCapture reports whether a file opens as a capture.
func isCapture(file string) bool {
	if file == "-" {
		return false
	}
	store, err := captures.Open(file)
	if err != nil {
		return false
	}
	store.Close()
	return true
}

func compareExchanges(ctx context.Context, la, ra address) ([]diff.Change, error) {
	l, err := decodeAt(ctx, la)
	if err != nil {
		return nil, err
	}
	r, err := decodeAt(ctx, ra)
	if err != nil {
		return nil, err
	}
	return diff.Exchanges(l, r, diff.Options{}), nil
}

func decodeAt(ctx context.Context, addr address) (*decode.Exchange, error) {
	store, err := openCapture(addr.File)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	f, err := exchangeAt(ctx, store, addr)
	return f.Exchange, err
}

// compareCaptures pairs the exchanges of two captures: the nth call of a
// method with the nth call of it.
func compareCaptures(ctx context.Context, la, ra address) ([]diff.Change, error) {
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
	left, err := callsOf(ctx, ls)
	if err != nil {
		return nil, err
	}
	right, err := callsOf(ctx, rs)
	if err != nil {
		return nil, err
	}
	other := map[string]int64{}
	for _, c := range right {
		other[c.key] = c.id
	}
	var all []diff.Change
	for _, c := range left {
		id, ok := other[c.key]
		if !ok {
			all = append(all, diff.Change{Path: c.key, Op: diff.Remove})
			continue
		}
		delete(other, c.key)
		changes, err := comparePair(ctx, ls, rs, c.id, id)
		if err != nil {
			return all, err
		}
		for _, ch := range changes {
			ch.Path = c.key + " " + ch.Path
			all = append(all, ch)
		}
	}
	for _, c := range right {
		if _, ok := other[c.key]; ok {
			all = append(all, diff.Change{Path: c.key, Op: diff.Add})
		}
	}
	return all, nil
}

func comparePair(ctx context.Context, ls, rs *captures.Store, lid, rid int64) ([]diff.Change, error) {
	l, err := exchangeAt(ctx, ls, address{Exchange: lid})
	if err != nil {
		return nil, err
	}
	r, err := exchangeAt(ctx, rs, address{Exchange: rid})
	if err != nil {
		return nil, err
	}
	return diff.Exchanges(l.Exchange, r.Exchange, diff.Options{}), nil
}

// A callKey names an exchange by its call and which one of its kind it is.
type callKey struct {
	key string
	id  int64
}

func callsOf(ctx context.Context, store *captures.Store) ([]callKey, error) {
	all, err := decode.FindConversations(ctx, store)
	if err != nil {
		return nil, err
	}
	var calls []callKey
	count := map[string]int{}
	for ex, err := range store.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		call := decode.Classify(ex)
		switch head := all.Head(ex.ID); head {
		case 0:
		case ex.ID:
			call = decode.Joined(call)
		default:
			continue // it is compared as a piece of its conversation
		}
		name := call.Service + "/" + call.RPC
		if call.Service == "" {
			name = ex.Method + " " + ex.URL
		}
		count[name]++
		calls = append(calls, callKey{fmt.Sprintf("%s[%d]", name, count[name]-1), ex.ID})
	}
	return calls, nil
}

// printChanges prints differences and returns how many of them count.
func (a *app) printChanges(changes []diff.Change, asJSON, all bool) (int, error) {
	found := 0
	var rows [][]string
	for _, c := range changes {
		if c.Ignored == "" {
			found++
		}
		if asJSON {
			if err := a.printJSON(changeLine{1, c}); err != nil {
				return found, err
			}
			continue
		}
		if c.Ignored == "" || all {
			rows = append(rows, []string{c.Path, string(c.Op), valueText(c.Old), valueText(c.New), c.Ignored})
		}
	}
	if asJSON {
		return found, nil
	}
	if len(rows) > 0 {
		if err := a.out.Table([]string{"PATH", "CHANGE", "OLD", "NEW", "IGNORED"}, rows); err != nil {
			return found, err
		}
	}
	a.say("%d differences, %d ignored", found, len(changes)-found)
	return found, nil
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
