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

// UpdateDiff writes the changes that an update makes to .proto files as a unified diff.
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

// Conflict describes in one line a change that an update did not make because it conflicts with the
// existing files.
func Conflict(c update.Change) string {
	s := fmt.Sprintf("%s %s", c.Kind, c.Element)
	if c.Number != 0 {
		s += fmt.Sprintf(" (%d)", c.Number)
	}
	if c.File != "" {
		s += " in " + c.File
	}
	switch {
	case c.Old != "":
		s += fmt.Sprintf(": the file has %q, but the source (%s) has %q", c.Old, c.Source, c.New)
	case c.New != "":
		s += fmt.Sprintf(": the source (%s) has this element (%s), but update does not add it", c.Source, c.New)
	}
	if c.Note != "" {
		s += ": " + c.Note
	}
	return s
}

// SourceRemark describes in one line a remark about a source of an update.
func SourceRemark(r source.Remark) string {
	switch {
	case r.Rejected != nil:
		return fmt.Sprintf("%s#%d: %v", r.Source, r.Exchange, r.Rejected)
	case r.Left != "":
		return fmt.Sprintf("%s: update skipped %s", r.Source, term.CleanText(r.Left))
	case r.Unresolved != nil:
		return fmt.Sprintf("%s: %s: %s", r.Unresolved.Place, r.Unresolved.Element, r.Unresolved.Reason)
	}
	return r.Source + ": the .proto files contain none of the messages that this source names. Run 'unwire align' again with --proto and the folder of these .proto files; its output then contains their message names"
}

// UpdateSummary returns one line with the number of changes, .proto files and conflicts of an update. The
// file with evidence does not count. written means that the files were changed.
func UpdateSummary(r *update.Result, written bool) string {
	done := "would change"
	if written {
		done = "changed"
	}
	conflicts, files := len(r.Conflicts()), 0
	for i := range r.Files {
		if r.Files[i].Name != update.EvidenceFile {
			files++
		}
	}
	return fmt.Sprintf("%s %s in %s; %s", done, app.Counted(len(r.Changes)-conflicts, "element"), app.Counted(files, "file"), app.Counted(conflicts, "conflict"))
}
