package extract

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/archive"
	"unwire/schema/bundle"
)

const script = `proto3.makeMessageType("shop.v1.Item", () => [{ no: 1, name: "name", kind: "scalar", T: 9 }]);`

// found is what a collector found.
func found(t testing.TB, c *collector) *Source {
	t.Helper()
	s, err := c.declared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func zipped(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tgz(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	w := tar.NewWriter(zw)
	for i := 0; i+1 < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// raw is the serialized descriptor of a file in text format.
func raw(t testing.TB, text string) string {
	t.Helper()
	f := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal([]byte(text), f); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func collected(t *testing.T, name string, data []byte) (*Source, error) {
	t.Helper()
	c := newCollector(name, formats())
	err := c.addData(context.Background(), name, data)
	return found(t, c), err
}

// Archives in archives, with what is in them of every kind.
func TestNestedArchives(t *testing.T) {
	const pkg = `syntax:'proto3' package:'shop.v1'`
	lib := "\x7fELF\x00\x00" + raw(t, `name:'shop/v1/lib.proto' `+pkg+` message_type{name:'InLibrary'}`) + "\x00\x00"
	python := "DESCRIPTOR = pool.AddSerializedFile(b'" + strings.NewReplacer("\n", `\n`, "'", `\'`, "\\", `\\`, "\r", `\r`).
		Replace(raw(t, `name:'shop/v1/py.proto' `+pkg+` message_type{name:'InPython'}`)) + "')\n"
	jar := zipped(t, "a/lib.so", lib, "a/readme.txt", "nothing", "../../climb.js", script)
	data := zipped(t, "extension/inner.tgz", string(tgz(t, "package/app.jar", string(jar), "package/x_pb2.py", python)), "extension/pic.png", "\x89PNG\x00"+lib)
	src, err := collected(t, "ext.vsix", data)
	if err != nil {
		t.Fatal(err)
	}
	set := merged(t, src)
	got := facts(set.Files)
	for _, want := range []string{"message shop.v1.Item", "message shop.v1.InLibrary", "message shop.v1.InPython"} {
		if _, ok := got[want]; !ok {
			t.Errorf("no %s", want)
		}
	}
	if len(src.Unresolved) > 0 || !slices.Equal(src.Forms, []string{"descriptor", "protobuf-es 1", "source literal"}) {
		t.Errorf("%v, %v", src.Unresolved, src.Forms)
	}
}

// What is wrong with one member does not cost the others.
func TestBrokenMembers(t *testing.T) {
	src, err := collected(t, "x.zip", zipped(t,
		"a.tgz", "\x1f\x8b\x08\x00broken", "set.binpb", "no set", "cut.tgz", string(tgz(t, "y.js", script)[:60]), "good.js", script))
	if err != nil {
		t.Fatal(err)
	}
	if n := merged(t, src).Count(); n.Messages != 1 {
		t.Errorf("%+v", n)
	}
	if len(src.Unresolved) != 3 || src.Unresolved[0].Place.File != "x.zip/a.tgz" || !strings.HasPrefix(src.Unresolved[0].Reason, "not read: ") {
		t.Errorf("%v", src.Unresolved)
	}
}

func TestTooManyArchives(t *testing.T) {
	data := zipped(t, "a.js", script)
	for range maxNested {
		data = zipped(t, "a.js", script, "a.zip", string(data))
	}
	src, err := collected(t, "x.zip", data)
	if err != nil || len(src.Unresolved) != 1 || !strings.Contains(src.Unresolved[0].Reason, "more than 8 deep") {
		t.Errorf("%v, %v", err, src.Unresolved)
	}
}

// Archives that are small and many times in each other are a bomb, which ends
// the reading and says so.
func TestBomb(t *testing.T) {
	bomb := string(zipped(t, "z.bin", strings.Repeat("\x00", 64<<20)))
	_, err := collected(t, "x.zip", zipped(t, "1.zip", bomb, "2.zip", bomb, "3.zip", bomb, "4.zip", bomb, "5.zip", bomb))
	if !errors.Is(err, archive.ErrBomb) {
		t.Error(err)
	}
}

// One file that cannot be read does not cost a folder, and links are not
// followed.
func TestFolderWithFaults(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(dir, "good.js"): script, filepath.Join(dir, "bad.binpb"): "no set", filepath.Join(dir, "huge.js"): "",
		filepath.Join(outside, "outside.js"): strings.ReplaceAll(script, "Item", "Outside"),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Truncate(filepath.Join(dir, "huge.js"), bundle.MaxScript+1),
		os.Symlink(filepath.Join(outside, "outside.js"), filepath.Join(dir, "link.js")), os.Symlink(outside, filepath.Join(dir, "folder"))); err != nil {
		t.Fatal(err)
	}
	c := newCollector(dir, formats())
	if err := c.addPath(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	src := found(t, c)
	if n := merged(t, src).Count(); n.Messages != 1 || len(src.Unresolved) != 2 {
		t.Errorf("%+v, %v", n, src.Unresolved)
	}
}

// Versions of a file that differ are both kept, and each refers to its own.
func TestVersions(t *testing.T) {
	v1 := raw(t, `name:'a/v1/x.proto' package:'a.v1' syntax:'proto3' message_type{name:'A' `+field("s", 1, "")+`} message_type{name:'Uses' `+field("a", 1, ".a.v1.A")+`}`)
	v2 := raw(t, `name:'a/v1/x.proto' package:'a.v1' syntax:'proto3' message_type{name:'A' `+field("s", 2, "")+`} message_type{name:'Uses2' `+field("a", 1, ".a.v1.A")+`}`)
	src, err := collected(t, "lib.so", []byte("\x00"+v1+"\x00"+v2+"\x00"+v1+"\x00"))
	if err != nil {
		t.Fatal(err)
	}
	if len(src.Files) != 2 {
		t.Errorf("%d files", len(src.Files))
	}
	set := merged(t, src)
	got := facts(set.Files)
	if !strings.Contains(got["field a.v1.Uses.a"], " .a.v1.A ") || !strings.Contains(got["field a.v1.Uses2.a"], " .a.v1.A_2 ") {
		t.Error(got)
	}
	if len(set.Unresolved) != 1 || !strings.Contains(set.Unresolved[0].Reason, "A_2") {
		t.Error(set.Unresolved)
	}
}

// What is imported and not there is listed, and the rest links.
func TestMissingImport(t *testing.T) {
	src, err := collected(t, "lib.so", []byte("\x00"+raw(t, `name:'a.proto' package:'a' syntax:'proto3' dependency:'gone/gone.proto' dependency:'google/protobuf/any.proto'
		message_type{name:'A' `+field("g", 1, ".gone.Gone")+field("any", 2, ".google.protobuf.Any")+`}`)))
	if err != nil {
		t.Fatal(err)
	}
	if len(src.Unresolved) != 1 || src.Unresolved[0].Element != "gone/gone.proto" || src.Unresolved[0].Place.Offset != 1 {
		t.Errorf("%+v", src.Unresolved)
	}
	if n := merged(t, src).Count(); n != (Count{Messages: 1, Fields: 2}) {
		t.Errorf("%+v", n)
	}
}

// A mapped archive, with the files beside it.
func TestAsarBeside(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "app.asar")
	index := `{"files":{"a.js":{"size":` + "94" + `,"offset":"0"},"b.js":{"size":9,"unpacked":true}}}`
	if len(script) != 94 {
		t.Fatal(len(script))
	}
	for len(index)%4 != 0 {
		index += " "
	}
	data := []byte{4, 0, 0, 0, byte(len(index) + 8), 0, 0, 0, byte(len(index) + 4), 0, 0, 0, byte(len(index)), 0, 0, 0}
	data = append(append(append(data, index...), script...), make([]byte, leastMapped)...)
	if err := errors.Join(os.WriteFile(name, data, 0o600), os.Mkdir(name+".unpacked", 0o700),
		os.WriteFile(filepath.Join(name+".unpacked", "b.js"), []byte(strings.ReplaceAll(script, "Item", "Beside")), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := newCollector(name, formats())
	var last Progress
	c.onProgress = func(p Progress) { last = p }
	if err := c.addPath(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if n := merged(t, found(t, c)).Count(); n.Messages != 2 {
		t.Errorf("%+v", n)
	}
	if last.File == "" {
		t.Error("no progress")
	}
}

// BenchmarkArchive reads a package of scripts and executables as a whole.
func BenchmarkArchive(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	exe, err := os.ReadFile(self)
	if err != nil {
		b.Fatal(err)
	}
	code := strings.Repeat(script+strings.Repeat("\nfunction f(a,b){return a.map(x=>x+b).filter(Boolean)}\n", 500), 100)
	data := tgz(b, "package/a.js", code, "package/bin/x", string(exe))
	b.SetBytes(int64(len(code) + len(exe)))
	for b.Loop() {
		c := newCollector("x", formats())
		if err := c.addData(context.Background(), "x.tgz", data); err != nil {
			b.Fatal(err)
		}
	}
}

// A proto3 message needs open enums: of one that is declared as both, that one
// is kept; one of proto2 only is an int32.
func TestClosedEnums(t *testing.T) {
	const enum = ` enum_type{name:'Mode' value{name:'M' number:0}} `
	uses := func(typ string) string {
		return `message_type{name:'Uses' field{name:'f' number:1 label:LABEL_OPTIONAL type:TYPE_ENUM type_name:'` + typ + `'}}`
	}
	set := merged(t, source(t, `name:'a' package:'p' syntax:'proto2'`+enum, `name:'b' package:'p' syntax:'proto3'`+enum+uses(".p.Mode")))
	if got := facts(set.Files)["field p.Uses.f"]; !strings.Contains(got, "TYPE_ENUM .p.Mode") || len(set.Unresolved) > 0 {
		t.Error(got, set.Unresolved)
	}
	set = merged(t, source(t, `name:'a' package:'p' syntax:'proto2' message_type{name:'Old' `+enum+`}`, `name:'b' package:'p' syntax:'proto3' `+uses(".p.Old.Mode")))
	if got := facts(set.Files)["field p.Uses.f"]; !strings.Contains(got, "TYPE_INT32") || len(set.Unresolved) != 1 {
		t.Error(got, set.Unresolved)
	}
}

// The test is an executable itself: what it has registered comes out, and links.
func TestExecutable(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	set := extracted(t, self)
	truth := map[string]string{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if !isStandardFile(f.Path()) {
			for fact, text := range facts([]*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(f)}) {
				truth[fact] = text
			}
		}
		return true
	})
	found := facts(set.Files)
	// The scripts of these tests are text in the executable, and are read as such.
	maps.DeleteFunc(found, func(fact, _ string) bool { return strings.Contains(fact, " shop.v1.") || strings.Contains(fact, " p.") })
	if n := compare(t, truth, found, nil); n != len(truth) || n < 100 {
		t.Errorf("%d of %d facts", n, len(truth))
	}
	wantCompiles(t, set)
}

// A runtime that carries its script is an executable with text in it.
func TestScriptsInExecutable(t *testing.T) {
	data := "\x7fELF\x00\x01\xff\xfe" + strings.Repeat("\x90\x00", 100) + "// @bun\n" + script + "\n\x00---- trailer ----\n\x00" +
		strings.ReplaceAll(script, "Item", "Other") + "\x00"
	src, err := collected(t, "app", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if n := merged(t, src).Count(); n.Messages != 2 || len(src.Unresolved) > 0 {
		t.Errorf("%+v, %v", n, src.Unresolved)
	}
}
