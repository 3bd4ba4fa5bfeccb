package eval

import (
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// knownTypes are those of protobuf's own that the styles use, as often as they stand here.
var (
	knownTypes = []string{
		"google.protobuf.Timestamp", "google.protobuf.Timestamp", "google.protobuf.Timestamp", "google.protobuf.Timestamp",
		"google.protobuf.Duration", "google.protobuf.Duration", "google.protobuf.Any", "google.protobuf.Struct",
		"google.protobuf.StringValue", "google.protobuf.Int32Value",
	}
	knownFiles = []string{
		"google/protobuf/any.proto", "google/protobuf/duration.proto", "google/protobuf/struct.proto",
		"google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto",
	}
)

// written are the well-known types that are told by their values.
var written = map[protoreflect.FullName]bool{
	"google.protobuf.Timestamp": true, "google.protobuf.Duration": true, "google.protobuf.Any": true, "google.protobuf.Struct": true,
	"google.protobuf.Value": true, "google.protobuf.ListValue": true,
}

// known fills a message of protobuf's own as programs do, and reports whether it is one.
func (g *generator) known(m *dynamicpb.Message) bool {
	md, r := m.Descriptor(), g.r
	f := func(n protoreflect.FieldNumber) protoreflect.FieldDescriptor { return md.Fields().ByNumber(n) }
	nanos := func() int32 {
		v := r.Int32N(1e9)
		switch g.role(f(2)).pick % 4 {
		case 0:
			return v / 1e6 * 1e6
		case 1:
			return v / 1e3 * 1e3
		}
		return v
	}
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		m.Set(f(1), protoreflect.ValueOfInt64(1_600_000_000+r.Int64N(2e8)))
		if g.role(f(1)).pick%8 > 0 { // or whole seconds
			m.Set(f(2), protoreflect.ValueOfInt32(nanos()))
		}
	case "google.protobuf.Duration":
		m.Set(f(1), protoreflect.ValueOfInt64(int64(math.Exp(r.Float64()*float64(2+g.role(f(1)).pick%8)))-1))
		if g.role(f(1)).pick%3 > 0 {
			m.Set(f(2), protoreflect.ValueOfInt32(nanos()))
		}
	case "google.protobuf.Any":
		inner := g.file.Messages().Get(int(g.role(f(1)).seed % uint64(g.file.Messages().Len())))
		m.Set(f(1), protoreflect.ValueOfString("type.googleapis.com/"+string(inner.FullName())))
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.message(inner, 4))
		if err != nil {
			panic(err)
		}
		m.Set(f(2), protoreflect.ValueOfBytes(b))
	case "google.protobuf.Value":
		switch n := protoreflect.FieldNumber(1 + r.IntN(6)); {
		case n == 1:
			m.Set(f(1), protoreflect.ValueOfEnum(0))
		case n == 2:
			m.Set(f(2), protoreflect.ValueOfFloat64(float64(r.IntN(1000))))
		case n == 4:
			m.Set(f(4), protoreflect.ValueOfBool(r.IntN(2) > 0))
		case n >= 5 && g.budget > 0 && r.IntN(2) > 0:
			m.Set(f(n), protoreflect.ValueOfMessage(g.message(f(n).Message(), 5)))
		default:
			m.Set(f(3), protoreflect.ValueOfString(g.text(role{text: one(r, []string{"word", "sentence", "ident"}), lang: "en"})))
		}
	case "google.protobuf.Struct":
		for range 1 + r.IntN(4) {
			v := g.message(f(1).MapValue().Message(), 5)
			m.Mutable(f(1)).Map().Set(protoreflect.ValueOfString(g.text(role{text: "word"})).MapKey(), protoreflect.ValueOfMessage(v))
		}
	case "google.protobuf.ListValue":
		for range 1 + r.IntN(3) {
			m.Mutable(f(1)).List().Append(protoreflect.ValueOfMessage(g.message(f(1).Message(), 5)))
		}
	default:
		return false
	}
	return true
}
