package schema

import "google.golang.org/protobuf/reflect/protoreflect"

// UnknownIn names the type of m or of a message in it that has unknown fields;
// "" if none has.
func UnknownIn(m protoreflect.Message) (where string) {
	if len(m.GetUnknown()) > 0 {
		return string(m.Descriptor().FullName())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				where = UnknownIn(v.Message())
				return where == ""
			})
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := 0; i < v.List().Len() && where == ""; i++ {
				where = UnknownIn(v.List().Get(i).Message())
			}
		default:
			where = UnknownIn(v.Message())
		}
		return where == ""
	})
	return where
}
