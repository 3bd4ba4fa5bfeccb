package extract

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/budget"
)

// messagesOf is a script with n messages of protobuf-es.
func messagesOf(n int) []byte {
	var b strings.Builder
	b.WriteString("const{proto3}=require(\"@bufbuild/protobuf\");\n")
	for i := range n {
		fmt.Fprintf(&b, "const M%d=proto3.makeMessageType(\"a.v1.M%d\",()=>[{no:1,name:\"a\",kind:\"scalar\",T:9}]);\n", i, i)
	}
	return []byte(b.String())
}

// writeGzip writes a compressed file.
func writeGzip(t *testing.T, name string, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTooManyDefinitions: in a file, in a member, in reflection JSON and in descriptors.
func TestTooManyDefinitions(t *testing.T) {
	const many = 20_000
	var set descriptorpb.FileDescriptorSet
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("a.proto"), Package: proto.String("a.v1"), Syntax: proto.String("proto3")}
	var tree strings.Builder
	for i := range many {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprint("M", i))})
		fmt.Fprintf(&tree, `"M%d":{"fields":{"a":{"type":"string","id":1}}},`, i)
	}
	set.File = append(set.File, file)
	descriptors, err := proto.MarshalOptions{Deterministic: true}.Marshal(&set)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"a.js":    messagesOf(many),
		"a.json":  []byte(`{"nested":{` + tree.String() + `"z":{"fields":{}}}}`),
		"b.js":    []byte("const t=JSON.parse('{\"nested\":{" + tree.String() + "\"z\":{\"fields\":{}}}}')"),
		"a.binpb": descriptors,
	} {
		path := writeGzip(t, name+".gz", data)
		if _, err := Read(t.Context(), path, nil); !errors.Is(err, ErrTooManyDefinitions) {
			t.Errorf("%s: %v", name, err)
		}

		// Uncompressed, the file has the size of its definitions.
		plain := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(plain, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if src, err := Read(t.Context(), plain, nil); name != "a.binpb" && (err != nil || len(src.Files) == 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSharedBudget: a thousand small files may not cost a thousand times what a small file may.
func TestSharedBudget(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(writeGzip(t, "a.js.gz", messagesOf(4000)))
	if err != nil {
		t.Fatal(err)
	}
	const files = 30
	for i := range files {
		// The name of the file is in none, so that all are the same script with other paths.
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.js.gz", i)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(t.Context(), dir, nil); err != nil {
		t.Errorf("copies: %v", err)
	}
	for i := range files {
		path := writeGzip(t, "a.js.gz", append(messagesOf(4000), fmt.Sprintf("//%d", i)...))
		if err := os.Rename(path, filepath.Join(dir, fmt.Sprintf("%d.js.gz", i))); err != nil {
			t.Fatal(err)
		}
	}
	ctx := budget.With(context.Background(), budget.New())
	if _, err := Read(ctx, dir, nil); !errors.Is(err, budget.ErrExceeded) {
		t.Errorf("distinct: %v", err)
	}
}
