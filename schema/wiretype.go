package schema

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// maxFieldNumber is the greatest number that a field can have.
const maxFieldNumber = 1<<29 - 1

// packable reports whether fd is a list whose elements may be packed.
func packable(fd protoreflect.FieldDescriptor) bool {
	return fd.IsList() && wireOf(fd.Kind()) != wire.Len && wireOf(fd.Kind()) != wire.StartGroup
}

// wireOf is the wire type of one value of the declared kind.
func wireOf(k protoreflect.Kind) wire.Type {
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
