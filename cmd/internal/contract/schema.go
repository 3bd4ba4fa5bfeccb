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

// SchemaCheck is the output of `unwire schema check`: how far definitions explain captures. Package check
// reads this object back as the list of known findings.
type SchemaCheck struct {
	// escapedVersion adds the member v, the version number of the JSON format, and makes the encoder escape <, > and
	// & in strings.
	escapedVersion
	// Report is the result of the check; its fields become members of the JSON object.
	*check.Report
}

// FieldProposal is a field that captures contain and definitions do not declare.
type FieldProposal struct {
	// escapedVersion adds the member v, the version number of the JSON format, and makes the encoder escape <, > and
	// & in strings.
	escapedVersion
	// Proposal is the undeclared field with a proposed declaration; its fields become members of the JSON object.
	check.Proposal
}

// SchemaChange is a difference between two versions of definitions.
type SchemaChange struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Change is the difference; its fields become members of the JSON object.
	compare.Change

	// Captures are the addresses of the exchanges that contain the element.
	Captures []string `json:"captures,omitempty"`

	// Replays are the files of the experiments that use the changed element.
	Replays []string `json:"replays,omitempty"`

	// Proto is Outdated if the user's definitions agree with the old version, and missing otherwise.
	Proto string `json:"proto,omitempty"`
}

// Outdated is the value of SchemaChange.Proto.
const Outdated = "outdated"

// SchemaUpdate is a change of `unwire schema update` to .proto files, or a conflict that prevents one.
type SchemaUpdate struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Change is the change of a .proto file, or the conflict; its fields become members of the JSON object.
	update.Change
}

// SchemaMatch is a message or field in captured traffic, with the known types that fit its values.
type SchemaMatch struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Target is the field's message, or the method with its direction; "" if the inputs are files of
	// one message each.
	Target string `json:"target"`

	// Path is the field's path below Target; "" for the whole message.
	Path string `json:"path"`

	// Message is the full name of the best type; "" if no type matches.
	Message string `json:"message"`

	// Frames are the addresses of the first frames that contain the message or field.
	Frames []string `json:"frames"`

	// Result lists the known types that fit the values; its fields become members of the JSON object.
	*match.Result
}

// NewSchemaMatch builds the JSON object for a place and its candidate types.
func NewSchemaMatch(t *match.Target, r *match.Result) *SchemaMatch {
	return &SchemaMatch{Target: t.In, Path: t.Path, Message: string(r.FullName()), Frames: t.Frames, Result: r}
}

// SchemaExtraction counts the definitions extracted from one input.
type SchemaExtraction struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Input is the path of the input.
	Input string `json:"input"`

	// Form is what kind of input it is.
	Form string `json:"form"`

	// Messages is the number of messages.
	Messages int `json:"messages"`

	// Enums is the number of enums.
	Enums int `json:"enums"`

	// Services is the number of services.
	Services int `json:"services"`

	// Fields is the number of fields.
	Fields int `json:"fields"`

	// Unresolved are the elements whose definitions are incomplete.
	Unresolved []unresolvedElement `json:"unresolved"`
}

// NewSchemaExtraction builds the JSON object for one input; set must contain the definitions of that
// input alone.
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

// An unresolvedElement is an element of generated code whose definition could not be read completely.
type unresolvedElement struct {
	// Element is the full name of the element.
	Element string `json:"element"`

	// File is the path of the file, which can be inside an archive.
	File string `json:"file"`

	// Line is the line of the file; missing if not known.
	Line int `json:"line,omitempty"`

	// Column is the column; missing if not known.
	Column int `json:"column,omitempty"`

	// Offset is the offset in the file.
	Offset int `json:"offset"`

	// Reason is why the definition is incomplete.
	Reason string `json:"reason"`
}

// Definition is the text of the definition of a type or service, or of a whole file.
type Definition struct {
	// version adds the member v, the version number of the JSON format.
	version

	// Element is the full name of the element, or the path of a file.
	Element string `json:"element"`

	// File is the path of the file that declares the element.
	File string `json:"file"`

	// Text is the text in the .proto language.
	Text string `json:"text"`
}

// DefinitionListing is one line of `unwire schema ls`: an element of the definitions.
type DefinitionListing struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Listing is the element of the definitions; its fields become members of the JSON object.
	compare.Listing
}

// DefinitionHit is one element of the definitions that a search found.
type DefinitionHit struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Hit is the element that the search found; its fields become members of the JSON object.
	compare.Hit
}

// DefinitionRef is a field or a method that uses a type.
type DefinitionRef struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Ref is the field or method that uses the type; its fields become members of the JSON object.
	compare.Ref
}

// FieldJoin is a field number with the name that the field has in JSON. Package align reads this object
// back.
type FieldJoin struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Join is the field number with its JSON name; its fields become members of the JSON object.
	align.Join
}

// FieldDoubt is a set of field numbers and names that can be matched in more than one way. Package
// align reads this object back.
type FieldDoubt struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Doubt is the ambiguous set of field numbers and names; its fields become members of the JSON object.
	align.Doubt
}

// HistoryChange is a line of `unwire schema history`: what changed between two versions of a client.
type HistoryChange struct {
	// version adds the member v, the version number of the JSON format.
	version
	// Change is the difference between the two versions; its fields become members of the JSON object.
	history.Change
}
