package render

import (
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode/diff"
)

// Series prints a table of the paths whose values vary over a series; all adds the constant ones.
func Series(out *term.Output, s *query.Series, all bool) error {
	var rows [][]string
	for i := range s.Variations {
		v := &s.Variations[i]
		// Constant paths are the uninteresting majority.
		if v.Class == diff.Constant && v.Present == v.Of && !all {
			continue
		}
		fd, name := s.Field(v)
		def := definition{field: fd}
		if fd != nil {
			def.message = fd.Message()
		}
		examples := make([]string, len(v.Examples))
		for i, e := range v.Examples {
			examples[i] = shownValue(e, def, 40)
		}
		rows = append(rows, []string{
			place(v.Path, ""), string(v.Class), fmt.Sprintf("%d of %s", v.Present, app.Counted(v.Of, s.Unit)), fmt.Sprint(v.Values), term.Clean(strings.Join(examples, "  ")), name,
		})
	}
	if len(rows) == 0 {
		return nil
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "PLACE", Shorten: term.Middle, Min: 34},
		{Name: "VARIATION"},
		{Name: "PRESENT IN", Drop: 3},
		{Name: "DISTINCT VALUES", Right: true, Drop: 2},
		{Name: "EXAMPLES", Shorten: term.End, Min: 20},
		{Name: "NAME", Shorten: term.Name, Min: 12, Drop: 1},
	}})
}

// SeriesCount returns one line with the number of paths that vary, are volatile, or are constant.
func SeriesCount(s *query.Series) string {
	count := map[diff.Class]int{}
	for i := range s.Variations {
		count[s.Variations[i].Class]++
	}
	return fmt.Sprintf("compared %d messages or exchanges, with %s. Paths with varying values: %d; with IDs, times or tokens, which differ in every run: %d; with one constant value: %d (--show-ignored also lists these paths)",
		s.Length, app.Counted(len(s.Variations), "field path"), count[diff.Varies], count[diff.Volatile], count[diff.Constant])
}
