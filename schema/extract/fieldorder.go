package extract

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// arrange puts a message's parts into the order in which a compiler finds them
// in the text: the fields of a oneof together, oneofs by their first field with
// those of optional fields last, and the types that fields declare (entries of
// maps, groups) after the others.
func arrange(full string, d *descriptorpb.DescriptorProto) {
	arrangeFields(d)
	for _, n := range d.NestedType {
		arrange(full+"."+n.GetName(), n)
	}
	arrangeTypes(full, d)
}

// arrangeFields puts the fields of a oneof together, and oneofs by their first field
// with those of optional fields last.
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
		case f.OneofIndex == nil || int(i) >= len(d.OneofDecl) || i < 0:
			f.OneofIndex, f.Proto3Optional = nil, nil
			fields = append(fields, f)
		case f.GetProto3Optional():
			fields, optional = append(fields, f), append(optional, f)
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

// arrangeTypes puts the types that fields declare after the others, in the order of
// the fields.
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
			if n == nil || special[n] || !n.GetOptions().GetMapEntry() && f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_GROUP {
				continue
			}
			special[n] = true
			byField = append(byField, n)
		}
	}

	var types []*descriptorpb.DescriptorProto
	for _, n := range d.NestedType {
		// An entry that no field uses is a map's no more.
		if !special[n] && !n.GetOptions().GetMapEntry() {
			types = append(types, n)
		}
	}
	d.NestedType = append(types, byField...)
}
