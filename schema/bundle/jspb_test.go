package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// TestJSPB reads the code that google-protobuf ships for protobuf's own files,
// and holds it against those files' descriptors.
func TestJSPB(t *testing.T) {
	dir := "../extract/testdata/node/node_modules/google-protobuf/google/protobuf"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no google-protobuf in node_modules: run 'make node-deps'")
	}
	e := New(Options{})
	truth := map[string]string{}
	for _, name := range []string{"any", "api", "duration", "source_context", "struct", "timestamp", "type", "wrappers"} {
		src, err := os.ReadFile(filepath.Join(dir, name+"_pb.js"))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Add(t.Context(), name, src); err != nil {
			t.Fatal(err)
		}
		fd, err := protoregistry.GlobalFiles.FindFileByPath("google/protobuf/" + name + ".proto")
		if err != nil {
			t.Fatal(err)
		}
		fieldFacts(truth, protodesc.ToFileDescriptorProto(fd))
	}
	r := e.Result()
	for _, u := range r.Unresolved {
		t.Errorf("%s: %s: %s", u.Place, u.Element, u.Reason)
	}
	got := map[string]string{}
	for _, f := range r.Files {
		fieldFacts(got, f)
	}
	for name, want := range truth {
		if got[name] != want {
			t.Errorf("%s:\n want %s\n got  %s", name, want, got[name])
		}
	}
	if len(got) != len(truth) || len(truth) < 60 {
		t.Errorf("%d facts, want %d", len(got), len(truth))
	}
}

func fieldFacts(out map[string]string, f *descriptorpb.FileDescriptorProto) {
	var message func(full string, m *descriptorpb.DescriptorProto)
	enum := func(full string, e *descriptorpb.EnumDescriptorProto) {
		for _, v := range e.Value {
			out[full+"."+v.GetName()] = fmt.Sprint(v.GetNumber())
		}
	}
	message = func(full string, m *descriptorpb.DescriptorProto) {
		for _, x := range m.Field {
			s := fmt.Sprint(x.GetNumber(), x.GetLabel(), x.GetType(), x.GetTypeName())
			if x.OneofIndex != nil {
				s += m.OneofDecl[x.GetOneofIndex()].GetName()
			}
			out[full+"."+x.GetName()] = s
		}
		for _, n := range m.NestedType {
			message(full+"."+n.GetName(), n)
		}
		for _, n := range m.EnumType {
			enum(full+"."+n.GetName(), n)
		}
	}
	for _, m := range f.MessageType {
		message(strings.TrimPrefix(f.GetPackage()+"."+m.GetName(), "."), m)
	}
	for _, e := range f.EnumType {
		enum(f.GetPackage()+"."+e.GetName(), e)
	}
}
