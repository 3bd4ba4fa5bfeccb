package schema

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	// the well-known files, for descriptor sets without their imports
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/schema/extract"
	"unwire/schema/interrupt"
)

// maxAscent is how many folders above a .proto file are tried as its import root.
const maxAscent = 12

// ErrNoSource is wrapped where a file is no source of definitions.
var ErrNoSource = errors.New("neither a folder of .proto files, nor a .proto file, nor a descriptor set, nor shipped code that holds definitions")

// LoadSource loads definitions from whatever holds them: a folder of .proto
// files, one .proto file with what it imports, a serialized FileDescriptorSet,
// or what package extract takes apart: scripts, archives, executables, and
// folders of them.
//
// Shape: with source positions and comments where the source has them. Of one
// .proto file, only that file is the schema's own.
// Limits: those of Load, and of package extract; a descriptor set of 256 MiB.
// Errors: ErrNoSource, those of Load, the context's, and an extract.Fault.
func LoadSource(ctx context.Context, name string) (*Schema, error) {
	s, err := LoadDefinitions(ctx, name)
	if errors.Is(err, ErrNoSource) {
		s, err = loadShipped(ctx, name, nil)
	}
	if err == nil && len(s.Faults) > 0 {
		return nil, fmt.Errorf("schema: %w", s.Faults[0])
	}
	return s, err
}

// LoadVersion is LoadSource for a version to compare. It reports how far the
// reading of shipped code is where progress is set. Of files in a folder that
// declare the same the first counts; Omitted has the others. Unread and Faults
// have the files of shipped code that were not read.
func LoadVersion(ctx context.Context, name string, progress func(extract.Progress)) (*Schema, error) {
	s, err := LoadDefinitions(ctx, name)
	if errors.Is(err, ErrNoSource) {
		return loadShipped(ctx, name, progress)
	}
	if info, bad := os.Stat(name); err != nil && ctx.Err() == nil && bad == nil && info.IsDir() {
		if s := loadDistinct(ctx, name); s != nil {
			return s, nil
		}
	}
	return s, err
}

// LoadDefinitions is LoadSource for definitions alone.
//
// Errors: ErrNoSource for what may be shipped code.
func LoadDefinitions(ctx context.Context, name string) (*Schema, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("schema: %w", err)
	case info.IsDir() && holdsProto(ctx, name):
		return loadTree(ctx, name)
	case info.IsDir() || info.Size() > maxProtoBytes && filepath.Ext(name) != ".proto":
		return nil, fmt.Errorf("schema: %s: %w", name, ErrNoSource)
	case filepath.Ext(name) == ".proto":
		return loadFile(ctx, name)
	}
	return loadSet(ctx, name)
}

// holdsProto says whether a folder is one of .proto files, or empty. One of
// scripts that brings a few along is not.
func holdsProto(ctx context.Context, dir string) bool {
	protos, scripts, others := 0, 0, 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		switch filepath.Ext(name) {
		case ".proto":
			protos++
		case ".js", ".mjs", ".cjs", ".asar":
			scripts++
		default:
			others++
		}
		return nil
	})
	return err != nil || protos > scripts || protos+scripts+others == 0
}

// loadShipped extracts the definitions of shipped code.
func loadShipped(ctx context.Context, name string, progress func(extract.Progress)) (*Schema, error) {
	src, err := extract.Read(ctx, name, progress)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(src.Files) == 0 {
		if len(src.Faults) > 0 {
			return nil, fmt.Errorf("schema: %w", src.Faults[0])
		}
		return nil, fmt.Errorf("schema: %s: %w", name, ErrNoSource)
	}
	set, err := extract.Merge(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("schema: %s: %w", name, err)
	}
	s, err := linkSet(ctx, set.DescriptorSet())
	if err != nil {
		return nil, err
	}
	s.Unread, s.Faults = src.Unread, src.Faults
	return s, nil
}

// loadFile compiles one file. Its import root is the nearest folder above it
// below which all that it imports is found.
func loadFile(ctx context.Context, name string) (*Schema, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	root, first := filepath.Dir(abs), error(nil)
	for range maxAscent {
		rel, err := filepath.Rel(root, abs)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		s, err := compileFrom(ctx, os.DirFS(root), filepath.ToSlash(rel))
		if err == nil {
			return s, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, fs.ErrNotExist) || root == filepath.Dir(root) {
			break
		}
		root = filepath.Dir(root)
	}
	return nil, first
}

// loadSet reads a serialized FileDescriptorSet.
func loadSet(ctx context.Context, name string) (*Schema, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProtoBytes+1))
	if err != nil {
		return nil, fmt.Errorf("schema: read %s: %w", name, err)
	}
	if len(data) > maxProtoBytes {
		return nil, fmt.Errorf("schema: %s is larger than %d bytes", name, maxProtoBytes)
	}
	set, err := interrupt.Run(ctx, func() (*descriptorpb.FileDescriptorSet, error) { return parseSet(data) })
	var s *Schema
	if err == nil {
		s, err = linkSet(ctx, set)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, name)
	}
	return s, nil
}

// parseSet reads a serialized FileDescriptorSet.
//
// Errors: ErrNoSource for bytes that are none.
func parseSet(data []byte) (*descriptorpb.FileDescriptorSet, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("schema: %w: %w", ErrNoSource, err)
	}
	if len(set.File) == 0 || len(set.ProtoReflect().GetUnknown()) > 0 {
		return nil, fmt.Errorf("schema: %w", ErrNoSource)
	}
	return &set, nil
}

// linkSet is FromDescriptorSet that ends with the context.
func linkSet(ctx context.Context, set *descriptorpb.FileDescriptorSet) (*Schema, error) {
	return interrupt.Run(ctx, func() (*Schema, error) { return FromDescriptorSet(set) })
}

// FromDescriptorSet links the files of a set. Imports that it lacks are taken from
// the well-known files, and otherwise left unresolved.
//
// Errors: what does not link.
func FromDescriptorSet(set *descriptorpb.FileDescriptorSet) (*Schema, error) {
	if len(set.File) > maxProtoFiles {
		return nil, fmt.Errorf("schema: more than %d files", maxProtoFiles)
	}
	own := map[string]bool{}
	for _, f := range set.File {
		if own[f.GetName()] {
			return nil, fmt.Errorf("schema: file %s is in the set twice", f.GetName())
		}
		own[f.GetName()] = true
	}
	all := &descriptorpb.FileDescriptorSet{File: set.File[:len(set.File):len(set.File)]}
	have := map[string]bool{}
	for i := 0; i < len(all.File); i++ { // it grows by what is imported
		for _, dep := range all.File[i].Dependency {
			if own[dep] || have[dep] {
				continue
			}
			have[dep] = true
			if known, err := protoregistry.GlobalFiles.FindFileByPath(dep); err == nil && IsWellKnown(dep) {
				all.File = append(all.File, protodesc.ToFileDescriptorProto(known))
			}
		}
	}
	linked, err := protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(all)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var files []protoreflect.FileDescriptor
	linked.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if own[f.Path()] && (!IsWellKnown(f.Path()) || len(own) == 1) {
			files = append(files, f)
		}
		return true
	})
	return FromFiles(files...), nil
}

// IsWellKnown reports whether a file is one of those that protobuf itself ships: the
// well-known types and the interface of the compiler.
func IsWellKnown(file string) bool {
	return path.Dir(file) == "google/protobuf" || strings.HasPrefix(file, "google/protobuf/compiler/")
}
