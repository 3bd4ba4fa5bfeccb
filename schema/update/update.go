// Package update merges the definitions of sources into hand-written .proto files. It changes nothing else:
// additions are spliced into the text in the style of the file, and all other bytes stay as they are.
//
// r, err := update.Run(files, evidence, []update.Source{src}, update.Options{})
// // r.Files has the new texts, r.Changes what was done, r.Conflicts() what was not
//
// Each source is applied in two passes. The first replaces placeholder names, such as field_3, and all
// references to them. The second adds new declarations and marks those that are gone. The files are compiled
// after each pass. Nothing is written until WriteFiles is called.
//
// The types of a source are first paired with those of the files. A document is a file with the positions of its
// declarations. A new declaration is formatted like its neighbours and inserted by its number; a new type goes
// into a file that its users can import.
//
// The evidence file, evidence.jsonl, records which sources confirm each element. The command schema update uses
// this package; package update/source loads the sources.
package update

import (
	"fmt"
	"maps"
	"slices"

	"unwire/schema"
)

// Options configures Run. With the zero value, a change that would replace a real name or a type is a conflict,
// for the user to decide.
type Options struct {
	// TakeNames is set to replace names in the user's files by those of the source. Default: a different name
	// is a conflict.
	TakeNames bool

	// TakeTypes is set to replace types and labels in the user's files by those of the source if both decode
	// the same bytes. Default: a different type is a conflict.
	TakeTypes bool
}

// A File is one .proto file that an update changes.
type File struct {
	// Name is the path relative to the root of the files.
	Name string
	// Before is the old content of the file; "" for a new file.
	Before string
	// After is the new content of the file.
	After string
	// New is set if the file did not exist before.
	New bool
}

// A Result is an update that has been computed but not written.
type Result struct {
	// Files are the changed files, sorted by path.
	Files []File
	// Changes are the changes that were made, and the conflicts.
	Changes []Change
	// Evidence is the new content of the evidence file (see EvidenceFile).
	Evidence string
}

// Conflicts returns the changes that were not made because they contradict the user's files.
func (r *Result) Conflicts() []Change {
	var list []Change
	for _, c := range r.Changes {
		if c.Op == Conflict {
			list = append(list, c)
		}
	}
	return list
}

// Run computes the update of the user's .proto files by sources, which are applied in order. files has the
// texts by path; evidence is the text of the evidence file, or "".
//
// Shape: running it again on its own result changes nothing.
// Errors: files that do not compile, with file, line and column; an evidence file that cannot be parsed, with
// the line.
func Run(files map[string]string, evidence string, from []Source, o Options) (*Result, error) {
	now := maps.Clone(files)
	if now == nil {
		now = map[string]string{}
	}
	have, err := schema.FromTexts(now)
	if err != nil {
		return nil, err
	}
	log, err := readLog(evidence)
	if err != nil {
		return nil, err
	}

	r := &Result{}

	// Each source sees the result of the ones before it.
	for i := range from {
		// The second pass needs to know what the first one renamed.
		renamed := map[string]bool{}
		for _, pass := range []func(*updatePass) error{(*updatePass).renamePlaceholders, (*updatePass).addMissing} {
			m := &updatePass{have: have, src: &from[i], o: o, log: log, docs: map[string]*document{}, texts: now, renamed: renamed}
			m.pairAll()
			if err := pass(m); err != nil {
				return nil, err
			}
			r.Changes = append(r.Changes, m.changes...)
			next := m.apply()
			if len(next) == 0 {
				continue
			}
			maps.Copy(now, next)
			after, err := schema.FromTexts(now)
			if err != nil {
				return nil, fmt.Errorf("update: the files would not compile with the definitions of %s, so they are not changed: %w", from[i].Name, err)
			}
			have = after
		}
		r.Changes = append(r.Changes, from[i].Conflicts...)
		log.addVersion(&from[i])
	}

	// Only files that differ are part of the result.
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before, old := files[name]; !old || before != now[name] {
			r.Files = append(r.Files, File{Name: name, Before: before, After: now[name], New: !old})
		}
	}
	r.Evidence = log.String()
	return r, nil
}
