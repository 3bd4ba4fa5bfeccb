package replaytext

import (
	"errors"
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
	"unwire/replay/suite"
)

// Suite prints the results of a suite's experiments in a format: "tap", "table" or "junit".
func Suite(out *term.Output, lines []*contract.Experiment, format string) error {
	switch format {
	case "table":
		var rows [][]string
		for _, l := range lines {
			comparison, state := "", "ok"
			if l.Result != nil {
				comparison = string(l.Result.Comparison)
			}
			if !l.OK {
				state = "not ok"
			}
			rows = append(rows, []string{l.File, state, comparison, fmt.Sprintf("%.0f ms", l.Duration), term.Clean(strings.Join(append(l.Failed, l.About), "; "))})
		}
		return out.Table(term.Table{Rows: rows, Columns: []term.Column{
			{Name: "EXPERIMENT", Shorten: term.Start, Min: 20},
			{Name: "RESULT"},
			{Name: "VERDICT"},
			{Name: "DURATION", Right: true, Drop: 1},
			{Name: "DETAILS", Shorten: term.End, Min: 20},
		}, Detail: func(i int) bool { return !lines[i].OK }, Legend: suiteLegend})
	case "junit":
		return junit(out, lines)
	}

	// TAP is the default: any test runner can read it.
	fmt.Fprintf(out, "TAP version 14\n1..%d\n", len(lines))
	for i, l := range lines {
		state := "ok"
		if !l.OK {
			state = "not ok"
		}
		fmt.Fprintf(out, "%s %d - %s\n", state, i+1, term.Clean(strings.TrimSuffix(l.File+": "+l.About, ": ")))
		for _, why := range l.Failed {
			fmt.Fprintf(out, "  # %s\n", term.Clean(strings.ReplaceAll(why, "\n", " ")))
		}
	}
	return nil
}

// suiteLegend explains the columns RESULT and VERDICT.
const suiteLegend = "(VERDICT: the new answer compared with the captured one; ok: as expected)"

// Failures describes the expectations of an experiment that were not met, or why the experiment did not
// run; empty if it succeeded.
func Failures(o *suite.Outcome) []string {
	if first, ok := errors.AsType[*suite.UnansweredError](o.Err); ok {
		return []string{fmt.Sprintf("exchange %d, sent before the experiment: %s", first.Exchange, Comparison(first.Result))}
	}
	if o.Err != nil {
		return []string{app.PlainText(o.Err)}
	}
	return append([]string{}, o.Failed...)
}
