package update

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/compare"
)

// An Op is what a Change does, such as adding an element.
type Op string

// The operations. Their texts are part of the contract with users: they change only compatibly.
const (
	// opAdd adds an element to the user's files.
	opAdd Op = "add"
	// opRename gives an element another name.
	opRename Op = "rename"
	// opRetype gives a field another type.
	opRetype Op = "retype"
	// opRelabel gives a field another label, such as repeated.
	opRelabel Op = "relabel"
	// opLastSeen adds a comment to an element that the source no longer has.
	opLastSeen Op = "last seen"
	// Conflict is a change that is not made, because the user has to decide.
	Conflict Op = "conflict"
)

// A Change is one modification of the user's .proto files, or a conflict that prevents one.
type Change struct {
	// Op is what the change does.
	Op Op `json:"change"`

	// Element is the full name of the element; for a rename, the old one.
	Element string `json:"element"`
	// Kind is the kind of the changed element.
	Kind compare.ElementKind `json:"kind"`
	// Number is the number of the field or enum value; 0 for other elements.
	Number int32 `json:"number,omitempty"`
	// Old is the declaration before the change, or "".
	Old string `json:"old,omitempty"`
	// New is the declaration after the change, or "".
	New string `json:"new,omitempty"`
	// File is the path of the .proto file that is changed.
	File string `json:"file,omitempty"`
	// Source is the name of the source that caused the change.
	Source string `json:"source"`
	// Note is the reason why a conflicting change was not made.
	Note string `json:"note,omitempty"`
}

// elementName returns the full name of d. For an enum value this includes the name of the enum.
func elementName(d protoreflect.Descriptor) string {
	if v, ok := d.(protoreflect.EnumValueDescriptor); ok {
		return string(v.Parent().FullName()) + "." + string(v.Name())
	}
	return string(d.FullName())
}

// kindOf returns the kind of the declaration d, such as a field.
func kindOf(d protoreflect.Descriptor) compare.ElementKind {
	switch d.(type) {
	case protoreflect.MethodDescriptor:
		return compare.MethodElement
	case protoreflect.ServiceDescriptor:
		return compare.ServiceElement
	case protoreflect.MessageDescriptor:
		return compare.MessageElement
	case protoreflect.EnumDescriptor:
		return compare.EnumElement
	case protoreflect.OneofDescriptor:
		return compare.OneofElement
	case protoreflect.EnumValueDescriptor:
		return compare.ValueElement
	}
	return compare.FieldElement
}
