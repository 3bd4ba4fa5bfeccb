package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/need"
)

// protoc's own library is C++ with descriptors, and protoc tells what they are.
func TestCPlusPlusLibrary(t *testing.T) {
	protoc := need.Protoc(t)
	libs, _ := filepath.Glob("/usr/lib/*/libprotobuf.so.*")
	if len(libs) == 0 {
		t.Skip("there is no /usr/lib/*/libprotobuf.so.*: install libprotobuf-dev")
	}
	names := []string{"any", "api", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type", "wrappers", "descriptor"}
	out := filepath.Join(t.TempDir(), "set")
	args := []string{"-I/usr/include", "-o", out}
	for _, n := range names {
		if _, err := os.Stat("/usr/include/google/protobuf/" + n + ".proto"); err != nil {
			t.Skipf("the files of that library are not all there: install libprotobuf-dev: %v", err)
		}
		args = append(args, "google/protobuf/"+n+".proto")
	}
	if msg, err := exec.Command(protoc, args...).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		t.Fatal(err)
	}
	lib, err := os.ReadFile(libs[0])
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*descriptorpb.FileDescriptorProto{}
	for _, f := range scanned(t, lib) {
		found[f.File.GetName()] = f.File
	}
	for _, want := range set.File {
		clearJSONNames(want.MessageType)
		got := found[want.GetName()]
		if got != nil {
			clearJSONNames(got.MessageType)
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: not as protoc has it", want.GetName())
		}
	}
}

// clearJSONNames takes out what protoc adds for plugins and leaves out of code.
func clearJSONNames(list []*descriptorpb.DescriptorProto) {
	for _, m := range list {
		for _, f := range m.Field {
			f.JsonName = nil
		}
		for _, x := range m.Extension {
			x.JsonName = nil
		}
		clearJSONNames(m.NestedType)
	}
}

// What protoc writes for other languages, of all that a descriptor can hold.
func TestGeneratedSource(t *testing.T) {
	protoc := need.Protoc(t)
	dir := t.TempDir()
	proto3 := "../extract/testdata/proto"
	files := []string{"acme/base/v1/base.proto", "acme/kitchen/v1/kitchen.proto", "acme/legacy/legacy.proto"}
	args := append([]string{"-I" + proto3, "--python_out=" + dir, "--cpp_out=" + dir, "--java_out=" + dir, "--csharp_out=" + dir, "-o", filepath.Join(dir, "set")}, files...)
	if msg, err := exec.Command(protoc, args...).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, msg)
	}
	// Of proto2 there is no PHP.
	if msg, err := exec.Command(protoc, "-I"+proto3, "--php_out="+dir, files[0], files[1]).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, msg)
	}
	data, err := os.ReadFile(filepath.Join(dir, "set"))
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		t.Fatal(err)
	}
	want := map[string]*descriptorpb.FileDescriptorProto{}
	for _, f := range set.File {
		clearJSONNames(append(f.MessageType, &descriptorpb.DescriptorProto{Extension: f.Extension}))
		want[f.GetName()] = f
	}
	found := map[string]int{}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "set" {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		list, err := ScanSource(t.Context(), src)
		for _, f := range list {
			clearJSONNames(append(f.File.MessageType, &descriptorpb.DescriptorProto{Extension: f.File.Extension}))
			truth := want[f.File.GetName()]
			if filepath.Ext(path) == ".php" && truth != nil { // imports are calls there
				truth = proto.Clone(truth).(*descriptorpb.FileDescriptorProto)
				truth.Dependency, f.File.Dependency = nil, nil
			}
			if !proto.Equal(f.File, truth) {
				t.Errorf("%s: %s is not what protoc was given", filepath.Base(path), f.File.GetName())
				continue
			}
			found[filepath.Ext(path)]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(found)
	for ext, n := range map[string]int{".py": 3, ".cc": 3, ".java": 3, ".cs": 3, ".php": 2} {
		if found[ext] != n {
			t.Errorf("%s: %d of %d files", ext, found[ext], n)
		}
	}
}
