package extract

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/need"
)

// A descriptor set with its source info gives the comments back, whether it is a
// file or stands in an executable as prost has it.
func TestComments(t *testing.T) {
	protoc := need.Program(t, "protoc", "protobuf-compiler")
	dir := t.TempDir()
	const text = `syntax = "proto3";

package talk.v1;

// How loud.
enum Level {
  LEVEL_LOW = 0;
  // Louder than
  //   a lion.
  LEVEL_HIGH = 1;
}

// What is said.
//
// Twice.
message Line {
  message Part {
    // Its words.
    string text = 1;
  }
  oneof kind {
    // One of them.
    Part part = 2;
  }
  Level level = 3; // behind it
}

// Who answers.
service Talk {
  // Says it.
  rpc Say(Line) returns (stream Line);
}
`
	file := filepath.Join(dir, "talk.proto")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(dir, "set.binpb")
	if out, err := exec.Command(protoc, "-I"+dir, "--include_source_info", "-o", set, file).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, out)
	}
	data, err := os.ReadFile(set)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("\x7fELF\x00"+string(data)+"\x00\x01\x02"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{set, program} {
		s := extracted(t, input)
		got := ""
		for _, body := range s.Print() {
			got += body
		}
		for _, want := range []string{
			"// How loud.\nenum Level {", "  LEVEL_LOW = 0;\n  // Louder than\n  //   a lion.\n  LEVEL_HIGH = 1;", "// What is said.\n//\n// Twice.\nmessage Line {",
			"    // Its words.\n    string text = 1;", "    // One of them.\n    Part part = 2;", "  // behind it\n  Level level = 3;",
			"// Who answers.\nservice Talk {\n  // Says it.\n  rpc Say(Line)",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", filepath.Base(input), want, got)
			}
		}
		wantCompiles(t, s)
	}
}

// A comment at what is not there is nobody's, and none leaves its lines.
func TestForeignComments(t *testing.T) {
	f := &descriptorpb.FileDescriptorProto{SourceCodeInfo: &descriptorpb.SourceCodeInfo{}}
	for _, path := range [][]int32{nil, {4}, {4, 0}, {4, -1}, {5, 0, 2, 0}, {6, 1 << 30, 2, 0}, {7, 0}, {4, 0, 3, 0, 2, 0}, {6, 0, 2, 0}, {99, 0}} {
		text := "lost"
		f.SourceCodeInfo.Location = append(f.SourceCodeInfo.Location, &descriptorpb.SourceCodeInfo_Location{Path: path, LeadingComments: &text})
	}
	if got := comments(f); len(got) > 0 {
		t.Error(got)
	}
	if got := strings.Join(commentLines("a\r\x00b\n message X {}\r\n"), "|"); got != "ab|message X {}" {
		t.Errorf("%q", got)
	}
}
