package schematext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/schema/align"
)

// Alignment prints a table of the field names that were matched to field numbers, followed by those that
// remain ambiguous.
func Alignment(out *term.Output, r *align.Report) error {
	rows := make([][]string, 0, len(r.Joins)+len(r.Doubts))
	for _, j := range r.Joins {
		typ := j.Type
		if j.Label == "repeated" {
			typ = "repeated " + typ
		}
		rows = append(rows, []string{
			j.Message, strconv.FormatUint(j.Number, 10), term.Clean(j.Name), term.Clean(j.JSONName), typ,
			strings.Join(j.Alternatives, ", "), term.Clean(enumText(j.Enum)), strconv.Itoa(j.Pairs),
		})
	}
	// Ambiguous names follow, with what would decide them.
	for _, d := range r.Doubts {
		numbers := make([]string, len(d.Numbers))
		for i, n := range d.Numbers {
			numbers[i] = strconv.FormatUint(n, 10)
		}
		rows = append(rows, []string{d.Message, strings.Join(numbers, ", "), "?", term.Clean(strings.Join(d.Names, ", ")), "", term.Clean(d.Settle), "", ""})
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "MESSAGE", Shorten: term.Name, Min: 22},
		{Name: "FIELD NUMBER", Shorten: term.End, Min: 6},
		{Name: "NAME", Shorten: term.Middle, Min: 16},
		{Name: "JSON NAME", Shorten: term.Middle, Min: 12, Drop: 4},
		{Name: "TYPE", Shorten: term.Start, Min: 22},
		{Name: "OTHER POSSIBLE TYPES, OR WHAT TO RECORD", Shorten: term.End, Min: 12, Drop: 3},
		{Name: "ENUM VALUES", Shorten: term.End, Min: 12, Drop: 2},
		{Name: "PAIRS OF MESSAGES", Right: true, Drop: 1},
	}, Detail: func(i int) bool { return i >= len(r.Joins) }})
}

// enumText lists an enum's numbers with their names, ordered by number.
func enumText(values map[string]int32) string {
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[a], values[b]), strings.Compare(a, b))
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%d %s", values[n], n)
	}
	return strings.Join(names, ", ")
}

// Unpaired describes in one line the calls of a method that were recorded in only one codec.
func Unpaired(u align.Unpaired) string {
	return fmt.Sprintf("%s: align did not compare this method, because the captures have %s in protobuf and %d in JSON", u.Method, app.Counted(u.Proto, "call"), u.JSON) + cmp.Or(u.Why, "")
}

// AlignmentSummary returns one line with the number of named fields and of ambiguous ones.
func AlignmentSummary(r *align.Report) string {
	return fmt.Sprintf("found the names of %s by comparing %s of messages; %s ambiguous", app.Counted(len(r.Joins), "field"), app.Counted(r.Pairs, "pair"), ambiguous(len(r.Doubts)))
}

// ambiguous returns the number of groups of names with the verb.
func ambiguous(n int) string {
	if n == 1 {
		return "1 group of names is"
	}
	return fmt.Sprintf("%d groups of names are", n)
}
