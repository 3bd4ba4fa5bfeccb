package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Modules that real samples and schemas are read from.
const (
	moduleAPI       = "k8s.io/api@v0.34.1"
	moduleMachinery = "k8s.io/apimachinery@v0.34.1"
	moduleGenproto  = "google.golang.org/genproto@v0.0.0-20261019180522-ce908d29299b"
)

// moduleDir returns where a module's files are, downloading it if need be.
func moduleDir(t testing.TB, module string) string {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // outside of this module
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); jsonErr != nil || m.Dir == "" {
		t.Skipf("no %s: %v %s", module, err, m.Error)
	}
	return m.Dir
}

// kubernetesCorpora is the objects of Kubernetes' own serialization tests, three versions of each.
func kubernetesCorpora(t testing.TB) []corpus {
	api, machinery := moduleDir(t, moduleAPI), moduleDir(t, moduleMachinery)
	open := func(path string) (*os.File, error) {
		if rest, ok := strings.CutPrefix(path, "k8s.io/api/"); ok {
			return os.Open(filepath.Join(api, rest))
		}
		if rest, ok := strings.CutPrefix(path, "k8s.io/apimachinery/"); ok {
			return os.Open(filepath.Join(machinery, rest))
		}
		return nil, fs.ErrNotExist
	}
	var files []string
	err := filepath.WalkDir(api, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "generated.proto" {
			rel, _ := filepath.Rel(api, path)
			files = append(files, "k8s.io/api/"+filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(func(path string) (protocompile.SearchResult, error) {
		f, err := open(path)
		return protocompile.SearchResult{Source: f}, err
	}))}
	linked, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*corpus{}
	var order []string
	for _, version := range []string{"HEAD", "v1.33.0", "v1.32.0"} {
		paths, err := filepath.Glob(filepath.Join(api, "testdata", version, "*.pb"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			parts := strings.Split(strings.TrimSuffix(filepath.Base(path), ".pb"), ".")
			name, ver := parts[len(parts)-1], parts[len(parts)-2]
			group := parts[0]
			if group == "internal" {
				group = "apiserverinternal"
			}
			var md protoreflect.MessageDescriptor
			for _, f := range linked {
				if strings.HasSuffix(string(f.Package()), "."+group+"."+ver) {
					md = f.Messages().ByName(protoreflect.Name(name))
				}
			}
			data, err := os.ReadFile(path)
			if md == nil || err != nil {
				continue // events of types that are not in these files
			}
			c := byName[string(md.FullName())]
			if c == nil {
				c = &corpus{group: "k8s objects", held: true, name: string(md.FullName()), truth: md}
				byName[c.name] = c
				order = append(order, c.name)
			}
			c.samples = append(c.samples, unknownRaw(data))
		}
	}
	var out []corpus
	for _, name := range order {
		if c := byName[name]; len(c.samples[0]) > 0 {
			out = append(out, *c)
		}
	}
	return out
}

// unknownRaw takes the object out of Kubernetes' envelope: "k8s\0" and Unknown{2 raw}.
func unknownRaw(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("k8s\x00"))
	for len(data) > 0 {
		n, typ, m := protowire.ConsumeTag(data)
		size := protowire.ConsumeFieldValue(n, typ, data[max(m, 0):])
		if m < 0 || size < 0 {
			return nil
		}
		if n == 2 {
			raw, _ := protowire.ConsumeBytes(data[m:])
			return raw
		}
		data = data[m+size:]
	}
	return nil
}

// descriptors reads 400 serialized FileDescriptorProtos of googleapis.
func descriptors(t testing.TB) [][]byte {
	return descriptorsIn(t, filepath.Join(moduleDir(t, moduleGenproto), "googleapis"), 400)
}

// descriptorsIn reads the serialized FileDescriptorProtos out of generated Go code.
func descriptorsIn(t testing.TB, dir string, most int) [][]byte {
	var out [][]byte
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".pb.go") || len(out) >= most {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || !strings.HasSuffix(v.Names[0].Name, "_rawDesc") || len(v.Values) != 1 {
					continue
				}
				if raw := literal(v.Values[0]); len(raw) > 0 {
					out = append(out, raw)
				}
			}
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%d descriptors: %v", len(out), err)
	}
	return out
}

// literal is the bytes of a string or of a []byte literal.
func literal(e ast.Expr) []byte {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err == nil {
			return []byte(s)
		}
	case *ast.BinaryExpr:
		return append(literal(e.X), literal(e.Y)...)
	case *ast.CallExpr: // a conversion
		if len(e.Args) == 1 {
			return literal(e.Args[0])
		}
	case *ast.CompositeLit:
		b := make([]byte, 0, len(e.Elts))
		for _, x := range e.Elts {
			if l, ok := x.(*ast.BasicLit); ok {
				n, err := strconv.ParseUint(l.Value, 0, 8)
				if err != nil {
					return nil
				}
				b = append(b, byte(n))
			}
		}
		return b
	}
	return nil
}

// descriptorCorpus is the descriptors themselves: real data of a recursive schema.
func descriptorCorpus(raw [][]byte) corpus {
	return corpus{group: "descriptors", held: true, name: "FileDescriptorProto", truth: (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor(), samples: raw}
}

// typesOf links serialized descriptors, and returns their types of five fields and
// more, by name. Files that import what is not there are left out.
func typesOf(t testing.TB, raw [][]byte) []protoreflect.MessageDescriptor {
	files := &descriptorpb.FileDescriptorSet{}
	have := map[string]bool{}
	for _, b := range raw {
		f := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(b, f); err != nil {
			t.Fatal(err)
		}
		if !have[f.GetName()] && f.GetPackage() != "pb2" { // cel.dev has a type in it that proto3 forbids
			have[f.GetName()] = true
			files.File = append(files.File, f)
		}
	}
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		if !have[fd.Path()] {
			have[fd.Path()] = true
			files.File = append(files.File, protodesc.ToFileDescriptorProto(fd))
		}
		return true
	})
	for changed := true; changed; { // leave out what imports what is not there
		before := len(files.File)
		files.File = slices.DeleteFunc(files.File, func(f *descriptorpb.FileDescriptorProto) bool {
			gone := slices.ContainsFunc(f.Dependency, func(d string) bool { return !have[d] })
			if gone {
				delete(have, f.GetName())
			}
			return gone
		})
		changed = len(files.File) != before
	}
	reg, err := protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	var types []protoreflect.MessageDescriptor
	reg.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		for i := range fd.Messages().Len() {
			if md := fd.Messages().Get(i); md.Fields().Len() > 4 && !strings.HasPrefix(string(md.FullName()), "google.protobuf.") {
				types = append(types, md)
			}
		}
		return true
	})
	slices.SortFunc(types, func(a, b protoreflect.MessageDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return types
}

// googleCorpora is real schemas, those of the descriptors, with made-up values.
func googleCorpora(t testing.TB, raw [][]byte, count, samples int) []corpus {
	types := typesOf(t, raw)
	if len(types) < count {
		t.Fatal(errors.New("too few types"))
	}
	s := &style{
		name: "google schemas", strings: []string{"sentence", "path", "url", "uuid", "ident", "name", "word", "email", "json", "date", "number", "delta"},
		bytes: []string{"sha256", "random", "image", "nested", "text", "gzip"}, ints: []string{"enum", "count", "size", "s", "ms", "id64", "negative", "small"},
		reals: []string{"unit", "decimal", "geo", "gauss"}, langs: []string{"en", "en", "ja", "ru", "zh", "de"}, many: []int{1, 2, 3},
	}
	r := newRand(4000)
	var out []corpus
	for range count {
		md := types[r.IntN(len(types))]
		g := &generator{style: s, r: r, roles: map[protoreflect.FullName]role{}, file: md.ParentFile()}
		c := corpus{group: s.name, held: true, name: string(md.FullName()), truth: md}
		for range samples {
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.sample(md))
			if err != nil {
				t.Fatal(err)
			}
			c.samples = append(c.samples, b)
		}
		out = append(out, c)
	}
	return out
}
