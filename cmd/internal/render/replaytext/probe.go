package replaytext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/replay/probe"
)

// ProbeResult writes the tables of what a probe learnt, or of the claims that it settled.
func ProbeResult(out *term.Output, r *probe.Result) error {
	header := []string{"FIELD", "CLASS", "KIND", "LABEL", "NAME", "TYPE", "EVIDENCE"}
	rows := [][]string{}
	for _, f := range slices.Concat(r.Fields, r.Nested) {
		number, name, last := "", f.Name, ""
		if f.Number > 0 {
			number = strconv.Itoa(int(f.Number))
			if f.Path != "" {
				number = f.Path + "." + number
			}
		}
		if f.In != "" {
			name = f.In + "." + name
		}
		if len(f.Evidence) > 0 {
			last = f.Evidence[len(f.Evidence)-1]
		}
		of := f.Type
		if values := slices.Concat(f.Values, f.Holds); len(values) > 0 {
			of = strings.TrimSpace(of + " {" + strings.Join(values, ", ") + "}")
		}
		rows = append(rows, []string{number, string(f.Class), f.Kind, f.Label, name, of, last})
	}
	header, rows = fitting(out, header, rows, []int{0, 4, 1, 3, 2, 5, 6})
	if len(r.Settled) > 0 {
		return settledTable(out, r)
	}
	return out.Table(header, rows)
}

// Probed writes, in words, how a probe went.
func Probed(out *term.Output, r *probe.Result) {
	fmt.Fprintf(out, "%s, %s: %s, %s of bodies; %s may have run the handler\n", r.Runtime, orUnknown(r.RequestType), app.Counted(r.Requests, "request"), app.Counted(r.Bytes, "byte"), app.Counted(r.Executed, "request"))
	for _, n := range r.Notes {
		fmt.Fprintf(out, "%s\n", term.Clean(n))
	}
}

// fitting makes a table as wide as the terminal: columns without a word are left
// out, and those that come last in order are cut, or left out if little would be
// left of them.
func fitting(out *term.Output, header []string, rows [][]string, order []int) ([]string, [][]string) {
	const least, evidence, between = 12, 100, 2
	room := out.Width
	if !out.TTY || room <= 0 {
		for _, row := range rows {
			row[len(row)-1] = term.Cut(term.Clean(row[len(row)-1]), evidence)
		}
		return header, rows
	}
	var keep []int
	widths := make([]int, len(header))
	for _, i := range order {
		longest := 0
		for _, row := range rows {
			row[i] = term.Clean(row[i])
			longest = max(longest, utf8.RuneCountInString(row[i]))
		}
		widths[i] = min(max(longest, len(header[i])), max(room-between, 0))
		if room -= widths[i] + between; room < 0 && len(keep) > 0 {
			widths[i] += room
			room = 0
		}
		if longest > 0 && widths[i] >= min(longest, least) {
			keep = append(keep, i)
		} else {
			room += widths[i] + between
		}
	}
	slices.Sort(keep)
	cut := func(row []string) (out []string) {
		for _, i := range keep {
			cell := []rune(row[i])
			if len(cell) > widths[i] {
				cell = append(cell[:max(widths[i]-1, 0)], '…')
			}
			out = append(out, string(cell))
		}
		return out
	}
	for i, row := range rows {
		rows[i] = cut(row)
	}
	return cut(header), rows
}

func orUnknown(name string) string {
	if name == "" {
		return "a request of a type that is not known"
	}
	return term.Clean(name)
}

// settledTable lists the claims with what follows from the server's answers.
func settledTable(out *term.Output, r *probe.Result) error {
	rows := [][]string{}
	for _, q := range r.Settled {
		at := strconv.Itoa(int(q.Number))
		if q.Path != "" {
			at = q.Path + "." + at
		}
		for _, c := range q.Claims {
			why := c.Concluded
			if c.Open != "" {
				why += "; open: " + c.Open
			}
			rows = append(rows, []string{at, term.Clean(c.Text), term.Clean(c.From), string(c.Verdict), term.Clean(why)})
		}
	}
	return out.Wide([]string{"FIELD", "CLAIM", "FROM", "VERDICT", "WHY"}, rows)
}
