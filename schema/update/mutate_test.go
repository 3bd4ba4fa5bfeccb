package update_test

import (
	"fmt"
	"math/rand"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// A mutator makes a later version of a file's descriptor.
type mutator struct {
	r    *rand.Rand
	file *descriptorpb.FileDescriptorProto
	n    int
	salt int      // names of files do not meet
	all  []string // messages that a field may have
}

func (m *mutator) name(prefix string) *string {
	m.n++
	return proto.String(fmt.Sprintf("%s%dq%d", prefix, m.n, m.salt))
}

// mutate adds fields, types, values and methods at random.
func mutate(r *rand.Rand, file *descriptorpb.FileDescriptorProto) *descriptorpb.FileDescriptorProto {
	m := &mutator{r: r, file: proto.CloneOf(file), salt: r.Intn(1_000_000)}
	scope := ""
	if p := file.GetPackage(); p != "" {
		scope = "." + p
	}
	for _, d := range m.file.MessageType {
		m.collect(scope, d)
	}
	if r.Intn(2) == 0 {
		d := &descriptorpb.DescriptorProto{Name: m.name("Fresh")}
		m.all = append(m.all, scope+"."+d.GetName())
		for range r.Intn(4) {
			m.field(d)
		}
		m.file.MessageType = append(m.file.MessageType, d)
	}
	for _, d := range m.file.MessageType {
		m.message(d)
	}
	for _, e := range m.file.EnumType {
		m.enum(e)
	}
	if r.Intn(3) == 0 {
		name := m.name("FreshEnum")
		m.file.EnumType = append(m.file.EnumType, &descriptorpb.EnumDescriptorProto{Name: name, Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: proto.String(*name + "_A"), Number: proto.Int32(0)}, {Name: proto.String(*name + "_B"), Number: proto.Int32(5)},
		}})
	}
	if len(m.all) > 0 {
		for _, s := range m.file.Service {
			m.method(s)
		}
		if r.Intn(3) == 0 {
			s := &descriptorpb.ServiceDescriptorProto{Name: m.name("FreshService")}
			m.method(s)
			m.file.Service = append(m.file.Service, s)
		}
	}
	return m.file
}

func (m *mutator) collect(scope string, d *descriptorpb.DescriptorProto) {
	if d.GetOptions().GetMapEntry() || d.GetOptions().GetMessageSetWireFormat() {
		return
	}
	full := scope + "." + d.GetName()
	m.all = append(m.all, full)
	for _, n := range d.NestedType {
		m.collect(full, n)
	}
}

func (m *mutator) message(d *descriptorpb.DescriptorProto) {
	if d.GetOptions().GetMapEntry() || d.GetOptions().GetMessageSetWireFormat() {
		return
	}
	for range m.r.Intn(3) {
		m.field(d)
	}
	if m.r.Intn(5) == 0 {
		m.oneof(d)
	}
	if m.r.Intn(6) == 0 {
		n := &descriptorpb.DescriptorProto{Name: m.name("Nested")}
		m.field(n)
		d.NestedType = append(d.NestedType, n)
	}
	for _, n := range d.NestedType {
		m.message(n)
	}
	for _, e := range d.EnumType {
		m.enum(e)
	}
}

// free is a number that a field of d can have.
func (m *mutator) free(d *descriptorpb.DescriptorProto) int32 {
	used := func(n int32) bool {
		for _, f := range d.Field {
			if f.GetNumber() == n {
				return true
			}
		}
		for _, r := range d.ReservedRange {
			if n >= r.GetStart() && n < r.GetEnd() {
				return true
			}
		}
		for _, r := range d.ExtensionRange {
			if n >= r.GetStart() && n < r.GetEnd() {
				return true
			}
		}
		return n >= 19000 && n <= 19999
	}
	n := int32(1 + m.r.Intn(40))
	for used(n) {
		n++
	}
	return n
}

func (m *mutator) field(d *descriptorpb.DescriptorProto) *descriptorpb.FieldDescriptorProto {
	n := m.free(d)
	if n > 1<<29-1 {
		return nil
	}
	types := []descriptorpb.FieldDescriptorProto_Type{
		descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_BYTES,
		descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_SINT64, descriptorpb.FieldDescriptorProto_TYPE_FIXED32,
	}
	f := &descriptorpb.FieldDescriptorProto{Name: m.name("zz_added_"), Number: &n, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: types[m.r.Intn(len(types))].Enum()}
	if len(m.all) > 0 && m.r.Intn(3) == 0 {
		f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), &m.all[m.r.Intn(len(m.all))]
	}
	if m.r.Intn(4) == 0 {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	if m.r.Intn(6) == 0 {
		f.Options = &descriptorpb.FieldOptions{Deprecated: proto.Bool(true)}
	}
	if n := m.realOneofs(d); len(n) > 0 && f.GetLabel() != descriptorpb.FieldDescriptorProto_LABEL_REPEATED && m.r.Intn(2) == 0 {
		f.OneofIndex = &n[m.r.Intn(len(n))]
	}
	put(d, f)
	return f
}

// put declares a field, behind the others of its oneof.
func put(d *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto) {
	at := len(d.Field)
	for i, other := range d.Field {
		if f.OneofIndex != nil && other.OneofIndex != nil && other.GetOneofIndex() == f.GetOneofIndex() {
			at = i + 1
		}
	}
	d.Field = slices.Insert(d.Field, at, f)
}

// realOneofs are the oneofs that are not of an optional field.
func (m *mutator) realOneofs(d *descriptorpb.DescriptorProto) []int32 {
	synthetic := map[int32]bool{}
	for _, f := range d.Field {
		if f.GetProto3Optional() {
			synthetic[f.GetOneofIndex()] = true
		}
	}
	var list []int32
	for i := range d.OneofDecl {
		if !synthetic[int32(i)] {
			list = append(list, int32(i))
		}
	}
	return list
}

func (m *mutator) oneof(d *descriptorpb.DescriptorProto) {
	if len(m.realOneofs(d)) < len(d.OneofDecl) || m.free(d) > 1<<29-1 {
		return // those of optional fields have to be last
	}
	d.OneofDecl = append(d.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: m.name("zz_pick")})
	for range 1 + m.r.Intn(2) {
		d.Field = append(d.Field, &descriptorpb.FieldDescriptorProto{
			Name: m.name("zz_choice_"), Number: proto.Int32(m.free(d)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), OneofIndex: proto.Int32(int32(len(d.OneofDecl) - 1)),
		})
	}
}

func (m *mutator) enum(e *descriptorpb.EnumDescriptorProto) {
	n := int32(1)
	for _, v := range e.Value {
		n = max(n, v.GetNumber()+1)
	}
	for _, r := range e.ReservedRange {
		if r.GetEnd() >= n {
			return
		}
	}
	if m.r.Intn(2) == 0 {
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: m.name("ZZ_VALUE_NEW"), Number: &n})
	}
	if m.r.Intn(4) == 0 {
		of := e.Value[m.r.Intn(len(e.Value))]
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: m.name("ZZ_ALIAS_NEW"), Number: of.Number})
		if e.Options == nil {
			e.Options = &descriptorpb.EnumOptions{}
		}
		e.Options.AllowAlias = proto.Bool(true)
	}
}

func (m *mutator) method(s *descriptorpb.ServiceDescriptorProto) {
	for range m.r.Intn(3) {
		s.Method = append(s.Method, &descriptorpb.MethodDescriptorProto{
			Name: m.name("ZzCall"), InputType: &m.all[m.r.Intn(len(m.all))], OutputType: &m.all[m.r.Intn(len(m.all))], ServerStreaming: proto.Bool(m.r.Intn(2) == 0),
		})
	}
}
