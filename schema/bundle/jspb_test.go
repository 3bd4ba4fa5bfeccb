package bundle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

	"unwire/captures/need"
)

// TestJSPB reads the code that google-protobuf ships for protobuf's own files,
// and holds it against those files' descriptors.
func TestJSPB(t *testing.T) {
	dir := "../extract/testdata/node/node_modules/google-protobuf/google/protobuf"
	need.Modules(t, "../extract/testdata/node")
	truth := map[string]string{}
	var files []string
	for _, name := range []string{"any", "api", "duration", "source_context", "struct", "timestamp", "type", "wrappers"} {
		files = append(files, filepath.Join(dir, name+"_pb.js"))
		fd, err := protoregistry.GlobalFiles.FindFileByPath("google/protobuf/" + name + ".proto")
		if err != nil {
			t.Fatal(err)
		}
		fieldFacts(truth, protodesc.ToFileDescriptorProto(fd))
	}
	if len(truth) < 60 {
		t.Fatalf("only %d facts", len(truth))
	}
	t.Run("files", func(t *testing.T) { wantFacts(t, truth, files...) })

	node := need.Node(t)
	out := t.TempDir()
	if msg, err := exec.Command(node, "../extract/testdata/node/jspb.mjs", out).CombinedOutput(); err != nil {
		t.Fatalf("jspb.mjs: %v\n%s", err, msg)
	}
	t.Run("webpack-eval", func(t *testing.T) { wantFacts(t, truth, filepath.Join(out, "webpack-eval.js")) })
	// Which enum a field has is told by comments alone.
	enumType := regexp.MustCompile(`TYPE_ENUM\.google\.protobuf\.(Syntax|NullValue|Field\.Kind|Field\.Cardinality)`)
	less := map[string]string{}
	for name, fact := range truth {
		less[name] = enumType.ReplaceAllString(fact, "TYPE_INT32")
	}
	for _, form := range []string{"esbuild", "rollup-terser"} {
		t.Run(form, func(t *testing.T) { wantFacts(t, less, filepath.Join(out, form+".js")) })
	}
}

// wantFacts reads scripts together and wants them to declare the facts.
func wantFacts(t *testing.T, truth map[string]string, files ...string) {
	t.Helper()
	e := New()
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Add(t.Context(), file, src); err != nil {
			t.Fatal(err)
		}
	}
	r := result(t, e)
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
	if len(got) != len(truth) {
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
