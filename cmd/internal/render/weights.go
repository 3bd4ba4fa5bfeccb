package render

import (
	"fmt"
	"strings"

	"unwire/cmd/internal/term"
	"unwire/decode/transcript"
)

// Weights prints a table of how much each feature of a text adds to the log odds of each role. If changes
// is set, it prints only the features whose weights differ from the built-in ones.
func Weights(out *term.Output, w, built *transcript.Weights, changes bool) error {
	columns := []term.Column{{Name: "FEATURE"}}
	for i, r := range w.Roles() {
		columns = append(columns, term.Column{Name: strings.ToUpper(string(r)), Right: true, Drop: i})
	}
	var rows [][]string
	for _, name := range w.Features() {
		row := []string{transcript.DescribeFeature(name)}
		differs := false
		before := built.Row(name)
		for i, v := range w.Row(name) {
			cell := fmt.Sprintf("%g", v)
			if v != before[i] {
				cell = fmt.Sprintf("%g>%g", before[i], v)
				differs = true
			}
			row = append(row, cell)
		}
		if !changes || differs {
			rows = append(rows, row)
		}
	}
	return out.Table(term.Table{Columns: columns, Rows: rows})
}

// WeightsFit returns one line about fitted weights: accuracy and loss, before, after and by
// cross-validation.
func WeightsFit(r *transcript.FitReport) string {
	return fmt.Sprintf("%d labels of %d roles; accuracy: old weights %.3f, new weights %.3f, cross-validation %.3f (%d folds); loss: old weights %.3f, cross-validation %.3f",
		r.Labels, r.Roles, r.Before, r.After, r.Held, r.Folds, r.LossBefore, r.LossHeld)
}
