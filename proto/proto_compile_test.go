package proto_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/reporter"
	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/need"
	"unwire/proto"
)

// protoFiles returns the paths of the embedded .proto files, sorted.
func protoFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(proto.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".proto" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// compile compiles the embedded files; a warning is an error, which is how an
// unused import shows.
func compile(t *testing.T) linker.Files {
	t.Helper()
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(name string) (io.ReadCloser, error) { return proto.Files.Open(name) },
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
		Reporter: reporter.NewReporter(nil, func(err reporter.ErrorWithPos) {
			t.Errorf("warning: %v", err)
		}),
	}
	files, err := compiler.Compile(context.Background(), protoFiles(t)...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCompile(t *testing.T) {
	files := compile(t)
	if len(files) < 20 {
		t.Errorf("%d files, want 20 or more", len(files))
	}
	for _, f := range files {
		if want := map[string]string{"agent": "agent.v1", "aiserver": "aiserver.v1"}[path.Dir(path.Dir(f.Path()))]; string(f.Package()) != want {
			t.Errorf("%s: package %s, want %s", f.Path(), f.Package(), want)
		}
	}
}

// TestProtoc compiles with the reference compiler, which must say nothing and
// see the same elements.
func TestProtoc(t *testing.T) {
	protoc := need.Protoc(t)
	out := filepath.Join(t.TempDir(), "set.pb")
	args := append([]string{"-I.", "--descriptor_set_out=" + out}, protoFiles(t)...)
	var talk bytes.Buffer
	cmd := exec.Command(protoc, args...)
	cmd.Stdout, cmd.Stderr = &talk, &talk
	if err := cmd.Run(); err != nil || talk.Len() > 0 {
		t.Fatalf("protoc: %v\n%s", err, talk.String())
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := pb.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	files := compile(t)
	for _, theirs := range set.File {
		ours := files.FindFileByPath(theirs.GetName())
		if ours == nil {
			t.Errorf("%s: only protoc has it", theirs.GetName())
			continue
		}
		if ours.Messages().Len() != len(theirs.MessageType) || ours.Enums().Len() != len(theirs.EnumType) || ours.Services().Len() != len(theirs.Service) {
			t.Errorf("%s: %d messages, %d enums, %d services; protoc has %d, %d, %d", theirs.GetName(),
				ours.Messages().Len(), ours.Enums().Len(), ours.Services().Len(), len(theirs.MessageType), len(theirs.EnumType), len(theirs.Service))
		}
	}
	if len(set.File) != len(files) {
		t.Errorf("protoc compiled %d files, protocompile %d", len(set.File), len(files))
	}
}

// TestEmbed finds a file that lies in the folder and that the embed pattern
// leaves out.
func TestEmbed(t *testing.T) {
	embedded := protoFiles(t)
	found := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".proto" {
			return err
		}
		found++
		if !slices.Contains(embedded, filepath.ToSlash(name)) {
			t.Errorf("%s is not embedded", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != len(embedded) {
		t.Errorf("%d files on disk, %d embedded", found, len(embedded))
	}
	if _, err := proto.Files.ReadFile("evidence.jsonl"); err != nil {
		t.Error(err)
	}
}
