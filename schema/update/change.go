package update

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema/compare"
)

// An Op says what a change does.
type Op string

const (
	opAdd      Op = "add"
	opRename   Op = "rename"
	opRetype   Op = "retype"
	opRelabel  Op = "relabel"
	opLastSeen Op = "last seen"
	Conflict   Op = "conflict"
)

// A Change is one thing that an update does, or that it does not do before
// somebody decides: a conflict.
type Change struct {
	Op Op `json:"change"`

	// full name, of what is renamed the one it has so far
	Element string              `json:"element"`
	Kind    compare.ElementKind `json:"kind"`
	Number  int32               `json:"number,omitempty"`
	Old     string              `json:"old,omitempty"`
	New     string              `json:"new,omitempty"`
	File    string              `json:"file,omitempty"`
	Source  string              `json:"source"`
	Note    string              `json:"note,omitempty"`
}

// elementName is a full name, of an enum's value with the enum in it.
func elementName(d protoreflect.Descriptor) string {
	if v, ok := d.(protoreflect.EnumValueDescriptor); ok {
		return string(v.Parent().FullName()) + "." + string(v.Name())
	}
	return string(d.FullName())
}

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
