package schematest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	_ "google.golang.org/genproto/googleapis/rpc/code"
	_ "google.golang.org/genproto/googleapis/rpc/context"
	_ "google.golang.org/genproto/googleapis/rpc/context/attribute_context"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/http"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/gofeaturespb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
	_ "google.golang.org/protobuf/types/pluginpb"

	reconstructed "unwire/proto"
	subject "unwire/proto"
	"unwire/schema"
)

// A Corpus is samples of one type whose truth is known.
type Corpus struct {
	Name    string
	Truth   protoreflect.MessageDescriptor
	Samples [][]byte
}

// RandomCorpus is a random schema with random, lifelike values.
func RandomCorpus(t testing.TB, seed uint64, samples int) Corpus {
	r := NewRand(seed)
	file := RandomFile(r)
	fd, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	c := Corpus{Name: fmt.Sprintf("random %d", seed), Truth: fd.Messages().Get(0)}
	g := NewGenerator(r)
	for range samples {
		b, err := proto.Marshal(g.Message(c.Truth, 0))
		if err != nil {
			t.Fatal(err)
		}
		c.Samples = append(c.Samples, b)
	}
	return c
}

// RandomFile makes a proto3 file of a few messages that refer to each other.
func RandomFile(r *rand.Rand) *descriptorpb.FileDescriptorProto {
	count := 3 + r.IntN(6)
	file := &descriptorpb.FileDescriptorProto{
		Name: new("random.proto"), Package: new("random"), Syntax: new("proto3"),
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: new("Mode"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: new("ZERO"), Number: new(int32(0))},
			{Name: new("ONE"), Number: new(int32(1))},
			{Name: new("TWO"), Number: new(int32(2))},
			{Name: new("THREE"), Number: new(int32(3))},
			{Name: new("FOUR"), Number: new(int32(4))},
		}}},
	}
	for i := range count {
		file.MessageType = append(file.MessageType, randomMessage(r, i, count))
	}
	return file
}

func randomMessage(r *rand.Rand, index, count int) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: new(fmt.Sprintf("M%d", index))}
	number := int32(0)
	fields := 2 + r.IntN(9)
	oneofFrom, oneofLen := -1, 0
	if r.IntN(4) == 0 {
		oneofLen = 2 + r.IntN(4)
		oneofFrom = r.IntN(fields)
	}
	var optional []*descriptorpb.FieldDescriptorProto
	for i := range fields {
		number += int32(1 + r.IntN(4)*r.IntN(2)*r.IntN(2))
		if r.IntN(40) == 0 {
			number += int32(r.IntN(100))
		}
		f := &descriptorpb.FieldDescriptorProto{Name: new(fmt.Sprintf("f%d", number)), Number: new(number), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		randomType(r, f, index, count)
		m.Field = append(m.Field, f)
		switch {
		case oneofFrom >= 0 && i >= oneofFrom && i < oneofFrom+oneofLen && i < fields:
			if m.OneofDecl == nil {
				m.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: new("which")}}
			}
			f.OneofIndex = new(int32(0))
		case r.IntN(100) < 22:
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		case r.IntN(100) < 12 && f.GetType() != descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
			optional = append(optional, f)
		case r.IntN(100) < 5:
			addMap(r, m, f, index, count)
		}
	}
	for _, f := range optional { // synthetic oneofs come last
		f.Proto3Optional = new(true)
		f.OneofIndex = new(int32(len(m.OneofDecl)))
		m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: new("_" + f.GetName())})
	}
	return m
}

// randomType gives f a type as often as public schemas have it.
func randomType(r *rand.Rand, f *descriptorpb.FieldDescriptorProto, index, count int) {
	types := []struct {
		weight int
		t      descriptorpb.FieldDescriptorProto_Type
	}{
		{380, descriptorpb.FieldDescriptorProto_TYPE_STRING},
		{260, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE},
		{90, descriptorpb.FieldDescriptorProto_TYPE_INT32},
		{60, descriptorpb.FieldDescriptorProto_TYPE_INT64},
		{80, descriptorpb.FieldDescriptorProto_TYPE_BOOL},
		{60, descriptorpb.FieldDescriptorProto_TYPE_ENUM},
		{20, descriptorpb.FieldDescriptorProto_TYPE_UINT32},
		{15, descriptorpb.FieldDescriptorProto_TYPE_UINT64},
		{5, descriptorpb.FieldDescriptorProto_TYPE_SINT32},
		{3, descriptorpb.FieldDescriptorProto_TYPE_SINT64},
		{30, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE},
		{20, descriptorpb.FieldDescriptorProto_TYPE_FLOAT},
		{8, descriptorpb.FieldDescriptorProto_TYPE_FIXED64},
		{5, descriptorpb.FieldDescriptorProto_TYPE_FIXED32},
		{35, descriptorpb.FieldDescriptorProto_TYPE_BYTES},
	}
	total := 0
	for _, t := range types {
		total += t.weight
	}
	pick := r.IntN(total)
	for _, t := range types {
		if pick -= t.weight; pick < 0 {
			f.Type = t.t.Enum()
			break
		}
	}
	switch f.GetType() {
	case descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
		to := index + 1 + r.IntN(3) // mostly downwards, at times a loop
		if to >= count || r.IntN(12) == 0 {
			to = r.IntN(count)
		}
		f.TypeName = new(fmt.Sprintf(".random.M%d", to))
	case descriptorpb.FieldDescriptorProto_TYPE_ENUM:
		f.TypeName = new(".random.Mode")
	}
}

func addMap(r *rand.Rand, m *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto, index, count int) {
	name := fmt.Sprintf("F%dEntry", f.GetNumber())
	value := &descriptorpb.FieldDescriptorProto{Name: new("value"), Number: new(int32(2)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	randomType(r, value, index, count)
	m.NestedType = append(m.NestedType, &descriptorpb.DescriptorProto{
		Name: &name, Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
		Field: []*descriptorpb.FieldDescriptorProto{
			{Name: new("key"), Number: new(int32(1)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()},
			value,
		},
	})
	f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	f.TypeName = new(".random." + m.GetName() + "." + name)
	f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
}

// A generator makes values that look like those of real services: each field
// has a style of its own, drawn once.
type generator struct {
	r      *rand.Rand
	styles map[protoreflect.FullName]style
}

type style struct {
	what     int
	presence float64
	many     float64 // mean count of a repeated field
}

// NewGenerator returns a generator whose values depend on r alone.
func NewGenerator(r *rand.Rand) *generator {
	return &generator{r: r, styles: map[protoreflect.FullName]style{}}
}

func (g *generator) style(fd protoreflect.FieldDescriptor) style {
	s, ok := g.styles[fd.FullName()]
	if !ok {
		s = style{what: g.r.IntN(100), presence: []float64{1, .95, .8, .5, .2, .06}[g.r.IntN(6)], many: []float64{1, 2, 3, 8}[g.r.IntN(4)]}
		g.styles[fd.FullName()] = s
	}
	return s
}

func (g *generator) Message(md protoreflect.MessageDescriptor, depth int) *dynamicpb.Message {
	m := dynamicpb.NewMessage(md)
	for i := range md.Oneofs().Len() {
		if o := md.Oneofs().Get(i); !o.IsSynthetic() && g.r.IntN(10) > 0 {
			g.Set(m, o.Fields().Get(g.r.IntN(o.Fields().Len())), depth)
		}
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if oneof := fd.ContainingOneof(); (oneof == nil || oneof.IsSynthetic()) && g.r.Float64() < g.style(fd).presence {
			g.Set(m, fd, depth)
		}
	}
	return m
}

func (g *generator) Set(m *dynamicpb.Message, fd protoreflect.FieldDescriptor, depth int) {
	if depth > 6 && fd.Message() != nil {
		return
	}
	s := g.style(fd)
	switch {
	case fd.IsMap():
		list := m.Mutable(fd).Map()
		for range 1 + int(g.r.ExpFloat64()*s.many) {
			list.Set(protoreflect.ValueOfString(g.word()).MapKey(), g.value(fd.MapValue(), s, depth))
		}
	case fd.IsList():
		list := m.Mutable(fd).List()
		n := int(g.r.ExpFloat64()*s.many + 0.5)
		if depth > 2 {
			n = min(n, 2)
		}
		for range min(n, 40) {
			list.Append(g.value(fd, s, depth))
		}
	default:
		m.Set(fd, g.value(fd, s, depth))
	}
}

func (g *generator) value(fd protoreflect.FieldDescriptor, s style, depth int) protoreflect.Value {
	r := g.r
	small := uint64(r.ExpFloat64() * []float64{3, 40, 1000, 2e5}[s.what%4])
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return protoreflect.ValueOfMessage(g.Message(fd.Message(), depth+1))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(g.text(s))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(g.bytes(s))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(3) > 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(r.IntN(2 + s.what%4)))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		v := int32(small)
		if s.what%10 == 0 && r.IntN(3) == 0 {
			v = -v
		}
		return protoreflect.ValueOfInt32(v)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		v := int64(small)
		switch {
		case s.what < 25:
			v = 1_700_000_000_000 + int64(r.Uint64N(1e11))
		case s.what < 40:
			v = 1_700_000_000 + int64(r.Uint64N(1e8))
		case s.what < 45:
			v = -v
		}
		return protoreflect.ValueOfInt64(v)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		if s.what < 30 {
			return protoreflect.ValueOfUint32(r.Uint32())
		}
		return protoreflect.ValueOfUint32(uint32(small))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if s.what < 40 {
			return protoreflect.ValueOfUint64(r.Uint64())
		}
		return protoreflect.ValueOfUint64(small)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(g.real(s)))
	default:
		return protoreflect.ValueOfFloat64(g.real(s))
	}
}

func (g *generator) real(s style) float64 {
	switch s.what % 4 {
	case 0:
		return g.r.Float64()
	case 1:
		return float64(g.r.IntN(10000)) / 100
	case 2:
		return g.r.NormFloat64() * 50
	}
	return float64(g.r.IntN(1000))
}

var words = strings.Fields(`the model answers with a list of files and reads each line before it edits main.go src/index.ts
	error warning value request response session token path name id user agent tool call result of in to for is on
	été größe Ünïcode 你好 世界 Привет мир こんにちは`)

func (g *generator) word() string { return words[g.r.IntN(len(words))] }

func (g *generator) text(s style) string {
	r := g.r
	switch {
	case s.what < 30:
		return g.word()
	case s.what < 45:
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(65536), r.IntN(4096), r.IntN(4096), r.Uint64N(1<<48))
	case s.what < 55:
		return fmt.Sprintf("toolu_%016x", r.Uint64())
	case s.what < 62:
		return strings.Repeat(g.word()+"\n", 1+r.IntN(4))
	case s.what < 68:
		return fmt.Sprintf("%d", r.IntN(1000))
	}
	var b strings.Builder
	for range 1 + r.IntN(14) {
		b.WriteString(g.word())
		b.WriteByte(' ')
	}
	return b.String()
}

func (g *generator) bytes(s style) []byte {
	n := []int{32, 16, 1 + g.r.IntN(60), 200}[s.what%4]
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, g.r.Uint64())
	}
	return b[:n]
}

// NewRand returns a random source that repeats for the same seed.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// Tags builds a message of fields given as number, wire type and encoded value.
type Tags []byte

func (b Tags) Varint(n protowire.Number, v uint64) Tags {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func (b Tags) Text(n protowire.Number, s string) Tags {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func (b Tags) Fixed64(n protowire.Number, v uint64) Tags {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), v)
}

// BenchCorpus is messages of a stream as the agent's: many small ones, text in most.
func BenchCorpus(b *testing.B) (*schema.Schema, Corpus) {
	s, err := schema.LoadDir(b.Context(), "../../proto")
	if err != nil {
		b.Fatal(err)
	}
	split := subject.Profile().Split
	c := Corpus{Truth: s.Method(split.Service, split.RPC).Output()}
	g := NewGenerator(NewRand(5))
	for range 400 {
		m, err := proto.Marshal(g.Message(c.Truth, 3))
		if err != nil {
			b.Fatal(err)
		}
		c.Samples = append(c.Samples, m)
	}
	return s, c
}

func (c Corpus) Size() (n int64) {
	for _, s := range c.Samples {
		n += int64(len(s))
	}
	return n
}

// Timed returns the nanoseconds of one run of f, of the best of a few.
func Timed(b *testing.B, f func()) float64 {
	b.Helper()
	best := time.Duration(math.MaxInt64)
	for range 10 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return float64(best)
}

// BuiltIn loads the reconstructed definitions of package proto.
func BuiltIn(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Load(t.Context(), reconstructed.Files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// GoogleTypes returns the types of google/protobuf and google/rpc, and of whatever
// else is linked into the test.
func GoogleTypes() *schema.Schema {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		files = append(files, fd)
		return true
	})
	return schema.FromFiles(files...)
}

// SetOf returns the files of s as a descriptor set.
func SetOf(s *schema.Schema) *descriptorpb.FileDescriptorSet {
	set := &descriptorpb.FileDescriptorSet{}
	for _, f := range s.Files {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	return set
}
