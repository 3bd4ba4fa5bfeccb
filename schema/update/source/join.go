package source

import (
	"maps"
	"slices"
	"strings"

	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/update"
)

// nameByCalls continues the update r: it matches the resulting definitions with the names in calls that were
// recorded both in protobuf and in JSON, and applies these names as another source. complete is as in
// Folder.Update.
func nameByCalls(r *update.Result, files map[string]string, calls *align.Calls, complete func(*update.Source), o update.Options) (*update.Result, error) {
	now := maps.Clone(files)
	for _, file := range r.Files {
		now[file.Name] = file.After
	}
	have, err := schema.FromTexts(now)
	if err != nil {
		return nil, err
	}

	// The names of the updated files are used, so that names which the sources brought are not asked again.
	calls.SetSchema(have)
	var aligner align.Aligner
	if _, err := calls.Pair(&aligner); err != nil {
		return nil, err
	}
	report := aligner.Solve()
	if len(report.Joins) == 0 {
		return r, nil
	}
	src, err := fromJoins(report)
	if err != nil {
		return nil, err
	}

	if complete != nil {
		complete(src)
	}

	// The joins are one more source. Its changes are added to the result.
	next, err := update.Run(now, r.Evidence, []update.Source{*src}, o)
	if err != nil {
		return nil, err
	}
	for _, file := range next.Files {
		i := slices.IndexFunc(r.Files, func(old update.File) bool { return old.Name == file.Name })
		if i < 0 {
			r.Files = append(r.Files, file)
			continue
		}
		r.Files[i].After = file.After
	}
	slices.SortFunc(r.Files, func(a, b update.File) int { return strings.Compare(a.Name, b.Name) })
	r.Changes, r.Evidence = append(r.Changes, next.Changes...), next.Evidence
	return r, nil
}
