package extract

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/need"
	"unwire/schema/javalite"
)

// javaArchives returns the Java archives that generated code needs, as Debian's packages install them.
func javaArchives(t *testing.T) (paths []string) {
	t.Helper()
	for _, archive := range []struct{ name, pkg string }{
		{"protobuf", "libprotobuf-java"},
		{"grpc-api", "libgrpc-java"},
		{"grpc-stub", "libgrpc-java"},
		{"grpc-protobuf", "libgrpc-java"},
		{"grpc-protobuf-lite", "libgrpc-java"},
		{"guava", "libguava-java"},
		{"geronimo-annotation-1.3-spec", "libgeronimo-annotation-1.3-spec-java"},
	} {
		path := filepath.Join("/usr/share/java", archive.name+".jar")
		need.File(t, path, archive.pkg)
		paths = append(paths, path)
	}
	return paths
}

// compileJava compiles the .proto files of a folder for Java and returns the folder of the classes. lite chooses the
// runtime without descriptors.
func compileJava(t *testing.T, dir string, lite bool) string {
	t.Helper()
	protoc := need.Protoc(t)
	javac := need.Program(t, "javac", "default-jdk-headless", "-version")
	plugin := need.Program(t, "grpc_java_plugin", "protobuf-compiler-grpc-java-plugin")
	archives := javaArchives(t)

	src, out := t.TempDir(), t.TempDir()
	target := src
	if lite {
		target = "lite:" + src
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-I" + dir, "--java_out=" + target, "--plugin=protoc-gen-grpc-java=" + plugin, "--grpc-java_out=" + target}, files...)
	if msg, err := exec.CommandContext(t.Context(), protoc, args...).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, msg)
	}
	args = []string{"-nowarn", "-proc:none", "-cp", strings.Join(archives, string(filepath.ListSeparator)), "-d", out}
	err = filepath.WalkDir(src, func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".java") {
			args = append(args, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.CommandContext(t.Context(), javac, args...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, msg)
	}
	return out
}

// definitionLines describes everything that classes of the lite runtime show: fields with labels and packing, enums and
// services.
func definitionLines(files []*descriptorpb.FileDescriptorProto) []string {
	list := fieldLines(files, func(s string) string { return s })
	var messages func(m []*descriptorpb.DescriptorProto)
	enums := func(list2 []*descriptorpb.EnumDescriptorProto) {
		for _, e := range list2 {
			for _, v := range e.Value {
				list = append(list, fmt.Sprint("enum ", e.GetName(), " ", v.GetName(), " = ", v.GetNumber()))
			}
		}
	}
	messages = func(m []*descriptorpb.DescriptorProto) {
		for _, m := range m {
			for _, f := range m.Field {
				oneof := ""
				if f.OneofIndex != nil && !f.GetProto3Optional() {
					oneof = m.OneofDecl[f.GetOneofIndex()].GetName()
				}
				list = append(list, fmt.Sprint(m.GetName(), ".", f.GetName(), ": ", f.GetLabel(), " ", f.GetProto3Optional(), " ", oneof))
			}
			enums(m.EnumType)
			messages(m.NestedType)
		}
	}
	for _, f := range files {
		list = append(list, "syntax of "+f.GetPackage()+": "+f.GetSyntax())
		messages(f.MessageType)
		enums(f.EnumType)
		for _, s := range f.Service {
			for _, m := range s.Method {
				list = append(list, fmt.Sprint("rpc ", f.GetPackage(), ".", s.GetName(), "/", m.GetName(), m.GetInputType(), m.GetOutputType(), m.GetClientStreaming(), m.GetServerStreaming()))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestJavaLite compiles definitions with protoc and javac for the lite runtime, which has no descriptors, and compares
// what is read from the classes with what protoc reads from the definitions: one by one, and in an archive.
func TestJavaLite(t *testing.T) {
	t.Parallel()
	classes := compileJava(t, "testdata/javalite", true)
	jar := filepath.Join(t.TempDir(), "app.jar")
	if msg, err := exec.CommandContext(t.Context(), need.Program(t, "jar", "default-jdk-headless", "--version"), "cf", jar, "-C", classes, ".").CombinedOutput(); err != nil {
		t.Fatalf("jar: %v\n%s", err, msg)
	}
	truth := protocSet(t, "testdata/javalite", "shop.proto", "old.proto").File
	truth = slices.DeleteFunc(truth, func(f *descriptorpb.FileDescriptorProto) bool { return f.GetPackage() == "google.protobuf" })
	for _, f := range truth {
		if f.GetSyntax() == "" {
			f.Syntax = new("proto2")
		}
		// A file without services has the name of its Java package.
		if len(f.Service) == 0 {
			f.Package = f.Options.JavaPackage
		}
	}
	want := strings.Join(definitionLines(truth), "\n")
	for _, path := range []string{classes, jar} {
		set := extracted(t, path)
		for _, f := range set.Files {
			if f.GetSyntax() == "" {
				f.Syntax = new("proto2")
			}
		}
		if got := strings.Join(definitionLines(set.Files), "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		wantCompiles(t, set)
	}

	// With descriptors, the same definitions are read once, and nothing is read from the descriptions.
	c := newCollector("full", formats())
	if err := c.addPath(t.Context(), compileJava(t, "testdata/javalite", false)); err != nil {
		t.Fatal(err)
	}
	if src := found(t, c); slices.Contains(src.Forms, javalite.Form) {
		t.Errorf("forms: %q", src.Forms)
	}
}
