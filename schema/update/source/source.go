// Package source loads the sources of package update: definitions, captures, evidence, names from calls in two
// codecs, and shipped code. A Folder has the files to update.
//
// folder, err := source.ReadFolder(ctx, "proto")
// loader := &source.Loader{Have: folder.Schema}
// src, err := loader.Load(ctx, "app/dist/main.js", head)
// result, err := folder.Update(ctx, []update.Source{*src}, &loader.Calls, complete, update.Options{})
//
// A capture is checked against the existing definitions, and only what they lack is inferred. The command schema
// update uses this package.
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

// fromDefinitions returns the source for definitions. Those that `unwire align` wrote are guesses. If partial
// is set, elements that the definitions lack still exist.
func fromDefinitions(s *schema.Schema, partial bool) *update.Source {
	if isAligned(s) {
		return &update.Source{Name: "traffic", Certainty: "inferred", Schema: s, Guessed: true, Spelled: true}
	}
	return &update.Source{Name: "definitions", Certainty: "reported", Schema: s, Complete: !partial}
}

// isAligned reports whether the definitions were written by `unwire align`.
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

// fromEvidence infers definitions from stored evidence. The name of a root type that belongs to no method is
// the full name of a message.
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

// fromJoins returns the source for the output of `unwire align`.
func fromJoins(r *align.Report) (*update.Source, error) {
	s, err := schema.FromDescriptorSet(r.DescriptorSet())
	if err != nil {
		return nil, fmt.Errorf("the result of align cannot be converted to definitions: %w", err)
	}
	src := &update.Source{Name: "traffic", Certainty: "inferred", Schema: s, Guessed: true, Spelled: true, Fits: map[string][]string{}}
	for _, j := range r.Joins {
		src.Fits[j.Message+"."+j.Name] = append(slices.Clone(j.Alternatives), j.Type)
	}
	return src, nil
}
