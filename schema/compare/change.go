package compare

import (
	"cmp"
	"slices"
	"strings"
)

// A ChangeKind says what happened to an element between two versions.
type ChangeKind string

const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	renamed ChangeKind = "renamed"
	retyped ChangeKind = "retyped"

	// singular, optional, repeated, map, oneof, packed, streaming
	relabelled ChangeKind = "relabelled"
	renumbered ChangeKind = "renumbered"

	// to another package, or into or out of another message
	moved ChangeKind = "moved"
)

// An ElementKind says what an element is.
type ElementKind string

// The kinds of elements, in the order in which a changelog lists them.
const (
	MethodElement  ElementKind = "method"
	ServiceElement ElementKind = "service"
	MessageElement ElementKind = "message"
	EnumElement    ElementKind = "enum"
	OneofElement   ElementKind = "oneof"
	FieldElement   ElementKind = "field"
	ValueElement   ElementKind = "value"
)

// A Break says what a change breaks at worst: who speaks the old version and
// who speaks the new one misread each other on the wire, or in JSON, or code
// written against the old one does not compile or mean the same with the new.
type Break string

const (
	BreaksNothing Break = ""
	BreaksSource  Break = "source"
	BreaksJSON    Break = "json" // and source
	BreaksWire    Break = "wire" // and JSON, and source
)

func (b Break) severity() int {
	return slices.Index([]Break{BreaksNothing, BreaksSource, BreaksJSON, BreaksWire}, b)
}

func worse(a, b Break) Break {
	if a.severity() >= b.severity() {
		return a
	}
	return b
}

// A Change is one difference between two versions of definitions.
//
// Shape: Element is the full name, in the new version of what was added and in
// the old one otherwise. Old and New are what the change is about: names of
// what was renamed (full ones of types and services), types, labels, numbers;
// of what was added or removed, the declaration in short.
type Change struct {
	Change  ChangeKind  `json:"change"`
	Element string      `json:"element"`
	Old     string      `json:"old"`
	New     string      `json:"new"`
	Breaks  Break       `json:"breaks"`
	Kind    ElementKind `json:"kind"`

	// the element's full name in the new version, where that is another
	Renamed string `json:"renamed,omitempty"`
	Note    string `json:"note,omitempty"`
}

// String is the change on one line.
func (c Change) String() string {
	var b strings.Builder
	b.WriteString(string(c.Change) + " " + string(c.Kind) + " " + c.Element)
	switch {
	case c.Change == Added && c.New != "":
		b.WriteString(": " + c.New)
	case c.Change == Removed && c.Old != "":
		b.WriteString(": " + c.Old)
	case c.Old != "" || c.New != "":
		b.WriteString(": " + c.Old + " -> " + c.New)
	}
	if c.Breaks != "" {
		b.WriteString(" (breaks " + string(c.Breaks) + ")")
	}
	if c.Note != "" {
		b.WriteString("; " + c.Note)
	}
	return b.String()
}

// sortChanges puts a changelog in order: kinds of elements, new ones first of
// each, then by name.
func sortChanges(list []Change) {
	kinds := []ElementKind{MethodElement, ServiceElement, MessageElement, EnumElement, OneofElement, FieldElement, ValueElement}
	changes := []ChangeKind{Added, Removed, renamed, moved, retyped, relabelled, renumbered}
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(slices.Index(changes, a.Change), slices.Index(changes, b.Change)),
			strings.Compare(a.Element, b.Element),
			strings.Compare(a.New, b.New),
		)
	})
}
