package extract

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// arrange sorts the parts of the message full as compilers order them: the fields of a oneof are adjacent;
// oneofs are ordered by their first field, with the synthetic ones last; types that fields declare (map
// entries, groups) follow all other nested types.
func arrange(full string, d *descriptorpb.DescriptorProto) {
	arrangeFields(d)
	for _, n := range d.NestedType {
		arrange(full+"."+n.GetName(), n)
	}
	arrangeTypes(full, d)
}

// arrangeFields makes the fields of a oneof adjacent and orders the oneofs.
func arrangeFields(d *descriptorpb.DescriptorProto) {
	byOneof := map[int32][]*descriptorpb.FieldDescriptorProto{}
	for _, f := range d.Field {
		if f.OneofIndex != nil {
			byOneof[f.GetOneofIndex()] = append(byOneof[f.GetOneofIndex()], f)
		}
	}

	var fields, optional []*descriptorpb.FieldDescriptorProto
	var oneofs []*descriptorpb.OneofDescriptorProto
	done := map[int32]bool{}
	for _, f := range d.Field {
		i := f.GetOneofIndex()
		switch {
		// The field belongs to no oneof, or to one that does not exist.
		case f.OneofIndex == nil || int(i) >= len(d.OneofDecl) || i < 0:
			f.OneofIndex, f.Proto3Optional = nil, nil
			fields = append(fields, f)
		case f.GetProto3Optional():
			fields, optional = append(fields, f), append(optional, f)
		// The first member brings all others.
		case !done[i]:
			done[i] = true
			fields = append(fields, byOneof[i]...)
			oneofs = append(oneofs, d.OneofDecl[i])
			for _, x := range byOneof[i] {
				x.OneofIndex = proto.Int32(int32(len(oneofs)) - 1)
			}
		}
	}

	for _, f := range optional {
		oneofs = append(oneofs, d.OneofDecl[f.GetOneofIndex()])
		f.OneofIndex = proto.Int32(int32(len(oneofs)) - 1)
	}
	d.Field, d.OneofDecl = fields, oneofs
}

// arrangeTypes moves the types that fields declare (map entries, groups) behind the other nested types, in the
// order of the fields.
func arrangeTypes(full string, d *descriptorpb.DescriptorProto) {
	nested := map[string]*descriptorpb.DescriptorProto{}
	for _, n := range d.NestedType {
		nested["."+full+"."+n.GetName()] = n
	}

	var byField []*descriptorpb.DescriptorProto
	special := map[*descriptorpb.DescriptorProto]bool{}
	for _, list := range [][]*descriptorpb.FieldDescriptorProto{d.Field, d.Extension} {
		for _, f := range list {
			n := nested[f.GetTypeName()]
			// The type of the field is not declared by the field itself.
			if n == nil || special[n] || !n.GetOptions().GetMapEntry() && f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_GROUP {
				continue
			}
			special[n] = true
			byField = append(byField, n)
		}
	}

	var types []*descriptorpb.DescriptorProto
	for _, n := range d.NestedType {
		// A map entry that no field uses is left over from a field that was changed.
		if !special[n] && !n.GetOptions().GetMapEntry() {
			types = append(types, n)
		}
	}
	d.NestedType = append(types, byField...)
}
