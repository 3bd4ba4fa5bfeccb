package compare

import (
	"cmp"
	"slices"
	"strings"
)

// A ChangeKind is a kind of difference between two versions of definitions: added, removed, and so on.
type ChangeKind string

// The kinds of changes, in the order in which a changelog lists them.
const (
	// Added is an element that only the new version has.
	Added ChangeKind = "added"
	// Removed is an element that only the old version has.
	Removed ChangeKind = "removed"
	// renamed is an element with another name in the new version.
	renamed ChangeKind = "renamed"
	// retyped is a field or method with another type in the new version.
	retyped ChangeKind = "retyped"

	// relabelled is a field or method with another label: singular, optional, repeated, map, oneof, packed,
	// streaming.
	relabelled ChangeKind = "relabelled"
	// renumbered is a field or enum value with another number in the new version.
	renumbered ChangeKind = "renumbered"

	// moved is a type that is in another package in the new version, or was moved into or out of a message.
	moved ChangeKind = "moved"
)

// An ElementKind is the kind of a declaration, such as message or field.
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

// A Break is the worst incompatibility that a change between two versions causes. BreaksWire: programs with the
// old and the new version misread each other's binary messages. BreaksJSON: the same for JSON. BreaksSource:
// source code that was written for the old version does not compile, or means something else, with the new one.
type Break string

const (
	// BreaksNothing means that the versions are compatible.
	BreaksNothing Break = ""
	// BreaksSource means that source code may have to be changed; encoded messages are compatible.
	BreaksSource Break = "source"
	// BreaksJSON means that JSON and source code are incompatible; the binary format is compatible.
	BreaksJSON Break = "json"
	// BreaksWire means that the binary format is incompatible, and with it JSON and source code.
	BreaksWire Break = "wire"
)

// severity returns the rank of b, from 0 (harmless) to 3 (worst).
func (b Break) severity() int {
	return slices.Index([]Break{BreaksNothing, BreaksSource, BreaksJSON, BreaksWire}, b)
}

// worse returns the more severe of two incompatibilities.
func worse(a, b Break) Break {
	if a.severity() >= b.severity() {
		return a
	}
	return b
}

// A Change is one difference between two versions of definitions.
//
// Shape: Element is the full name in the old version, or in the new version if the element was added. For other
// changes, Old and New are the two states: names (full names for types and services), types, labels or numbers.
// For an added element New is its short declaration, for a removed one Old is.
type Change struct {
	// Change is the kind of the change.
	Change ChangeKind `json:"change"`
	// Element is the full name of the changed element, in the old version if it has it.
	Element string `json:"element"`
	// Old is the state in the old version: a name, type, label, number or, for a removed element, its
	// declaration. "" if the element was added.
	Old string `json:"old"`
	// New is the state in the new version, as Old; "" if the element was removed.
	New string `json:"new"`
	// Breaks is the most severe incompatibility that the change causes.
	Breaks Break `json:"breaks"`
	// Kind is the kind of the changed element, such as a field.
	Kind ElementKind `json:"kind"`

	// Renamed is the full name of the element in the new version if it differs.
	Renamed string `json:"renamed,omitempty"`
	// Note explains the change, or is "".
	Note string `json:"note,omitempty"`
}

// String formats the change in one line.
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

// sortChanges sorts changes by kind of element, then by kind of change, then by name.
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
