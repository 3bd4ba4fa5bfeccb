package reflection_test

import (
	"path/filepath"
	"testing"
	"time"

	v1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode/envelope"
	"unwire/schema"
	"unwire/schema/reflection"
)

// answers are messages of a server that describe a file.
func answers(t *testing.T, path, text string) []*v1.ServerReflectionResponse {
	t.Helper()
	s, err := schema.FromTexts(map[string]string{path: text})
	if err != nil {
		t.Fatal(err)
	}
	file, err := proto.Marshal(protodesc.ToFileDescriptorProto(s.Files[0]))
	if err != nil {
		t.Fatal(err)
	}
	return []*v1.ServerReflectionResponse{
		{MessageResponse: &v1.ServerReflectionResponse_ErrorResponse{ErrorResponse: &v1.ErrorResponse{ErrorCode: 5, ErrorMessage: "not here"}}},
		{MessageResponse: &v1.ServerReflectionResponse_FileDescriptorResponse{FileDescriptorResponse: &v1.FileDescriptorResponse{FileDescriptorProto: [][]byte{file, []byte("no file")}}}},
	}
}

// record records a call of reflection.
func record(t *testing.T, s *store.Store, url, contentType string, marshal func(proto.Message) ([]byte, error), list []*v1.ServerReflectionResponse) {
	t.Helper()
	h := captures.Headers{{Name: "content-type", Value: contentType}}
	rec, err := s.Begin(captures.Exchange{Method: "POST", URL: url, HTTP: "2", RequestHeaders: h})
	if err != nil {
		t.Fatal(err)
	}
	rec.Response(200, h)
	for i, m := range list {
		data, err := marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		rec.ChunkAt(captures.Down, time.Duration(i)*time.Millisecond, envelope.Append(nil, 0, data))
	}
	rec.EndAt(time.Second, captures.Complete, "")
}

// What servers reported is found in traffic: v1 and v1alpha, gRPC and Connect, protobuf and
// JSON, below a path.
func TestFromCapture(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.uwc")
	s, err := store.Create(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := answers(t, "a.proto", `syntax = "proto3"; package a; message A { string name = 1; } service S { rpc Get(A) returns (A); }`)
	b := answers(t, "b.proto", `syntax = "proto3"; package b; message B { string name = 1; }`)
	other := answers(t, "a.proto", `syntax = "proto3"; package a; message A { string title = 1; }`)
	record(t, s, "http://h/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "application/grpc", proto.Marshal, a)
	record(t, s, "http://h/api/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "application/connect+json", protojson.Marshal, b)
	record(t, s, "http://h/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "application/grpc", proto.Marshal, other)
	record(t, s, "http://h/other.v1.Service/Method", "application/grpc", proto.Marshal, answers(t, "c.proto", `syntax = "proto3"; message C {}`))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := store.Open(path, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it was only read

	files, err := reflection.FromCapture(t.Context(), c, 0)
	if err != nil {
		t.Fatal(err)
	}
	defs, err := files.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if files.Len() != 2 || len(files.Conflicts) != 1 || defs.Method("a.S", "Get") == nil || defs.Message("b.B") == nil || defs.Message("a.A").Fields().ByName("name") == nil {
		t.Errorf("%d files, conflicts %q", files.Len(), files.Conflicts)
	}
	files, err = reflection.FromCapture(t.Context(), c, 3)
	if err != nil {
		t.Fatal(err)
	}
	if defs, err := files.Schema(t.Context()); err != nil || defs.Message("a.A").Fields().ByName("title") == nil || files.Len() != 1 {
		t.Errorf("exchange 3: %v", err)
	}
	if files, err := reflection.FromCapture(t.Context(), c, 4); err != nil || files.Len() != 0 {
		t.Errorf("another method: %v", err)
	}
}
