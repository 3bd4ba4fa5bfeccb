package schema

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
)

// Names finds the declared field of each node of t, whose root is of type md.
//
// Shape: indexed like t.Nodes; nil for the root, for garbage, for fields that
// md has not, and for what lies below a field that is not declared as a
// message. A field keeps its name where its wire type contradicts the
// declaration (see WireFits), but nothing below it is named.
func Names(t *wire.Tree, md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	names := make([]protoreflect.FieldDescriptor, len(t.Nodes))
	if md == nil || len(t.Nodes) == 0 {
		return names
	}
	type place struct {
		node int32
		md   protoreflect.MessageDescriptor
	}
	for work := []place{{0, md}}; len(work) > 0; {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		for c := range t.Children(p.node) {
			n := &t.Nodes[c]
			if n.Type == wire.Garbage || n.Number > maxFieldNumber {
				continue
			}
			fd := p.md.Fields().ByNumber(protoreflect.FieldNumber(n.Number))
			if fd == nil {
				continue
			}
			names[c] = fd
			if sub := fd.Message(); sub != nil && n.First != wire.None && WireFits(fd, n.Type) {
				work = append(work, place{c, sub})
			}
		}
	}
	return names
}

// maxFieldNumber is the greatest number that a field can have.
const maxFieldNumber = 1<<29 - 1

// WireFits reports whether a field declared as fd may be written with the wire
// type typ: lists of numbers may be packed or not, whatever they are declared.
func WireFits(fd protoreflect.FieldDescriptor, typ wire.Type) bool {
	return typ == wireOf(fd.Kind()) || typ == wire.Len && packable(fd)
}

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
