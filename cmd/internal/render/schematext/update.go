package schematext

import (
	"fmt"
	"io"
	"os"

	"github.com/rogpeppe/go-internal/diff"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/schema/update"
	"unwire/schema/update/source"
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

// SourceRemark is a remark on a source of an update, in one line.
func SourceRemark(r source.Remark) string {
	switch {
	case r.Rejected != nil:
		return fmt.Sprintf("%s#%d: %v", r.Source, r.Exchange, r.Rejected)
	case r.Left != "":
		return fmt.Sprintf("%s: left out: %s", r.Source, term.CleanText(r.Left))
	case r.Unresolved != nil:
		return fmt.Sprintf("%s: %s: %s", r.Unresolved.Place, r.Unresolved.Element, r.Unresolved.Reason)
	}
	return r.Source + ": none of its messages is in the files; 'unwire align --proto DIR' calls them as DIR does"
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
