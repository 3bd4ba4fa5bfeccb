package extract

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/jsonname"
)

// covers reports whether x declares everything that y declares, because it is a later version or has more
// detail. A declaration from the code of a script never covers one from a descriptor, because code shows less.
func (x *element) covers(y *element) bool {
	if x.guessed && !y.guessed {
		return false
	}
	// Code does not show the syntax, options, or labels reliably.
	loose := y.guessed
	if !loose && (x.syntax.name != y.syntax.name || x.syntax.features != y.syntax.features) {
		return false
	}
	switch d := x.msg.(type) {
	case *descriptorpb.DescriptorProto:
		other, ok := y.msg.(*descriptorpb.DescriptorProto)
		return ok && coversMessage(d, other, loose)
	case *descriptorpb.EnumDescriptorProto:
		other, ok := y.msg.(*descriptorpb.EnumDescriptorProto)
		return ok && coversEnum(d, other)
	case *descriptorpb.ServiceDescriptorProto:
		other, ok := y.msg.(*descriptorpb.ServiceDescriptorProto)
		return ok && coversService(d, other, loose)
	}
	return false
}

// coversMessage is covers for messages. loose is set if y was derived from code, which shows fewer properties.
func coversMessage(x, y *descriptorpb.DescriptorProto, loose bool) bool {
	for _, g := range y.Field {
		i := slices.IndexFunc(x.Field, func(f *descriptorpb.FieldDescriptorProto) bool { return f.GetNumber() == g.GetNumber() })
		if i < 0 || !coversField(x.Field[i], oneofOf(x, x.Field[i]), g, oneofOf(y, g), loose) {
			return false
		}
	}
	for _, n := range y.NestedType {
		i := slices.IndexFunc(x.NestedType, func(m *descriptorpb.DescriptorProto) bool { return m.GetName() == n.GetName() })
		if i < 0 || !coversMessage(x.NestedType[i], n, loose) {
			return false
		}
	}
	for _, e := range y.EnumType {
		i := slices.IndexFunc(x.EnumType, func(m *descriptorpb.EnumDescriptorProto) bool { return m.GetName() == e.GetName() })
		if i < 0 || !coversEnum(x.EnumType[i], e) {
			return false
		}
	}
	return proto.Equal(x.Options, y.Options) || y.Options == nil || loose
}

// oneofOf returns the name of the oneof that contains a field, or "".
func oneofOf(m *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto) string {
	if i := f.OneofIndex; i != nil && 0 <= *i && int(*i) < len(m.OneofDecl) {
		return m.OneofDecl[*i].GetName()
	}
	return ""
}

// coversField is covers for fields. fOneof and gOneof are the names of their oneofs, or "". loose is as in
// coversMessage.
func coversField(f *descriptorpb.FieldDescriptorProto, fOneof string, g *descriptorpb.FieldDescriptorProto, gOneof string, loose bool) bool {
	repeated := func(f *descriptorpb.FieldDescriptorProto) bool {
		return f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	}
	// Code shows the JSON name, and enums as numbers.
	if loose {
		if jsonname.Of(f.GetName()) != jsonname.Of(g.GetName()) || repeated(f) != repeated(g) {
			return false
		}
		if g.GetType() == descriptorpb.FieldDescriptorProto_TYPE_INT32 && f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_ENUM {
			return true
		}
		return f.GetType() == g.GetType() && f.GetTypeName() == g.GetTypeName()
	}
	// The index of a oneof depends on the order, so the names are compared instead.
	f, g = proto.Clone(f).(*descriptorpb.FieldDescriptorProto), proto.Clone(g).(*descriptorpb.FieldDescriptorProto)
	f.OneofIndex, g.OneofIndex = nil, nil
	// A later version may have added options, such as deprecated.
	if g.Options == nil {
		f.Options = nil
	}
	return fOneof == gOneof && proto.Equal(f, g)
}

// coversEnum is covers for enums.
func coversEnum(x, y *descriptorpb.EnumDescriptorProto) bool {
	for _, v := range y.Value {
		if !slices.ContainsFunc(x.Value, func(w *descriptorpb.EnumValueDescriptorProto) bool {
			return w.GetName() == v.GetName() && w.GetNumber() == v.GetNumber()
		}) {
			return false
		}
	}
	return true
}

// coversService is covers for services. loose is as in coversMessage.
func coversService(x, y *descriptorpb.ServiceDescriptorProto, loose bool) bool {
	for _, n := range y.Method {
		i := slices.IndexFunc(x.Method, func(m *descriptorpb.MethodDescriptorProto) bool { return m.GetName() == n.GetName() })
		if i < 0 {
			return false
		}
		m := x.Method[i]
		if m.GetInputType() != n.GetInputType() || m.GetOutputType() != n.GetOutputType() {
			return false
		}
		if !loose && (m.GetClientStreaming() != n.GetClientStreaming() || m.GetServerStreaming() != n.GetServerStreaming()) {
			return false
		}
	}
	return true
}
