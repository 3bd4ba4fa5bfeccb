package capturetext

import (
	"fmt"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// Checks prints the results of 'unwire doctor': a checklist on a terminal, and otherwise a table.
func Checks(out *term.Output, checks []*contract.Check) error {
	if out.TTY {
		return checklist(out, checks)
	}
	rows := make([][]string, len(checks))
	for i, c := range checks {
		rows[i] = []string{c.Status, c.Check, c.What, c.Do}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{{Name: "STATUS"}, {Name: "CHECK"}, {Name: "FINDING"}, {Name: "WHAT TO DO"}}})
}

// checklist prints one line for each check. Below a check with a warning or failure, it prints what was
// found and what to do about it; advice that is repeated is printed once.
func checklist(out *term.Output, checks []*contract.Check) error {
	var b strings.Builder
	name := 0
	for _, c := range checks {
		name = max(name, len(c.Check))
	}
	count := map[string]int{}

	// Checks with the same name share one line, with the worst status among them.
	for i := 0; i < len(checks); {
		end := i + 1
		for end < len(checks) && checks[end].Check == checks[i].Check {
			end++
		}
		group := checks[i:end]
		i = end
		status := worstOf(group)
		count[status]++
		// Details follow only for warnings and failures.
		found := ""
		if status == "ok" {
			found = joinedFindings(group)
		}
		line := fmt.Sprintf("%-*s  %s", name, term.Clean(group[0].Check), found)
		if out.Width > 0 {
			line = term.Shorten(line, out.Width-len("fail  "), term.End)
		}
		fmt.Fprintf(&b, "%s  %s\n", statusWord(out, status), strings.TrimRight(line, " "))
		checkDetails(out, &b, group)
	}
	summary := app.Counted(count["ok"], "check") + " passed"
	if n := count["warn"]; n > 0 {
		summary += ", " + app.Counted(n, "warning")
	}
	if n := count["fail"]; n > 0 {
		summary += fmt.Sprintf(", %d failed", n)
	}
	out.Paragraph(&b, "", "", summary)
	_, err := out.Write([]byte(b.String()))
	return err
}

// worstOf returns the most severe status of several checks.
func worstOf(checks []*contract.Check) string {
	worst := "ok"
	for _, c := range checks {
		if c.Status == "fail" || worst == "ok" {
			worst = c.Status
		}
	}
	return worst
}

// joinedFindings returns what several checks found, separated by semicolons.
func joinedFindings(checks []*contract.Check) string {
	var found []string
	for _, c := range checks {
		found = append(found, term.Clean(c.What))
	}
	return strings.Join(found, "; ")
}

// statusWord returns a status as a coloured word of four columns.
func statusWord(out *term.Output, status string) string {
	switch status {
	case "ok":
		return out.Green("  ok")
	case "warn":
		return out.Yellow("warn")
	}
	return out.Red(fmt.Sprintf("%4s", strings.ToUpper(status)))
}

// checkDetails appends to b what the checks of a group found and what to do, except for successful
// checks.
func checkDetails(out *term.Output, b *strings.Builder, group []*contract.Check) {
	for k, c := range group {
		if c.Status == "ok" {
			continue
		}
		out.Paragraph(b, "      ", "", c.What)
		if c.Do != "" && (k == len(group)-1 || group[k+1].Do != c.Do) {
			out.Paragraph(b, "      ", out.Bold("→ "), c.Do)
		}
	}
}
