package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/update"
)

// nameByCalls goes on with an update: the definitions that it comes to are joined
// with the names in calls that were recorded in both codecs.
func (a *app) nameByCalls(r *update.Result, texts map[string]string, calls *align.Calls, f updateFlags) (*update.Result, error) {
	now := maps.Clone(texts)
	for _, file := range r.Files {
		now[file.Name] = file.After
	}
	have, err := schema.FromTexts(now)
	if err != nil {
		return nil, err
	}
	calls.NameBy(have)
	var aligner align.Aligner
	if _, err := calls.Pair(&aligner); err != nil {
		return nil, err
	}
	report := aligner.Solve()
	if len(report.Joins) == 0 {
		return r, nil
	}
	src, err := joinsSource(report)
	if err != nil {
		return nil, err
	}
	next, err := update.Run(now, r.Evidence, []update.Source{f.stamped(src)}, update.Options{TakeNames: f.takeNames, TakeTypes: f.takeTypes})
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

// joinsSource is what the joins of align come to.
func joinsSource(r *align.Report) (*update.Source, error) {
	s, err := schema.FromDescriptorSet(r.DescriptorSet())
	if err != nil {
		return nil, fmt.Errorf("the joins make no definitions: %w", err)
	}
	src := &update.Source{Name: "traffic", Certainty: "inferred", Schema: s, Guessed: true, Spelled: true, Fits: map[string][]string{}}
	for _, j := range r.Joins {
		src.Fits[j.Message+"."+j.Name] = append(slices.Clone(j.Alternatives), j.Type)
	}
	return src, nil
}

// isAligned reports whether definitions are those that align makes of joins.
func isAligned(s *schema.Schema) bool {
	found := false
	for _, f := range s.Files() {
		switch base := path.Base(f.Path()); {
		case base == align.DefinitionsFile:
			found = true
		case !strings.HasPrefix(f.Path(), "google/protobuf/"):
			return false
		}
	}
	return found
}

// isReport reports whether JSON begins as the lines of `unwire align --json` do.
func isReport(data []byte) bool {
	var first struct {
		Message string          `json:"message"`
		Name    json.RawMessage `json:"json_name"`
		Names   json.RawMessage `json:"json_names"`
	}
	return json.NewDecoder(bytes.NewReader(data)).Decode(&first) == nil && first.Message != "" && (first.Name != nil || first.Names != nil)
}

// reportSource reads what align wrote; have may be nil.
func (a *app) reportSource(have *schema.Schema, name string, data []byte) (*update.Source, error) {
	r, err := align.ParseReport(data)
	if err != nil {
		return nil, fail(exitInput, fmt.Errorf("%s: %w", name, err), "'unwire align --json' writes such files")
	}
	if have != nil && !slices.ContainsFunc(r.Joins, func(j align.Join) bool { return have.Message(j.Message) != nil }) {
		a.say("unwire: %s: none of its messages is in the files; 'unwire align --proto DIR' calls them as DIR does", name)
	}
	return joinsSource(r)
}
