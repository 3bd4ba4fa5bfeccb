package embedded

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
	_ "google.golang.org/protobuf/types/pluginpb"
)

// registered are the descriptors that are linked into the test.
func registered(t testing.TB) map[string]*descriptorpb.FileDescriptorProto {
	t.Helper()
	files := map[string]*descriptorpb.FileDescriptorProto{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		files[f.Path()] = protodesc.ToFileDescriptorProto(f)
		return true
	})
	if len(files) < 10 {
		t.Fatalf("only %d files are registered", len(files))
	}
	return files
}

// corpus is registered as a list, in an order that stays.
func corpus(t testing.TB) []*descriptorpb.FileDescriptorProto {
	var list []*descriptorpb.FileDescriptorProto
	for _, f := range registered(t) {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *descriptorpb.FileDescriptorProto) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func scanned(t testing.TB, data []byte) []Found {
	t.Helper()
	list, err := Scan(context.Background(), data)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// wantFiles wants exactly the files, in order.
func wantFiles(t *testing.T, got []Found, form Form, want ...*descriptorpb.FileDescriptorProto) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d descriptors, want %d", len(got), len(want))
	}
	for i, f := range want {
		if !proto.Equal(got[i].File, f) || got[i].Form != form {
			t.Errorf("%s: not what was embedded (%s, %s)", f.GetName(), got[i].File.GetName(), got[i].Form)
		}
	}
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// The test is itself an executable with descriptors, whose truth is what it has
// registered.
func TestGoExecutable(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	want := registered(t)
	got := map[string]bool{}
	for _, f := range scanned(t, data) {
		fd, err := protodesc.NewFile(f.File, protoregistry.GlobalFiles)
		if err != nil {
			t.Errorf("%s at %#x: %v", f.File.GetName(), f.Offset, err)
			continue
		}
		if !proto.Equal(protodesc.ToFileDescriptorProto(fd), want[f.File.GetName()]) {
			t.Errorf("%s at %#x: %d bytes are not what is registered", f.File.GetName(), f.Offset, f.Size)
		}
		got[f.File.GetName()] = true
	}
	for name := range want {
		if !got[name] {
			t.Errorf("%s was not found", name)
		}
	}
	t.Logf("%d files in %d MB", len(got), len(data)>>20)
}

// Descriptors between other bytes, whatever stands before and after.
func TestRawInNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	files := corpus(t)
	data := noise(r, 1000)
	var sizes []int
	for i, f := range files {
		raw := marshal(t, f)
		sizes = append(sizes, len(raw))
		data = append(data, raw...)
		switch i % 4 {
		case 0: // the next one follows at once
		case 1:
			data = append(data, 0)
		case 2:
			data = append(data, noise(r, r.IntN(100))...)
		case 3:
			data = append(data, "Some other string constant, \"quoted\" and all: b\x06proto"...)
		}
	}
	got := scanned(t, data)
	wantFiles(t, got, formRaw, files...)
	for i, f := range got {
		if f.Size != sizes[i] {
			t.Errorf("%s: %d bytes, want %d", f.File.GetName(), f.Size, sizes[i])
		}
	}
}

func TestDescriptorSet(t *testing.T) {
	files := corpus(t)
	wantFiles(t, scanned(t, marshal(t, &descriptorpb.FileDescriptorSet{File: files})), formRaw, files...)
}

func TestGzipped(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	files := corpus(t)
	var b bytes.Buffer
	for _, f := range files {
		zw := gzip.NewWriter(&b)
		_, _ = zw.Write(marshal(t, f))
		if err := zw.Close(); err != nil {
			t.Fatal(err)
		}
		b.Write(noise(r, r.IntN(50)))
	}
	zw := gzip.NewWriter(&b)
	_, _ = zw.Write([]byte("something else"))
	_ = zw.Close()
	wantFiles(t, scanned(t, b.Bytes()), formGzipped, files...)
}

func TestBase64(t *testing.T) {
	files := corpus(t)
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		var b strings.Builder
		for _, f := range files {
			fmt.Fprintf(&b, "x.fileDesc(%q)\n", enc.EncodeToString(marshal(t, f)))
		}
		wantFiles(t, scanned(t, []byte(b.String())), formBase64, files...)
	}
}

// The strings of a .NET assembly: pieces of 60 characters, as its codegen
// writes them, each with its length and a last byte.
func TestUTF16(t *testing.T) {
	files := corpus(t)
	var b bytes.Buffer
	b.WriteByte(0)
	piece := func(s string) {
		if n := 2*len(s) + 1; n < 0x80 {
			b.WriteByte(byte(n))
		} else {
			b.Write([]byte{0x80 | byte(n>>8), byte(n)})
		}
		b.Write(wide([]byte(s)))
		b.WriteByte(0)
	}
	for i, f := range files {
		piece("other")
		size := 60
		if i%3 == 0 {
			size = 400
		}
		for c := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(marshal(t, f))), size) {
			piece(string(c))
		}
		piece("Name")
	}
	wantFiles(t, scanned(t, b.Bytes()), formUTF16, files...)
}

func TestSourceLiterals(t *testing.T) {
	files := corpus(t)
	octal := func(data []byte) string {
		var b strings.Builder
		for _, c := range data {
			switch {
			case c == '\n':
				b.WriteString(`\n`)
			case c == '"' || c == '\\' || c == '\'':
				b.WriteString(`\` + string(rune(c)))
			case c < ' ' || c > '~':
				fmt.Fprintf(&b, `\%03o`, c)
			default:
				b.WriteByte(c)
			}
		}
		return b.String()
	}
	pieces := func(data []byte, size int, format, joint string) string {
		var list []string
		for c := range slices.Chunk(data, size) {
			list = append(list, fmt.Sprintf(format, octal(c)))
		}
		return strings.Join(list, joint)
	}
	for name, write := range map[string]func(data []byte) string{
		"C++":  func(d []byte) string { return "const char x[] =\n" + pieces(d, 40, `"%s"`, "\n  ") + ";\n" },
		"Java": func(d []byte) string { return "String[] data = {\n" + pieces(d, 40, `"%s"`, " +\n") + "\n};" },
		"PHP": func(d []byte) string {
			return "internalAddGeneratedFile(\n" + pieces(d, 80, `"%s"`, " .\n") + ", true);"
		},
		"hex": func(d []byte) string { return `hex2bin("` + hex.EncodeToString(d) + `")` },
		"Python": func(d []byte) string {
			return "# don't\nAddSerializedFile(b'" + octal(d) + "')\n_globals = globals()\nX = 'name.proto'"
		},
		"C#": func(d []byte) string {
			var list []string
			for c := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(d)), 60) {
				list = append(list, fmt.Sprintf("%q", c))
			}
			return "FromBase64String(string.Concat(\n" + strings.Join(list, ",\n  ") + "));\n"
		},
		"Go, quoted": func(d []byte) string {
			var list []string
			for c := range bytes.Lines(d) {
				list = append(list, fmt.Sprintf("%q", c))
			}
			return "const x = \"\" +\n\t" + strings.Join(list, " +\n\t")
		},
		"Go, bytes": func(d []byte) string {
			var b strings.Builder
			b.WriteString("var x = []byte{\n")
			for i, c := range d {
				fmt.Fprintf(&b, "0x%02x, ", c)
				if i%16 == 15 {
					b.WriteString("\n\t")
				}
			}
			return b.String() + "}\n"
		},
		"Rust": func(d []byte) string {
			// A line's end takes the blanks after it.
			return "static X: &[u8] = b\"" + strings.ReplaceAll(pieces(d, 30, "%s", "\\\n"), "\\\n ", "\\\n    \\x20") + "\";\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			var src strings.Builder
			for _, f := range files {
				src.WriteString(write(marshal(t, f)) + "\nint other = 'x';\n")
			}
			got, err := ScanSource(context.Background(), []byte(src.String()))
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, got, formLiteral, files...)
		})
	}
}
