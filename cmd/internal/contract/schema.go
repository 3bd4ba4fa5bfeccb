package contract

import (
	"cmp"
	"slices"

	"unwire/schema/align"
	"unwire/schema/check"
	"unwire/schema/compare"
	"unwire/schema/extract"
	"unwire/schema/history"
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

	// Replays are the files of the experiments that use the changed element.
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

// SchemaMatch is a message or field in captured traffic, with the known types that fit its values.
type SchemaMatch struct {
	version

	// Target is the field's message, or the method with its direction; "" if the inputs are files of
	// one message each.
	Target string `json:"target"`

	// Path is the field's path below Target; "" for all of a frame.
	Path string `json:"path"`

	// Message is the best candidate's full name; "" without a match.
	Message string `json:"message"`

	// Frames are the addresses of the first frames that contain the message or field.
	Frames []string `json:"frames"`

	*match.Result
}

// NewSchemaMatch builds the JSON object for a place and its candidate types.
func NewSchemaMatch(t *match.Target, r *match.Result) *SchemaMatch {
	return &SchemaMatch{Target: t.In, Path: t.Path, Message: string(r.FullName()), Frames: t.Frames, Result: r}
}

// SchemaExtraction counts the definitions extracted from one input.
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

// NewSchemaExtraction counts the definitions extracted from one input; set must contain only that
// input.
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

	// Element is the full name of the element, or the path of a file.
	Element string `json:"element"`
	File    string `json:"file"`
	Text    string `json:"text"`
}

// DefinitionListing is one line of `unwire schema ls`: an element of the definitions.
type DefinitionListing struct {
	version
	compare.Listing
}

// DefinitionHit is one element of the definitions that a search found.
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

// FieldDoubt is a set of field numbers and names that can be matched in more than one way. Package
// align reads this object back.
type FieldDoubt struct {
	version
	align.Doubt
}

// HistoryChange is a line of schema history: what changed between two versions of a client.
type HistoryChange struct {
	version
	history.Change
}
