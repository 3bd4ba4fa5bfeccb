package contract

import (
	"cmp"
	"slices"

	"unwire/schema/align"
	"unwire/schema/check"
	"unwire/schema/compare"
	"unwire/schema/extract"
	"unwire/schema/match"
	"unwire/schema/update"
)

// SchemaCheck is how far definitions explain captures. Package check reads it back as
// the list of findings that are known.
type SchemaCheck struct {
	escapedVersion
	*check.Report
}

// FieldProposal is a field that captures have and definitions lack.
type FieldProposal struct {
	escapedVersion
	check.Proposal
}

// SchemaChange is a difference between two versions of definitions.
type SchemaChange struct {
	version
	compare.Change

	// Captures are the addresses of the exchanges that have the element.
	Captures []string `json:"captures,omitempty"`

	// Replays are the files of the experiments that have it.
	Replays []string `json:"replays,omitempty"`

	// Proto is Outdated where the user's definitions are still as the old version is.
	Proto string `json:"proto,omitempty"`
}

// Outdated is the value of SchemaChange.Proto.
const Outdated = "outdated"

// SchemaUpdate is a change that an update makes to .proto files, or a conflict.
type SchemaUpdate struct {
	version
	update.Change
}

// SchemaMatch is a place in captured messages, with the known types that fit it.
type SchemaMatch struct {
	version

	// Target is the message that has the field, or the method with its direction; ""
	// of files of one message each.
	Target string `json:"target"`

	// Path is the field's path below Target; "" for all of a frame.
	Path string `json:"path"`

	// Message is the best candidate's full name; "" without a match.
	Message string `json:"message"`

	// Frames are the addresses of the first frames that have the place.
	Frames []string `json:"frames"`

	*match.Result
}

// NewSchemaMatch returns a place with what it may be.
func NewSchemaMatch(t *match.Target, r *match.Result) *SchemaMatch {
	return &SchemaMatch{Target: t.In, Path: t.Path, Message: string(r.FullName()), Frames: t.Frames, Result: r}
}

// SchemaExtraction counts what was extracted from an input.
type SchemaExtraction struct {
	version
	Input      string              `json:"input"`
	Form       string              `json:"form"`
	Messages   int                 `json:"messages"`
	Enums      int                 `json:"enums"`
	Services   int                 `json:"services"`
	Fields     int                 `json:"fields"`
	Unresolved []unresolvedElement `json:"unresolved"`
}

// NewSchemaExtraction counts what an input declares; set is made of it alone.
func NewSchemaExtraction(src *extract.Source, set *extract.Set) *SchemaExtraction {
	n := set.Count()
	x := &SchemaExtraction{
		Input: src.Input, Form: src.Form(), Messages: n.Messages, Enums: n.Enums, Services: n.Services, Fields: n.Fields,
		Unresolved: []unresolvedElement{},
	}
	for _, u := range slices.Concat(src.Unresolved, set.Unresolved) {
		x.Unresolved = append(x.Unresolved, unresolvedElement{
			u.Element, cmp.Or(u.Place.File, src.Input), u.Place.Line, u.Place.Column, u.Place.Offset, u.Reason,
		})
	}
	return x
}

// An unresolvedElement is an element of shipped code whose definition is not complete.
type unresolvedElement struct {
	Element string `json:"element"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Offset  int    `json:"offset"`
	Reason  string `json:"reason"`
}

// Definition is the text of a type, a service or a file.
type Definition struct {
	version

	// Element is a full name, or the path of a file.
	Element string `json:"element"`
	File    string `json:"file"`
	Text    string `json:"text"`
}

// DefinitionListing is a line of the list of what definitions have.
type DefinitionListing struct {
	version
	compare.Listing
}

// DefinitionHit is an element that a search found.
type DefinitionHit struct {
	version
	compare.Hit
}

// DefinitionRef is a field or a method that uses a type.
type DefinitionRef struct {
	version
	compare.Ref
}

// FieldJoin is a field number with the name that it has in JSON. Package align reads
// it back.
type FieldJoin struct {
	version
	align.Join
}

// FieldDoubt is field numbers and names that go together in more than one way.
// Package align reads it back.
type FieldDoubt struct {
	version
	align.Doubt
}
