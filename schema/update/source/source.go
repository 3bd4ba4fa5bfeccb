// Package source loads the sources of updates: definitions, captures (traffic) and the
// evidence that they leave, the joins of calls in two codecs, and shipped code. A Folder
// is what is updated.
//
//	folder, err := source.ReadFolder(ctx, "proto")
//	loader := &source.Loader{Have: folder.Schema}
//	src, err := loader.Load(ctx, "app/dist/main.js", head)
//	result, err := folder.Update(ctx, []update.Source{*src}, &loader.Calls, complete, update.Options{})
//
// Traffic is checked against the definitions at hand, and only what is new is inferred.
// After an update, calls in two codecs are joined, which gives placeholders names.
package source

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"unwire/captures/profile"
	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/infer"
	"unwire/schema/update"
)

// fromDefinitions is what definitions say, or what align wrote as definitions. With
// partial, what they do not have is not gone.
func fromDefinitions(s *schema.Schema, partial bool) *update.Source {
	if isAligned(s) {
		return &update.Source{Name: "traffic", Certainty: "inferred", Schema: s, Guessed: true, Spelled: true}
	}
	return &update.Source{Name: "definitions", Certainty: "reported", Schema: s, Complete: !partial}
}

// isAligned reports whether definitions are those that align makes of joins.
func isAligned(s *schema.Schema) bool {
	found := false
	for _, f := range s.Files {
		switch base := path.Base(f.Path()); {
		case base == align.DefinitionsFile:
			found = true
		case !strings.HasPrefix(f.Path(), "google/protobuf/"):
			return false
		}
	}
	return found
}

// fromEvidence is what evidence comes to. Roots that are no method's are messages by
// their full names.
func fromEvidence(ev *infer.Evidence, p *profile.Profile) (*update.Source, error) {
	in, err := infer.Infer(ev, infer.Options{Profile: p})
	if err != nil {
		return nil, err
	}
	src := &update.Source{Name: "traffic", Certainty: "inferred", Schema: in.Schema, Guessed: true, Known: map[string]string{}}
	for root, full := range in.Roots {
		src.Known[full] = root
	}
	return src, nil
}

// fromJoins is what the joins of align come to.
func fromJoins(r *align.Report) (*update.Source, error) {
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
