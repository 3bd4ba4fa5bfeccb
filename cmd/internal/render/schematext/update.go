package schematext

import (
	"fmt"
	"io"
	"os"

	"github.com/rogpeppe/go-internal/diff"

	"unwire/cmd/internal/app"
	"unwire/schema/update"
)

// UpdateDiff writes the files of an update as a unified diff.
func UpdateDiff(w io.Writer, files []update.File) error {
	for _, file := range files {
		old := "a/" + file.Name
		if file.New {
			old = os.DevNull
		}
		if _, err := w.Write(diff.Diff(old, []byte(file.Before), "b/"+file.Name, []byte(file.After))); err != nil {
			return err
		}
	}
	return nil
}

// Conflict is a change that an update does not make, in one line.
func Conflict(c update.Change) string {
	s := fmt.Sprintf("%s %s", c.Kind, c.Element)
	if c.Number != 0 {
		s += fmt.Sprintf(" (%d)", c.Number)
	}
	if c.File != "" {
		s += " in " + c.File
	}
	if c.Old != "" || c.New != "" {
		s += fmt.Sprintf(": %q here, %q in %s", c.Old, c.New, c.Source)
	}
	if c.Note != "" {
		s += ": " + c.Note
	}
	return s
}

// UpdateSummary is an update in one line, which was written or not.
func UpdateSummary(r *update.Result, written bool) string {
	done := "would change"
	if written {
		done = "changed"
	}
	conflicts := len(r.Conflicts())
	return fmt.Sprintf("%s, %s %s, %s", app.Counted(len(r.Changes)-conflicts, "change"), app.Counted(len(r.Files), "file"), done, app.Counted(conflicts, "conflict"))
}
