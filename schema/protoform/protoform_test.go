package protoform_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/typepb"

	"unwire/schema/protoform"
)

// find knows the message that is in an Any of the tests.
func find(name string) protoreflect.MessageDescriptor {
	if name == "google.protobuf.Duration" {
		return (*durationpb.Duration)(nil).ProtoReflect().Descriptor()
	}
	return nil
}

// messages are of real definitions: with enums, maps, repeated and nested messages, oneofs,
// an Any, and strings that need escapes.
func messages(t *testing.T) []proto.Message {
	t.Helper()
	held, err := anypb.New(durationpb.New(90e9))
	if err != nil {
		t.Fatal(err)
	}
	value, err := structpb.NewStruct(map[string]any{"a": 1.5, "b": []any{"x\n\x01", nil, true}, "c": map[string]any{"d": "例"}})
	if err != nil {
		t.Fatal(err)
	}
	file := (*descriptorpb.FileDescriptorSet)(nil).ProtoReflect().Descriptor().ParentFile()
	return []proto.Message{
		held, value,
		&descriptorpb.FileDescriptorProto{Name: proto.String(file.Path()), Dependency: []string{"a", "b"}, Options: &descriptorpb.FileOptions{Deprecated: proto.Bool(true)}},
		&apipb.Api{Name: "A", Syntax: typepb.Syntax_SYNTAX_PROTO3, Options: []*typepb.Option{{Name: "o", Value: held}}},
		&apipb.Api{},
	}
}

func TestPrintedMessagesAreReadBack(t *testing.T) {
	for _, m := range messages(t) {
		md := m.ProtoReflect().Descriptor()
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []protoform.Format{protoform.JSON, protoform.Text} {
			printed, err := protoform.Print(format, data, false, md, find)
			if err != nil {
				t.Fatalf("%s as %s: %v", md.FullName(), format, err)
			}
			if len(printed.Lost) > 0 {
				t.Errorf("%s as %s loses %v", md.FullName(), format, printed.Lost)
			}
			if name := protoform.TypeOf(printed.Data); format == protoform.Text && name != string(md.FullName()) {
				t.Errorf("%s is the type %q", md.FullName(), name)
			}
			again, err := protoform.Parse(format, printed.Data, md, find)
			if err != nil {
				t.Fatalf("%s from %s: %v\n%s", md.FullName(), format, err, printed.Data)
			}
			got := dynamicpb.NewMessage(md)
			if err := proto.Unmarshal(again, got); err != nil {
				t.Fatal(err)
			}
			want := dynamicpb.NewMessage(md)
			if err := proto.Unmarshal(data, want); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, want) {
				t.Errorf("%s by %s is %v, want %v", md.FullName(), format, got, want)
			}
		}
	}
}

func TestLostFieldsAreNamed(t *testing.T) {
	option := protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), "?")
	data := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "A")
	data = protowire.AppendBytes(protowire.AppendTag(data, 3, protowire.BytesType), option)
	data = protowire.AppendBytes(protowire.AppendTag(data, 3, protowire.BytesType), option)
	data = protowire.AppendVarint(protowire.AppendTag(data, 99, protowire.VarintType), 5)
	md := (*apipb.Api)(nil).ProtoReflect().Descriptor()
	for _, format := range protoform.Formats() {
		printed, err := protoform.Print(protoform.Format(format), data, false, md, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"99", "3.77"}; !slices.Equal(printed.Lost, want) {
			t.Errorf("%s loses %v, want %v", format, printed.Lost, want)
		}
		if _, err := protoform.Parse(protoform.Format(format), printed.Data, md, nil); err != nil {
			t.Errorf("%s is not read back: %v", format, err)
		}
	}
}

func TestJSONBodiesAreRead(t *testing.T) {
	md := (*apipb.Api)(nil).ProtoReflect().Descriptor()
	printed, err := protoform.Print(protoform.Text, []byte(`{"name":"A","sourceContext":{"file_name":"f"}}`), true, md, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := protoform.Parse(protoform.Text, printed.Data, md, nil)
	if want := "\n\x01A*\x03\n\x01f"; err != nil || string(data) != want {
		t.Errorf("%q, %v, want %q", data, err, want)
	}
	if _, err := protoform.Print(protoform.JSON, []byte(`{"nobody":1}`), true, md, nil); err == nil {
		t.Error("a name that the definitions lack is no error")
	}
	if _, err := protoform.Print(protoform.JSON, []byte{0xff}, false, md, nil); err == nil {
		t.Error("bytes that are no message are no error")
	}
}

// FuzzPrint prints messages of any kind, and reads what it printed.
func FuzzPrint(f *testing.F) {
	md := (*apipb.Api)(nil).ProtoReflect().Descriptor()
	f.Add([]byte("\x0a\x01A\x2a\x03\x0a\x01f"), false)
	f.Add([]byte(`{"name":"A","sourceContext":{"file_name":"f"}}`), true)
	f.Add([]byte("\x1a\x04\x0a\x02\xff\xfe\x98\x06\x05"), false)
	f.Add([]byte("# proto-message: google.protobuf.Api\nname: \"A\""), true)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		protoform.TypeOf(data)
		for _, format := range protoform.Formats() {
			_, _ = protoform.Parse(protoform.Format(format), data, md, nil)
			printed, err := protoform.Print(protoform.Format(format), data, isJSON, md, nil)
			if err != nil {
				continue
			}
			if _, err := protoform.Parse(protoform.Format(format), printed.Data, md, nil); err != nil {
				t.Errorf("%s of %q is not read back: %v\n%s", format, data, err, printed.Data)
			}
		}
	})
}
