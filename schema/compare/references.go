package compare

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// A Ref is a use of a message or enum type, by a field or a method.
type Ref struct {
	// Element is the full name of the field or method that uses the type.
	Element string `json:"element"`
	// Kind is FieldElement or MethodElement.
	Kind ElementKind `json:"kind"`

	// Number is the field number; 0 for a method.
	Number int32 `json:"number,omitempty"`
	// Label is the field's label, such as "repeated".
	Label string `json:"label,omitempty"`

	// Type is the type of a field, or the signature of a method.
	Type string `json:"type"`

	// Use is "request", "response" or "both" for a method, and "" for a field.
	Use string `json:"use,omitempty"`
	// File is the path of the file that declares the field or method.
	File string `json:"file"`
}

// Refs returns the fields and methods that use the message or enum fullName, in the order of files and
// declarations. Uses as the element of a list or the value of a map count.
func Refs(s *schema.Schema, fullName string) []Ref {
	full := protoreflect.FullName(fullName)
	refs := fieldRefs(s, func(f protoreflect.FieldDescriptor) bool {
		v := valueOf(f)
		return v.Message() != nil && v.Message().FullName() == full || v.Enum() != nil && v.Enum().FullName() == full
	})

	// One entry per method, even if it uses the type in both directions.
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

// RefsOfNumber returns the fields with the given number, of all messages.
func RefsOfNumber(s *schema.Schema, number int32) []Ref {
	return fieldRefs(s, func(f protoreflect.FieldDescriptor) bool { return int32(f.Number()) == number })
}

// fieldRefs returns the fields, of all messages, for which wanted is true.
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
