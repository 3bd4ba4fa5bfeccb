package compare

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// A Ref is a place where something is used: a field or a method.
type Ref struct {
	Element string      `json:"element"`
	Kind    ElementKind `json:"kind"`

	// of a field
	Number int32  `json:"number,omitempty"`
	Label  string `json:"label,omitempty"`

	// of a field; a method's request and response
	Type string `json:"type"`

	// of a method: request, response or both
	Use  string `json:"use,omitempty"`
	File string `json:"file"`
}

// Refs returns the fields and methods that use a message or an enum, in the
// order of files and declarations. Elements of lists and values of maps count.
func Refs(s *schema.Schema, fullName string) []Ref {
	full := protoreflect.FullName(fullName)
	refs := fieldRefs(s, func(f protoreflect.FieldDescriptor) bool {
		v := valueOf(f)
		return v.Message() != nil && v.Message().FullName() == full || v.Enum() != nil && v.Enum().FullName() == full
	})
	for sd := range s.Services() {
		for i := range sd.Methods().Len() {
			m := sd.Methods().Get(i)
			use := ""
			switch in, out := m.Input().FullName() == full, m.Output().FullName() == full; {
			case in && out:
				use = "both"
			case in:
				use = "request"
			case out:
				use = "response"
			default:
				continue
			}
			refs = append(refs, Ref{Element: name(m), Kind: MethodElement, Type: signature(m), Use: use, File: sd.ParentFile().Path()})
		}
	}
	return refs
}

// RefsOfNumber returns the fields with a number, of all messages.
func RefsOfNumber(s *schema.Schema, number int32) []Ref {
	return fieldRefs(s, func(f protoreflect.FieldDescriptor) bool { return int32(f.Number()) == number })
}

func fieldRefs(s *schema.Schema, wanted func(protoreflect.FieldDescriptor) bool) []Ref {
	var refs []Ref
	for m := range s.Messages() {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if wanted(f) {
				refs = append(refs, Ref{
					Element: name(f), Kind: FieldElement, Number: int32(f.Number()), Label: labelWord(f), Type: TypeOf(f), File: m.ParentFile().Path(),
				})
			}
		}
	}
	return refs
}
