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
	// The well-known files are linked in, for descriptor sets that lack their imports.
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

// maxParentFolders is how many folders above a .proto file are tried as its import root.
const maxParentFolders = 12

// ErrNoSource is wrapped by the error for a file from which no definitions can be loaded.
var ErrNoSource = errors.New("the input is neither a folder of .proto files, nor a .proto file, nor a descriptor set, nor a program, script or archive that contains definitions")

// LoadSource loads definitions from any source: a folder of .proto files, one .proto file with its imports, a
// serialized FileDescriptorSet, or shipped code, which package extract searches: scripts, archives, executables,
// and folders of them.
//
// Shape: the schema has source positions and comments if the source has them. For one .proto file, Files has
// that file only.
// Limits: those of Load and of package extract; a descriptor set is at most 256 MiB.
// Errors: ErrNoSource, those of Load, the context's error, and extract.Fault.
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

// LoadVersion is LoadSource for comparing two versions: it accepts sources that are incomplete. Files in a
// folder that declare the same names are reduced to the first one in path order; Schema.Omitted lists the
// others. Files of shipped code that could not be read are listed in Schema.Unread and Schema.Faults. progress,
// if not nil, is called while shipped code is read.
func LoadVersion(ctx context.Context, name string, progress func(extract.Progress)) (*Schema, error) {
	s, err := LoadDefinitions(ctx, name)
	if errors.Is(err, ErrNoSource) {
		return loadShipped(ctx, name, progress)
	}
	if info, bad := os.Stat(name); err != nil && ctx.Err() == nil && bad == nil && info.IsDir() {
		if s := loadWithoutDuplicates(ctx, name); s != nil {
			return s, nil
		}
	}
	return s, err
}

// LoadDefinitions is LoadSource without shipped code: it accepts .proto files and descriptor sets.
//
// Errors: those of LoadSource. ErrNoSource also means that the source may be shipped code.
func LoadDefinitions(ctx context.Context, name string) (*Schema, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("schema: %w", err)
	case info.IsDir() && isProtoFolder(ctx, name):
		return loadTree(ctx, name)
	case info.IsDir() || info.Size() > maxProtoBytes && filepath.Ext(name) != ".proto":
		return nil, fmt.Errorf("schema: %s: %w", name, ErrNoSource)
	case filepath.Ext(name) == ".proto":
		return loadFile(ctx, name)
	}
	return loadSet(ctx, name)
}

// isProtoFolder reports whether a folder is meant as a folder of .proto files and not of shipped code: it has
// more .proto files than scripts, or no files at all. It also returns true if the folder cannot be read, so
// that Load reports the error.
func isProtoFolder(ctx context.Context, dir string) bool {
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

// loadShipped extracts definitions from a shipped program, such as a script, archive or executable, and links
// them. progress may be nil.
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

// loadFile compiles one .proto file and its imports. The import root is the nearest parent folder in
// which all imports are found. If there is none, the errors refer to the file's own folder as the root.
func loadFile(ctx context.Context, name string) (*Schema, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	root, first := filepath.Dir(abs), error(nil)
	for range maxParentFolders {
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

		// Only a missing import can be cured by a higher import root.
		if !errors.Is(err, fs.ErrNotExist) || root == filepath.Dir(root) {
			break
		}
		root = filepath.Dir(root)
	}
	return nil, first
}

// loadSet loads a serialized FileDescriptorSet from the file called name.
func loadSet(ctx context.Context, name string) (*Schema, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProtoBytes+1))
	if err != nil {
		return nil, fmt.Errorf("schema: cannot read %s: %w", name, err)
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

// parseSet parses a serialized FileDescriptorSet.
//
// Errors: ErrNoSource if data is something else. Almost any bytes parse as some protobuf message, so a set
// without files or with unknown fields is rejected too.
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

// linkSet is FromDescriptorSet, except that it returns early when the context ends.
func linkSet(ctx context.Context, set *descriptorpb.FileDescriptorSet) (*Schema, error) {
	return interrupt.Run(ctx, func() (*Schema, error) { return FromDescriptorSet(set) })
}

// FromDescriptorSet links the files of a descriptor set. Missing imports of google/protobuf are added; other
// missing imports are left unresolved.
//
// Limits: 20,000 files.
// Errors: files that appear twice or do not link.
func FromDescriptorSet(set *descriptorpb.FileDescriptorSet) (*Schema, error) {
	if len(set.File) > maxProtoFiles {
		return nil, fmt.Errorf("schema: the set has more than %d files", maxProtoFiles)
	}
	own := map[string]bool{}
	for _, f := range set.File {
		if own[f.GetName()] {
			return nil, fmt.Errorf("schema: the set contains the file %s twice", f.GetName())
		}
		own[f.GetName()] = true
	}

	all := &descriptorpb.FileDescriptorSet{File: set.File[:len(set.File):len(set.File)]}
	have := map[string]bool{}

	// The list grows while it is read: the well-known files that are added here have imports of their own.
	for i := 0; i < len(all.File); i++ {
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

	// A set can bring the well-known files along. They are not the schema's own, unless the set has nothing
	// else.
	linked.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if own[f.Path()] && (!IsWellKnown(f.Path()) || len(own) == 1) {
			files = append(files, f)
		}
		return true
	})
	return FromFiles(files...), nil
}

// WellKnownMessage returns the definition of a message type of google.protobuf by its full name, or nil.
func WellKnownMessage(full string) protoreflect.MessageDescriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(full))
	if err != nil || !IsWellKnown(d.ParentFile().Path()) {
		return nil
	}
	md, _ := d.(protoreflect.MessageDescriptor)
	return md
}

// IsWellKnown reports whether a file with this path ships with protobuf: the well-known types and the
// compiler's plugin interface.
func IsWellKnown(file string) bool {
	return path.Dir(file) == "google/protobuf" || strings.HasPrefix(file, "google/protobuf/compiler/")
}
