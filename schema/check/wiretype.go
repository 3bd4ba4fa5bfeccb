package check

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// maxFieldNumber is the greatest field number that protobuf allows.
const maxFieldNumber = 1<<29 - 1

// Packable reports whether fd is a repeated field whose elements may be packed.
func Packable(fd protoreflect.FieldDescriptor) bool {
	return fd.IsList() && WireTypeOf(fd.Kind()) != wire.Len && WireTypeOf(fd.Kind()) != wire.StartGroup
}

// WireTypeOf returns the wire type of a single value of a declared kind.
func WireTypeOf(k protoreflect.Kind) wire.Type {
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
