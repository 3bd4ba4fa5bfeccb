package extract

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

// editions is a file with the features that decide how a message is written.
const editions = `edition = "2023";
package acme.editions.v1;
option features.field_presence = IMPLICIT;
option features.enum_type = CLOSED;

enum Level { LEVEL_LOW = 3; LEVEL_HIGH = 4; }

enum Open {
  option features.enum_type = OPEN;
  OPEN_ZERO = 0;
}

message Tray {
  string implicit = 1;
  string explicit = 2 [features.field_presence = EXPLICIT, default = "a"];
  bytes required = 3 [features.field_presence = LEGACY_REQUIRED];
  Tray delimited = 4 [features.message_encoding = DELIMITED];
  repeated int32 expanded = 5 [features.repeated_field_encoding = EXPANDED];
  Level level = 6 [features.field_presence = EXPLICIT];
  map<string, Tray> trays = 7;
  oneof kind { Open open = 8; string raw = 9 [features.utf8_validation = NONE]; }
  extensions 100 to 200;
  reserved 20, 30 to 40;
  reserved gone, old;
}

extend Tray { int32 more = 100 [deprecated = true]; }

service Kitchen { rpc Serve(stream Tray) returns (Tray); }
`

// TestEditions reads a file of an edition as protobuf-es 2 ships it, and wants
// the text to compile to the same descriptor.
func TestEditions(t *testing.T) {
	t.Parallel()
	want := compiledText(t, map[string]string{"acme/editions/v1/editions.proto": editions})[0]
	data, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle.js")
	js := fmt.Sprintf("const a=(0,n.fileDesc)(%q);", base64.RawStdEncoding.EncodeToString(data))
	if err := os.WriteFile(file, []byte(js), 0o600); err != nil {
		t.Fatal(err)
	}
	set := extracted(t, file)
	truth := facts([]*descriptorpb.FileDescriptorProto{want})
	if n := compare(t, truth, facts(set.Files), nil); n != len(truth) || n < 18 {
		t.Errorf("%d of %d facts", n, len(truth))
	}
	again := compiledText(t, set.Print())
	if len(again) != 1 || !proto.Equal(again[0].GetOptions(), want.GetOptions()) {
		t.Errorf("options %v, want %v", again[0].GetOptions(), want.GetOptions())
	}
	for i, m := range again[0].MessageType {
		if !proto.Equal(canonical(m), canonical(want.MessageType[i])) {
			t.Errorf("got  %v\nwant %v", m, want.MessageType[i])
		}
	}
	for i, e := range again[0].EnumType {
		if !proto.Equal(e, want.EnumType[i]) {
			t.Errorf("got  %v\nwant %v", e, want.EnumType[i])
		}
	}
}

// compiledText compiles files as protocompile does.
func compiledText(t *testing.T, files map[string]string) []*descriptorpb.FileDescriptorProto {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
		Accessor: protocompile.SourceAccessorFromMap(files),
	})}
	var out []*descriptorpb.FileDescriptorProto
	for name := range files {
		linked, err := c.Compile(context.Background(), name)
		if err != nil {
			t.Fatalf("%v\n%s", err, files[name])
		}
		fd := protodesc.ToFileDescriptorProto(linked[0])
		fd.SourceCodeInfo = nil
		out = append(out, fd)
	}
	return out
}
