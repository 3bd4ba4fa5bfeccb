// Package update brings hand-written .proto files up to date with what a source says, and
// changes nothing else of them: what is new is spliced into the text in the file's own
// formatting, and every byte outside of it stays.
//
// The work is done in two passes over each source: first names that were placeholders,
// with all that refers to them; then what is new (additions), and marks of what is gone.
// After each, the files are compiled. Changes and conflicts are returned, each with a
// description; WriteFiles writes the files.
//
// Elements of the source are paired with those of the files. A document is the text of a
// file with the places of its declarations. A new declaration is printed in the style of
// its neighbours, and inserted at a place that fits its number; a new type is placed near
// its users, in a file that they import.
//
// The evidence log is a file that keeps which source each element comes from. Findings
// are the result of a probe, or the list that an inference has written.
//
// Sources are loaded by package update/source; this package reads no captures.
package update

import (
	"fmt"
	"maps"
	"slices"

	"unwire/schema"
)

// Options tunes an update. The zero value asks before a real name or a type is
// replaced: a conflict is listed.
type Options struct {
	// a source's name replaces another
	TakeNames bool

	// a source's type or label replaces another that the same bytes fit
	TakeTypes bool
}

// A File is a file that an update changes.
type File struct {
	Name   string
	Before string // "" of a new one
	After  string
	New    bool
}

// A Result is an update that was worked out and is not applied.
type Result struct {
	Files   []File // in path order, without those that stay as they are
	Changes []Change
	// Evidence is the text of the evidence file afterwards.
	Evidence string
}

// Conflicts returns the changes that are not made.
func (r *Result) Conflicts() []Change {
	var list []Change
	for _, c := range r.Changes {
		if c.Op == Conflict {
			list = append(list, c)
		}
	}
	return list
}

// Run works out the update of files, given by their paths with their text, by
// sources in their order. evidence is the text of the evidence file, "" if
// there is none.
//
// Shape: running it on its own result changes nothing.
// Errors: files that do not compile, with file, line and column; an evidence
// file that cannot be read, with the line.
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
	for i := range from {
		renamed := map[string]bool{}
		for _, pass := range []func(*merge) error{(*merge).names, (*merge).additions} {
			m := &merge{have: have, src: &from[i], o: o, log: log, docs: map[string]*document{}, texts: now, renamed: renamed}
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
				return nil, fmt.Errorf("update: the files would not compile with what %s says, so they stay as they are: %w", from[i].Name, err)
			}
			have = after
		}
		r.Changes = append(r.Changes, from[i].Conflicts...)
		log.addVersion(&from[i])
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before, old := files[name]; !old || before != now[name] {
			r.Files = append(r.Files, File{Name: name, Before: before, After: now[name], New: !old})
		}
	}
	r.Evidence = log.String()
	return r, nil
}
