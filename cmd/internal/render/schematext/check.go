package schematext

import (
	"fmt"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/schema/check"
)

// Check prints the report of 'unwire schema check' as tables: methods, message types and findings.
func Check(out *term.Output, r *check.Report) error {
	methods := term.Table{Rows: methodRows(r), Columns: []term.Column{
		{Name: "METHOD", Shorten: term.Name, Min: 20},
		{Name: "SENT BY"},
		{Name: "MESSAGE TYPE", Shorten: term.Name, Min: 16},
		{Name: "DECODED", Right: true},
		{Name: "DESCRIBED", Right: true, Drop: 1},
	}}
	if err := out.Table(methods); err != nil {
		return err
	}

	// Three tables: methods, message types, findings. Empty ones are left out.
	if len(r.Messages) > 0 {
		fmt.Fprintln(out)
		types := term.Table{Rows: typeRows(r), Columns: []term.Column{
			{Name: "MESSAGE", Shorten: term.Name, Min: 20},
			{Name: "SEEN", Right: true},
			{Name: "FIELDS SEEN", Right: true},
			{Name: "FIELDS NEVER SEEN", Shorten: term.End, Min: 12, Drop: 1},
		}}
		if err := out.Table(types); err != nil {
			return err
		}
	}
	rows := findingRows(r)
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "FINDING"},
		{Name: "MESSAGE OR SERVICE", Shorten: term.Name, Min: 20},
		{Name: "FIELD OR METHOD", Shorten: term.Name, Min: 12},
		{Name: "DETAILS", Shorten: term.End, Min: 12, Drop: 1},
		{Name: "SEEN", Right: true, Drop: 3},
		{Name: "FRAMES", Shorten: term.End, Min: 18, Drop: 2},
	}, Detail: func(i int) bool { return i >= len(r.Unknown) && i < len(r.Unknown)+len(r.Contradicted) }})
}

// methodRows returns the table rows about methods: how many frames were decoded, and how many bytes
// explained.
func methodRows(r *check.Report) [][]string {
	rows := make([][]string, len(r.Methods))
	for i, m := range r.Methods {
		typ := m.Type
		if typ == "" {
			typ = "(unknown method)"
		}
		rows[i] = []string{
			m.Service + "/" + m.RPC, render.Sender(m.Dir), typ,
			fmt.Sprintf("%d of %s", m.Decoded, app.Counted(m.Frames, "frame")), share(m.BytesExplained, m.Bytes),
		}
	}
	return rows
}

// share formats the part of some bytes that the definitions describe.
func share(explained, all int64) string {
	if all == 0 {
		return "no bytes"
	}
	return percent(explained, all) + " of bytes"
}

// typeRows returns the table rows about message types: how often each was seen, and which fields never.
func typeRows(r *check.Report) [][]string {
	rows := make([][]string, len(r.Messages))
	for i, m := range r.Messages {
		rows[i] = []string{m.Message, app.Counted(m.Seen, "time"), fmt.Sprintf("%d of %s", m.FieldsSeen, app.Counted(m.Fields, "field")), firstNumbers(m.NeverSeen)}
	}
	return rows
}

// findingRows returns the table rows about findings: unknown fields, contradicted fields, unknown
// methods.
func findingRows(r *check.Report) [][]string {
	var rows [][]string
	for _, u := range r.Unknown {
		rows = append(rows, []string{findingWord("unknown", u.Allowed), u.Message, fieldLabel(u.Number, u.Name), kindWithP(&u), app.Counted(u.Seen, "time"), firstFrames(u.Frames)})
	}
	for _, c := range r.Contradicted {
		rows = append(rows, []string{findingWord("contradicted", c.Allowed), c.Message, fieldLabel(c.Number, c.Name), c.Reason, app.Counted(c.Seen, "time"), firstFrames(c.Frames)})
	}
	for _, m := range r.UnknownMethods {
		rows = append(rows, []string{findingWord("unknown method", m.Allowed), m.Service, m.RPC, "", app.Counted(m.Count, "message"), firstFrames(m.Frames)})
	}
	return rows
}

// findingWord returns the name of a kind of finding, marked if the user has accepted it.
func findingWord(what string, allowed bool) string {
	if allowed {
		return "(accepted) " + what
	}
	return what
}

// kindWithP formats the inferred kind of an unknown field with its probability.
func kindWithP(u *check.UnknownField) string {
	return fmt.Sprintf("%s (probability %.2f)", u.Kind, u.P)
}

// CheckSummary formats the result of checking definitions against captures in one line.
func CheckSummary(r *check.Report) string {
	s := fmt.Sprintf("decoded %d of %s", r.Decoded, app.Counted(r.Frames, "frame"))
	switch {
	case r.Bytes > 0:
		s += fmt.Sprintf("; the definitions describe %s of %s", percent(r.BytesExplained, r.Bytes), app.Counted(r.Bytes, "byte"))
	case r.Frames > 0:
		s += ", which contain no bytes"
	}
	s += fmt.Sprintf("; %s of the definitions occurred in the traffic, %d did not; %s, %s", app.Counted(r.FieldsSeen, "field"), r.FieldsNeverSeen,
		app.Counted(len(r.Unknown), "unknown field"), app.Counted(len(r.Contradicted), "contradiction"))
	if n := len(r.UnknownMethods); n > 0 {
		s += ", " + app.Counted(n, "unknown method")
	}
	if n := r.AllowedFindings(); n > 0 {
		s += "; you accepted " + app.Counted(n, "finding")
	}
	return s
}
