package schematext

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/schema/match"
)

// MatchSummary returns one line about the search for the type of a message or field: the number of
// messages, and the conclusion.
func MatchSummary(t *match.Target, r *match.Result) string {
	where := cmp.Or(t.In, "messages of the input")
	if method, dir, ok := strings.Cut(where, ":"); ok && (dir == captures.Up.String() || dir == captures.Down.String()) {
		where = fmt.Sprintf("messages that the %s sends in %s", render.Sender(dir), method)
	}
	if t.Path != "" {
		where = "field " + t.Path + " of " + where
	}
	distinct := ""
	if r.Distinct < r.Samples {
		distinct = fmt.Sprintf("%d different ones, ", r.Distinct)
	}
	return fmt.Sprintf("%s: %s (compared %s, %s%s)", where, verdictWords(r), app.Counted(r.Samples, "value"), distinct, app.Counted(r.Bytes, "byte"))
}

// verdictWords returns the conclusion of the search in words.
func verdictWords(r *match.Result) string {
	switch r.Conclusion {
	case match.Matched:
		return "the type is " + string(r.FullName())
	case match.Tied:
		return fmt.Sprintf("%s fit equally well, so the type is undecided", app.Counted(r.Candidates[0].Ties+1, "type"))
	case match.NoMatch:
		return "no type in the definitions fits these messages"
	}
	return fmt.Sprintf("%s may fit, so the type is undecided", app.Counted(r.Possible, "type"))
}

// Match prints a table of up to most candidate types, and of the types that are ruled out.
func Match(out *term.Output, r *match.Result, most int) error {
	var rows [][]string
	// A narrow terminal shows only the number of a contradicting field, because the reasons would be cut off.
	short := out.TTY && out.Width > 0 && out.Width < wideRemarks
	for i, c := range r.Candidates {
		if i == most {
			rows = append(rows, []string{strconv.Itoa(c.Rank), fmt.Sprintf("… and %d more", len(r.Candidates)-i), "", "", "", ""})
			break
		}
		rows = append(rows, []string{
			strconv.Itoa(c.Rank), c.Message, fmt.Sprintf("%.3f", c.P), fmt.Sprintf("%.0f", c.Bits), percent(c.Bytes, r.Bytes), listed("unknown fields: ", c.Unknown),
		})
	}
	for _, c := range r.Vetoed {
		rows = append(rows, []string{"-", c.Message, "0", fmt.Sprintf("%.0f", c.Bits), percent(c.Bytes, r.Bytes), vetoText(c.Vetoes, short)})
	}
	return out.Table(term.Table{Rows: rows, Legend: matchLegend, Columns: []term.Column{
		{Name: "RANK", Right: true},
		{Name: "MESSAGE", Shorten: term.Name, Min: 20},
		{Name: "PROBABILITY", Right: true},
		{Name: "COST (BITS)", Right: true, Drop: 3},
		{Name: "BYTES EXPLAINED", Right: true, Drop: 2},
		{Name: "REMARK", Shorten: term.End, Min: 16, Drop: 1},
	}})
}

// matchLegend explains the column with the cost.
const matchLegend = "(COST: bits that describe the messages with this type; the lowest is best)"

// wideRemarks is the width of a terminal, in columns, from which on the remarks name reasons.
const wideRemarks = 150

// vetoText describes why a type is excluded: the contradicting fields with the reasons or, if short is set, only the
// number of the first of these fields.
func vetoText(vetoes []string, short bool) string {
	if short && len(vetoes) > 0 {
		field, _, _ := strings.Cut(vetoes[0], ":")
		return "excluded: field " + field
	}
	return listed("excluded: field ", vetoes)
}

// listed joins texts with semicolons after the prefix what; "" for an empty list.
func listed(what string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return what + strings.Join(list, "; ")
}
