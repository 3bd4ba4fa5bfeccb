package capturetext

import (
	"strings"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// Checks writes a table of what doctor found.
func Checks(out *term.Output, checks []*contract.Check) error {
	var rows [][]string
	for _, c := range checks {
		status := c.Status
		if out.TTY && status != "ok" {
			// A table's cells are cleaned of colours: capitals stand out instead.
			status = strings.ToUpper(status)
		}
		rows = append(rows, []string{status, c.Check, c.What, c.Do})
	}
	return out.Table([]string{"STATUS", "CHECK", "WHAT", "WHAT TO DO"}, rows)
}
