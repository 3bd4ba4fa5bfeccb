package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/infer"
)

const (
	seedsOfChanges = 400
	changesEach    = 7
)

// A history is a random schema with what was done to it.
type history struct {
	r        *rand.Rand
	old, now *descriptorpb.FileDescriptorSet
	want     []string
	touched  map[string]bool // of now: what may not be changed again
	serial   int
}

var (
	nouns   = strings.Fields("user order item price token model stream chunk answer query error file path range state config option cursor agent tool result image block node edge label score budget policy session region account invoice parcel route vehicle driver signal sensor reading batch epoch layer weight kernel shard bucket object tenant secret lease quota limit event trace metric alert rule filter widget panel page theme font color")
	scalars = []descriptorpb.FieldDescriptorProto_Type{
		descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_INT64, descriptorpb.FieldDescriptorProto_TYPE_STRING,
		descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BYTES, descriptorpb.FieldDescriptorProto_TYPE_BOOL,
		descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_UINT32, descriptorpb.FieldDescriptorProto_TYPE_SINT32,
		descriptorpb.FieldDescriptorProto_TYPE_FIXED32,
	}
)

const (
	typeMessage = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	typeEnum    = descriptorpb.FieldDescriptorProto_TYPE_ENUM
)

func (h *history) word() string {
	h.serial++
	return fmt.Sprintf("%s_%s%d", nouns[h.r.IntN(len(nouns))], nouns[h.r.IntN(len(nouns))], h.serial)
}

func (h *history) typeName() string {
	h.serial++
	a, b := nouns[h.r.IntN(len(nouns))], nouns[h.r.IntN(len(nouns))]
	return strings.ToUpper(a[:1]) + a[1:] + strings.ToUpper(b[:1]) + b[1:] + fmt.Sprint(h.serial)
}

// newHistory makes two packages of messages, enums and a service.
func newHistory(seed uint64) *history {
	h := &history{r: rand.New(rand.NewPCG(seed, 3)), touched: map[string]bool{}}
	set := &descriptorpb.FileDescriptorSet{}
	var types, enums []string
	for i, pkg := range []string{"first.v1", "second.v1"} {
		f := &descriptorpb.FileDescriptorProto{Name: proto.String(pkg + ".proto"), Package: proto.String(pkg), Syntax: proto.String("proto3")}
		if i == 1 {
			f.Dependency = []string{"first.v1.proto"}
		}
		for range 3 {
			e := &descriptorpb.EnumDescriptorProto{Name: proto.String(h.typeName())}
			for n := range 3 + h.r.IntN(5) {
				e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(strings.ToUpper(h.word())), Number: proto.Int32(int32(n))})
			}
			f.EnumType = append(f.EnumType, e)
			enums = append(enums, "."+pkg+"."+e.GetName())
		}
		for range 12 {
			m := h.message(types, enums)
			f.MessageType = append(f.MessageType, m)
			types = append(types, "."+pkg+"."+m.GetName())
		}
		s := &descriptorpb.ServiceDescriptorProto{Name: proto.String(h.typeName())}
		for range 2 + h.r.IntN(4) {
			s.Method = append(s.Method, h.method(types))
		}
		f.Service = append(f.Service, s)
		set.File = append(set.File, f)
	}
	h.old = set
	h.now = proto.Clone(set).(*descriptorpb.FileDescriptorSet)
	return h
}

func (h *history) method(types []string) *descriptorpb.MethodDescriptorProto {
	return &descriptorpb.MethodDescriptorProto{
		Name: proto.String(h.typeName()), InputType: proto.String(types[h.r.IntN(len(types))]), OutputType: proto.String(types[h.r.IntN(len(types))]),
		ServerStreaming: proto.Bool(h.r.IntN(2) == 0),
	}
}

func (h *history) message(types, enums []string) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: proto.String(h.typeName())}
	n := int32(0)
	for range 2 + h.r.IntN(8) {
		n += 1 + int32(h.r.IntN(2))
		m.Field = append(m.Field, h.field(n, types, enums))
	}
	if len(m.Field) > 4 && h.r.IntN(2) == 0 {
		m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String(h.word())})
		for _, f := range m.Field[:3] {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
			f.OneofIndex = proto.Int32(0)
		}
	}
	return m
}

func (h *history) field(n int32, types, enums []string) *descriptorpb.FieldDescriptorProto {
	f := &descriptorpb.FieldDescriptorProto{Name: proto.String(h.word()), Number: proto.Int32(n), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	if h.r.IntN(4) == 0 {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	switch k := h.r.IntN(10); {
	case k < 3 && len(types) > 0:
		f.Type, f.TypeName = typeMessage.Enum(), proto.String(types[h.r.IntN(len(types))])
	case k == 3:
		f.Type, f.TypeName = typeEnum.Enum(), proto.String(enums[h.r.IntN(len(enums))])
	default:
		f.Type = scalars[h.r.IntN(len(scalars))].Enum()
	}
	return f
}

// pick returns a random type of now, not touched yet, with its full name now.
func (h *history) pick() (file *descriptorpb.FileDescriptorProto, m *descriptorpb.DescriptorProto, full string) {
	for {
		file = h.now.File[h.r.IntN(len(h.now.File))]
		m = file.MessageType[h.r.IntN(len(file.MessageType))]
		if full = file.GetPackage() + "." + m.GetName(); !h.touched[full] {
			return file, m, full
		}
	}
}

func (h *history) pickField() (m *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto, full string) {
	for {
		_, m, full = h.pick()
		f = m.Field[h.r.IntN(len(m.Field))]
		if at := full + "." + f.GetName(); !h.touched[at] && f.OneofIndex == nil {
			h.touched[at] = true
			h.touched["message of "+full] = true // it keeps its name, so that elements do
			return m, f, at
		}
	}
}

func (h *history) did(kind ChangeKind, element, old, now string) {
	h.want = append(h.want, fmt.Sprintf("%s %s %q %q", kind, element, old, now))
}

// rename gives a type another full name everywhere it is used.
func (h *history) rename(old, now string) {
	swap := func(s *string) *string {
		if s != nil && *s == "."+old {
			return proto.String("." + now)
		}
		return s
	}
	for _, f := range h.now.File {
		for _, m := range f.MessageType {
			for _, fd := range m.Field {
				fd.TypeName = swap(fd.TypeName)
			}
		}
		for _, s := range f.Service {
			for _, m := range s.Method {
				m.InputType, m.OutputType = swap(m.InputType), swap(m.OutputType)
			}
		}
	}
}

func (h *history) isUsed(full string) bool {
	for _, f := range h.now.File {
		for _, m := range f.MessageType {
			for _, fd := range m.Field {
				if fd.GetTypeName() == "."+full {
					return true
				}
			}
		}
		for _, s := range f.Service {
			for _, m := range s.Method {
				if m.GetInputType() == "."+full || m.GetOutputType() == "."+full {
					return true
				}
			}
		}
	}
	return false
}

// change does one random thing to now.
func (h *history) change() {
	switch h.r.IntN(17) {
	case 0: // a new field, at any place
		_, m, full := h.pick()
		n := int32(1)
		for slices.ContainsFunc(m.Field, func(f *descriptorpb.FieldDescriptorProto) bool { return f.GetNumber() == n }) || h.touched[full+fmt.Sprint(n)] {
			n++
		}
		f := h.field(n, nil, []string{"." + h.now.File[0].GetPackage() + "." + h.now.File[0].EnumType[0].GetName()})
		if f.GetType() == typeEnum {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), nil
		}
		m.Field = append(m.Field, f)
		h.touched[full+"."+f.GetName()] = true
		h.touched["message of "+full] = true
		h.did(Added, full+"."+f.GetName(), "", "*")
	case 1:
		m, f, at := h.pickField()
		if len(m.Field) < 4 {
			return
		}
		m.Field = slices.DeleteFunc(m.Field, func(g *descriptorpb.FieldDescriptorProto) bool { return g == f })
		h.touched[strings.TrimSuffix(at, "."+f.GetName())+fmt.Sprint(f.GetNumber())] = true // not given to a new field
		h.did(Removed, at, "*", "")
	case 2:
		_, f, at := h.pickField()
		old := f.GetName()
		f.Name = proto.String(h.word())
		h.touched[strings.TrimSuffix(at, old)+f.GetName()] = true
		h.did(renamed, at, old, f.GetName())
	case 3:
		_, f, at := h.pickField()
		old := f.GetNumber()
		f.Number = proto.Int32(100 + int32(h.serial))
		h.serial++
		h.did(renumbered, at, fmt.Sprint(old), fmt.Sprint(f.GetNumber()))
	case 4:
		_, f, at := h.pickField()
		if f.TypeName != nil {
			return
		}
		old := f.GetType()
		for f.GetType() == old {
			f.Type = scalars[h.r.IntN(len(scalars))].Enum()
		}
		word := func(t descriptorpb.FieldDescriptorProto_Type) string {
			return strings.ToLower(strings.TrimPrefix(t.String(), "TYPE_"))
		}
		h.did(retyped, at, word(old), word(f.GetType()))
	case 5:
		_, f, at := h.pickField()
		old, now := infer.Singular, infer.Repeated
		if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
			old, now = now, old
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
		} else {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		h.did(relabelled, at, old, now)
	case 6: // a new message
		file := h.now.File[h.r.IntN(2)]
		m := h.message(nil, []string{"." + h.now.File[0].GetPackage() + "." + h.now.File[0].EnumType[0].GetName()})
		for _, f := range m.Field {
			if f.GetType() == typeEnum {
				f.Type, f.TypeName = scalars[0].Enum(), nil
			}
		}
		file.MessageType = append(file.MessageType, m)
		h.touched[file.GetPackage()+"."+m.GetName()] = true
		h.did(Added, file.GetPackage()+"."+m.GetName(), "", "*")
	case 7: // one that nothing uses goes
		for range 20 {
			file, m, full := h.pick()
			if h.isUsed(full) || h.touched["message of "+full] {
				continue
			}
			file.MessageType = slices.DeleteFunc(file.MessageType, func(g *descriptorpb.DescriptorProto) bool { return g == m })
			h.did(Removed, full, "*", "")
			return
		}
	case 8:
		file, m, full := h.pick()
		if len(m.Field) < 4 && !h.isUsed(full) || h.touched["message of "+full] {
			return
		}
		m.Name = proto.String(h.typeName())
		now := file.GetPackage() + "." + m.GetName()
		h.rename(full, now)
		h.touched[now] = true
		h.did(renamed, full, full, now)
	case 9: // to the other package, which imports this one
		file := h.now.File[0]
		i := h.r.IntN(len(file.MessageType))
		m := file.MessageType[i]
		full := file.GetPackage() + "." + m.GetName()
		if h.touched[full] || h.touched["message of "+full] || h.usedBy(file, full) {
			return
		}
		file.MessageType = slices.Delete(file.MessageType, i, i+1)
		h.now.File[1].MessageType = append(h.now.File[1].MessageType, m)
		now := h.now.File[1].GetPackage() + "." + m.GetName()
		h.rename(full, now)
		h.touched[now] = true
		h.did(moved, full, full, now)
	case 10, 11, 12, 13:
		h.changeEnum()
	default:
		h.changeService()
	}
}

// usedBy reports whether a file's own types use a type.
func (h *history) usedBy(file *descriptorpb.FileDescriptorProto, full string) bool {
	all := h.now.File
	defer func() { h.now.File = all }()
	h.now.File = []*descriptorpb.FileDescriptorProto{file}
	return h.isUsed(full)
}

func (h *history) changeEnum() {
	file := h.now.File[h.r.IntN(2)]
	e := file.EnumType[h.r.IntN(len(file.EnumType))]
	full := file.GetPackage() + "." + e.GetName()
	if h.touched[full] {
		return
	}
	h.touched[full] = true
	v := e.Value[1+h.r.IntN(len(e.Value)-1)]
	at := full + "."
	if h.r.IntN(5) == 0 {
		e.Name = proto.String(h.typeName())
		now := file.GetPackage() + "." + e.GetName()
		h.rename(full, now)
		h.touched[now] = true
		h.did(renamed, full, full, now)
		return
	}
	switch old := v.GetName(); h.r.IntN(4) {
	case 0:
		v = &descriptorpb.EnumValueDescriptorProto{Name: proto.String(strings.ToUpper(h.word())), Number: proto.Int32(77)}
		e.Value = append(e.Value, v)
		h.did(Added, at+v.GetName(), "", "77")
	case 1:
		e.Value = slices.DeleteFunc(e.Value, func(w *descriptorpb.EnumValueDescriptorProto) bool { return w == v })
		h.did(Removed, at+old, fmt.Sprint(v.GetNumber()), "")
	case 2:
		v.Name = proto.String(strings.ToUpper(h.word()))
		h.did(renamed, at+old, old, v.GetName())
	default:
		h.did(renumbered, at+old, fmt.Sprint(v.GetNumber()), "88")
		v.Number = proto.Int32(88)
	}
}

func (h *history) changeService() {
	file := h.now.File[h.r.IntN(2)]
	s := file.Service[0]
	full := file.GetPackage() + "." + s.GetName()
	if h.touched[full] {
		return
	}
	i := h.r.IntN(len(s.Method))
	m := s.Method[i]
	at := full + "." + m.GetName()
	h.touched[full] = true
	switch h.r.IntN(5) {
	case 0:
		m = h.method([]string{m.GetInputType(), m.GetOutputType()})
		s.Method = append(s.Method, m)
		h.did(Added, full+"."+m.GetName(), "", "*")
	case 1:
		s.Method = slices.Delete(s.Method, i, i+1)
		h.did(Removed, at, "*", "")
	case 2:
		if len(s.Method) < 2 {
			return
		}
		s.Name = proto.String(h.typeName())
		h.touched[file.GetPackage()+"."+s.GetName()] = true
		h.did(renamed, full, full, file.GetPackage()+"."+s.GetName())
	case 3:
		word := map[bool]string{false: "unary", true: "server stream"}
		h.did(relabelled, at, word[m.GetServerStreaming()], word[!m.GetServerStreaming()])
		m.ServerStreaming = proto.Bool(!m.GetServerStreaming())
	default:
		for j, o := range s.Method {
			if j != i && o.GetInputType() == m.GetInputType() && o.GetOutputType() == m.GetOutputType() {
				return
			}
		}
		m.Name = proto.String(h.typeName())
		h.did(renamed, at, strings.TrimPrefix(at, full+"."), m.GetName())
	}
}

// TestDiffTruth changes random schemas in known ways: all that was done is
// reported, and nothing else.
func TestDiffTruth(t *testing.T) {
	total, wrong := 0, 0
	kinds := map[string]int{}
	for seed := range uint64(seedsOfChanges) {
		h := newHistory(seed)
		for range changesEach {
			h.change()
		}
		old, err := schema.FromDescriptorSet(h.old)
		if err != nil {
			t.Fatal(err)
		}
		if same := Diff(old, old); len(same) != 0 {
			t.Fatalf("seed %d: differs from itself: %v", seed, same)
		}
		now, err := schema.FromDescriptorSet(h.now)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var got []string
		for _, c := range Diff(old, now) {
			if strings.HasPrefix(string(c.Change), "added") {
				c.New = anyOf(c.Kind, c.New)
			} else if c.Change == Removed {
				c.Old = anyOf(c.Kind, c.Old)
			}
			got = append(got, fmt.Sprintf("%s %s %q %q", c.Change, c.Element, c.Old, c.New))
			kinds[string(c.Change)+" "+string(c.Kind)]++
		}
		slices.Sort(got)
		slices.Sort(h.want)
		total += len(h.want)
		if !slices.Equal(got, h.want) {
			wrong++
			t.Errorf("seed %d: missing %v\nfalse %v", seed, without(h.want, got), without(got, h.want))
		}
		if wrong > 5 {
			t.FailNow()
		}
	}
	t.Logf("%d changes in %d schemas; %d schemas wrong; by kind %v", total, seedsOfChanges, wrong, kinds)
	if len(kinds) < 18 {
		t.Errorf("only these kinds of changes were tried: %v", kinds)
	}
}

// anyOf stands for declarations, which the history does not keep.
func anyOf(kind ElementKind, s string) string {
	if kind == ValueElement {
		return s
	}
	return "*"
}

func without(list, other []string) []string {
	var left []string
	for _, s := range list {
		if !slices.Contains(other, s) {
			left = append(left, s)
		}
	}
	return left
}
