package check

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// maxFieldNumber is the greatest number that a field can have.
const maxFieldNumber = 1<<29 - 1

// Packable reports whether fd is a list whose elements may be packed.
func Packable(fd protoreflect.FieldDescriptor) bool {
	return fd.IsList() && WireOf(fd.Kind()) != wire.Len && WireOf(fd.Kind()) != wire.StartGroup
}

// WireOf is the wire type of one value of the declared kind.
func WireOf(k protoreflect.Kind) wire.Type {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return wire.Len
	case protoreflect.GroupKind:
		return wire.StartGroup
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return wire.I32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return wire.I64
	}
	return wire.Varint
}
