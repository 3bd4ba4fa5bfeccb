package schema

import "google.golang.org/protobuf/reflect/protoreflect"

// TypeWithUnknownFields returns the full name of the first message type, of m or of a message nested in it, that
// has unknown fields. It returns "" if there are none.
func TypeWithUnknownFields(m protoreflect.Message) (where string) {
	if len(m.GetUnknown()) > 0 {
		return string(m.Descriptor().FullName())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				where = TypeWithUnknownFields(v.Message())
				return where == ""
			})
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := 0; i < v.List().Len() && where == ""; i++ {
				where = TypeWithUnknownFields(v.List().Get(i).Message())
			}
		default:
			where = TypeWithUnknownFields(v.Message())
		}
		return where == ""
	})
	return where
}
