package message

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// value converts a string, number, enum number, bool, bytes or Message to a protobuf value of the
// field's type.
func value(fd protoreflect.FieldDescriptor, v any) protoreflect.Value {
	switch v := v.(type) {
	case Message:
		return protoreflect.ValueOfMessage(v.Message)
	case string:
		return protoreflect.ValueOfString(strings.ToValidUTF8(v, "\uFFFD"))
	case int:
		return number(fd, int64(v))
	case protoreflect.EnumNumber:
		return protoreflect.ValueOfEnum(v)
	}
	return protoreflect.ValueOf(v)
}

// number converts n to the field's integer or enum type. It panics for fields of other types.
func number(fd protoreflect.FieldDescriptor, n int64) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n)) //nolint:gosec
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n)) //nolint:gosec
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n)) //nolint:gosec
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)) //nolint:gosec
	}
	panic(fmt.Sprintf("agent: %s is no number", fd.FullName()))
}

// CopyCommon copies the scalar fields that both messages have under the same name and with the same
// type. It is used for results that repeat some arguments, such as the path.
func CopyCommon(dst, src Message) {
	src.Range(func(from protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to := dst.Descriptor().Fields().ByName(from.Name())
		if to != nil && to.Kind() == from.Kind() && to.Message() == nil && to.Enum() == nil && to.Cardinality() == from.Cardinality() && !to.IsMap() {
			dst.Message.Set(to, v)
		}
		return true
	})
}

// MapKey returns the protobuf map key for a string.
func MapKey(s string) protoreflect.MapKey {
	return value(nil, s).MapKey()
}

// ValueOf returns the protobuf value for a message, for use as a value in a map.
func ValueOf(m Message) protoreflect.Value { return protoreflect.ValueOfMessage(m.Message) }
