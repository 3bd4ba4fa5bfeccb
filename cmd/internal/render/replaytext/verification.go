package replaytext

import (
	"encoding/hex"
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

// shownBody is the largest number of bytes printed of a planned message.
const shownBody = 4 << 10

// VerifyPlan prints the first requests that a verification would send.
func VerifyPlan(out *term.Output, p *oracle.VerifyPlan) {
	fmt.Fprintf(out, "POST %s\n", term.Clean(p.URL))
	for _, h := range p.Headers {
		fmt.Fprintf(out, "  %s\n", term.Clean(h))
	}
	fmt.Fprintf(out, "verify would check %s of %s with the server, and send at most %s", app.Counted(p.Fields, "field"), p.Request, app.Counted(p.Budget, "request"))
	if p.Rate > 0 {
		fmt.Fprintf(out, ", %g per second", p.Rate)
	}
	fmt.Fprintf(out, "\nthe first message to send, %s:\n%s", app.Counted(len(p.Body), "byte"), hex.Dump(p.Body[:min(len(p.Body), shownBody)]))
	if len(p.Body) > shownBody {
		fmt.Fprintf(out, "and %s more; --dry-run --json prints the whole message\n", app.Counted(len(p.Body)-shownBody, "byte"))
	}
	for _, s := range p.Steps {
		fmt.Fprintf(out, "if the server uses %s, verify finds: %s.\n  verify then sends this number of requests: %s\n", s.Runtime, s.Tells, s.Requests)
	}
	for _, e := range p.Effects {
		fmt.Fprintf(out, "possible effect on the server: %s\n", e)
	}
}

// Verifications prints a table of the fields whose definitions were compared with a server's parser. all
// prints everything that the server answered about each field.
func Verifications(out *term.Output, list []*probe.Verification, all bool) error {
	var rows [][]string
	var detailed []bool
	explained := map[string]bool{}
	for _, v := range list {
		rows = append(rows, verifyRows(v, all)...)
		for i := range v.Claims {
			c := &v.Claims[i]
			// Many fields are undecided for the same reason, which is printed in full once.
			why := v.Method + "\x00" + c.Concluded + "\x00" + c.Open
			detailed = append(detailed, c.Verdict == probe.Contradicted || c.Verdict != probe.Confirmed && !explained[why])
			explained[why] = explained[why] || c.Verdict != probe.Confirmed
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "METHOD", Drop: 4},
		{Name: "PATH", Shorten: term.Middle, Min: 8, Drop: 2},
		{Name: "FIELD", Shorten: term.Name, Min: 16},
		{Name: "TYPE", Shorten: term.Name, Min: 10, Drop: 1},
		{Name: "VERDICT"},
		{Name: "CONCLUSION", Shorten: term.End, Min: 20, Drop: 3},
		{Name: "SERVER ANSWER", Shorten: term.End, Min: 20, Drop: 5},
	}, Detail: func(i int) bool { return detailed[i] }})
}

// verifyRows returns the table rows for the fields of one method. Unless all is set, the server's answers
// are truncated.
func verifyRows(v *probe.Verification, all bool) [][]string {
	rows := [][]string{}
	for i := range v.Claims {
		c := &v.Claims[i]
		said := ""
		if len(c.Said) > 0 {
			said = term.Clean(c.Said[len(c.Said)-1])
		}
		// Contradictions get more space, because they need an explanation.
		switch {
		case all:
			said = term.Clean(strings.Join(c.Said, "; "))
		case c.Verdict == probe.Confirmed:
			said = term.Cut(said, 60)
		default:
			said = term.Cut(said, 160)
		}
		concluded, label := c.Concluded, strings.TrimPrefix(c.Label+" ", "singular ")
		if c.Open != "" {
			concluded += "; the answers do not show " + c.Open
		}
		if c.Label == "map" {
			label = ""
		}
		rows = append(rows, []string{
			term.Clean(v.Method[strings.LastIndexByte(v.Method, '/')+1:]), c.Path, term.Clean(c.Message + "." + c.Name), term.Clean(label + c.Type),
			string(c.Verdict), term.Clean(concluded), said,
		})
	}
	return rows
}

// Verified prints a summary of a verification.
func Verified(out *term.Output, v *probe.Verification) {
	sent := "unwire sent"
	if v.Reason.Unsent() {
		sent = "unwire tried to send"
	}
	out.Sayf("%s (RPC library of the server: %s): %s confirmed, %d contradicted, %d undecided; %s %s (%s), of which %s\n", term.Clean(v.Method),
		orText(string(v.Runtime), "no answer"), app.Counted(v.Confirmed, "field"), v.Contradicted, v.Undecided, sent, app.Counted(v.Requests, "request"), app.Counted(v.Bytes, "byte"), executed(v.Executed))
	for _, n := range v.Notes {
		out.Sayf("%s\n", term.Clean(n))
	}
	if v.Stopped != "" {
		out.Sayf("unwire: error: %s\n", term.Clean(v.Stopped))
		if hint := Hint(v.Reason, v.Stopped, ""); hint != "" {
			out.Sayf("unwire: hint: %s\n", hint)
		}
	}
}

// orText returns s, or other if s is "".
func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
