package schematest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	_ "google.golang.org/genproto/googleapis/rpc/code"
	_ "google.golang.org/genproto/googleapis/rpc/context"
	_ "google.golang.org/genproto/googleapis/rpc/context/attribute_context"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/http"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
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
)

// A generator generates messages with random values that look like those of real services. Each field has a
// style, i.e. a kind of values, which is drawn once.
type generator struct {
	// r is the source of randomness.
	r *rand.Rand
	// styles are the styles drawn so far, by full name of the field.
	styles map[protoreflect.FullName]style
}

// A style describes the kind of random values that a field gets.
type style struct {
	// what selects the kind of values.
	what int
	// presence is the probability that the field is set, from 0 to 1.
	presence float64
	// many is the mean number of elements in a repeated field.
	many float64
}

// NewGenerator returns a generator of random messages. Its values depend only on r.
func NewGenerator(r *rand.Rand) *generator {
	return &generator{r: r, styles: map[protoreflect.FullName]style{}}
}

// style returns the style of random values for a field, always the same one for the same field.
func (g *generator) style(fd protoreflect.FieldDescriptor) style {
	s, ok := g.styles[fd.FullName()]
	if !ok {
		s = style{what: g.r.IntN(100), presence: []float64{1, .95, .8, .5, .2, .06}[g.r.IntN(6)], many: []float64{1, 2, 3, 8}[g.r.IntN(4)]}
		g.styles[fd.FullName()] = s
	}
	return s
}

// Message returns a random message of a type. depth is the nesting so far.
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

// Set sets a field to a random value, list or map.
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

// value returns a random value for a field with the style s.
func (g *generator) value(fd protoreflect.FieldDescriptor, s style, depth int) protoreflect.Value {
	r := g.r

	// Most numbers are small; how small depends on the style.
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
		// These are times in milliseconds and in seconds.
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

// real returns a random floating-point number in the style s.
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

// words are the words of which random texts consist.
var words = strings.Fields(`the model answers with a list of files and reads each line before it edits main.go src/index.ts
	error warning value request response session token path name id user agent tool call result of in to for is on
	été größe Ünïcode 你好 世界 Привет мир こんにちは`)

// word returns a random word.
func (g *generator) word() string { return words[g.r.IntN(len(words))] }

// text returns a random text: a word, an identifier, lines, a number or a sentence.
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

// bytes returns random bytes in the style s.
func (g *generator) bytes(s style) []byte {
	n := []int{32, 16, 1 + g.r.IntN(60), 200}[s.what%4]
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, g.r.Uint64())
	}
	return b[:n]
}

// NewRand returns a random source that repeats for equal seeds.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
