package schema

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// FuzzFromTexts compiles texts of any kind. What compiles has its file, and its message types can be walked.
func FuzzFromTexts(f *testing.F) {
	for _, text := range []string{
		"", "syntax = \"proto3\";\npackage a.v1;\nmessage A { B b = 1; map<string, int32> m = 2; oneof o { string s = 3; } }\nmessage B { enum E { X = 0; } E e = 1; }\n",
		"syntax = \"proto2\";\nimport \"google/protobuf/descriptor.proto\";\nextend google.protobuf.FieldOptions { optional int32 x = 50000; }\nmessage A { optional int32 a = 1 [(x) = 3, default = 0x1F]; group G = 2 { extensions 5 to max; } }\n",
		"edition = \"2023\";\nimport \"b.proto\";\nservice S { rpc M(stream A) returns (stream A) { option deprecated = true; } }\nmessage A { reserved 1 to 5; }\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := FromTexts(map[string]string{"a.proto": text})
		if err != nil {
			return
		}
		for _, file := range s.Files {
			EachMessage(file.Messages(), func(protoreflect.MessageDescriptor) bool { return true })
		}
	})
}

// FuzzFromStored links descriptors of any kind, as a capture has them.
func FuzzFromStored(f *testing.F) {
	for _, set := range []*descriptorpb.FileDescriptorSet{
		{},
		{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("a.proto"), Dependency: []string{"b.proto"}, MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("A")}}}}},
	} {
		data, err := proto.Marshal(set)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, _ = FromStored(ctx, nil, map[string][]byte{"a.binpb": data})
		if ctx.Err() != nil {
			t.Fatal("it takes more than 10 s")
		}
	})
}
