// Package schema loads protobuf definitions, from .proto files, descriptor sets and
// shipped code, and prints them. A Schema has their descriptors by name, with the text
// and the location of each declaration.
//
// A directory is loaded as a whole. Of duplicate files, which declare the same names, one
// is kept and the others are listed. A long line is folded for the compiler, which limits
// lines. Source texts are .proto files in memory. UnknownIn finds a message with unknown
// fields.
//
// Package infer makes definitions from traffic, package check compares traffic with
// them, and package compare finds what changed between two versions.
package schema

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/schema/extract"
	"unwire/schema/interrupt"
)

// Bounds of a folder of definitions. The largest public one known, googleapis,
// has 8,000 files of 60 MB together.
const (
	maxProtoFiles     = 20_000
	maxProtoFileBytes = 16 << 20
	maxProtoBytes     = 256 << 20
	maxProtoErrors    = 20
)

// ErrNoFiles is wrapped where a folder has no .proto file.
var ErrNoFiles = errors.New("no .proto file found")

// A Schema is a set of compiled definitions.
type Schema struct {
	// Files are the schema's own files in path order, without its imports of
	// google/protobuf.
	Files []protoreflect.FileDescriptor

	// Omitted are the files that were left out, since a file before them declares
	// the same, or since they import such a file.
	Omitted []OmittedFile

	// Unread are the files of shipped code that were not read, with the reasons.
	Unread []error

	// Faults are those of Unread that were not read because unwire failed at them.
	Faults []*extract.Fault

	messages map[protoreflect.FullName]protoreflect.MessageDescriptor
	services map[protoreflect.FullName]protoreflect.ServiceDescriptor
	sources  map[string]string // the files' text by path, where it was kept

	// base is asked for messages and services that the files do not declare; it may be nil.
	base *Schema

	locating sync.Mutex
	located  map[string]*locations // by path, of files for which they were asked
}

// LoadDir loads every .proto file below dir, which is the import root.
func LoadDir(ctx context.Context, dir string) (*Schema, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("schema: %s is not a folder of .proto files", dir)
	}
	return loadTree(ctx, dir)
}

func loadTree(ctx context.Context, dir string) (*Schema, error) {
	s, err := Load(ctx, os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%w (below %s)", err, dir)
	}
	return s, nil
}

// Load compiles every .proto file of fsys, whose root is the import root.
//
// Shape: imports of google/protobuf/* are built in. Files come in path order.
// Limits: 20,000 files, 16 MiB each, 256 MiB together.
// Errors: each names file, line and column; up to 20 of them are joined.
func Load(ctx context.Context, fsys fs.FS) (*Schema, error) {
	sources, names, err := readSources(ctx, fsys)
	if err != nil {
		return nil, err
	}
	return compileWithText(ctx, sources, names)
}

// readSources reads the .proto files of a tree within the bounds.
func readSources(ctx context.Context, fsys fs.FS) (sources map[string]string, names []string, err error) {
	sources = map[string]string{}
	var total int64
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if name != "." && strings.HasPrefix(path.Base(name), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || path.Ext(name) != ".proto" {
			return nil
		}
		if len(names) == maxProtoFiles {
			return fmt.Errorf("more than %d .proto files", maxProtoFiles)
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxProtoFileBytes+1))
		if err != nil {
			return err
		}
		total += int64(len(text))
		if len(text) > maxProtoFileBytes || total > maxProtoBytes {
			return fmt.Errorf("%s: definitions larger than %d bytes a file or %d in all", name, maxProtoFileBytes, maxProtoBytes)
		}
		sources[name] = string(text)
		names = append(names, name)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("schema: %w", ErrNoFiles)
	}
	slices.Sort(names)
	return sources, names, nil
}

// compile parses and links the files named in names, in that order, from sources, which
// has their text and that of their imports by path. Comments are not kept.
func compile(ctx context.Context, sources map[string]string, names []string) (*Schema, error) {
	return link(ctx, protocompile.SourceAccessorFromMap(sources), names)
}

// compileWithText is compile for a schema that has its files' text and comments.
func compileWithText(ctx context.Context, sources map[string]string, names []string) (*Schema, error) {
	s, err := compile(ctx, sources, names)
	if err == nil {
		s.sources = sources
	}
	return s, err
}

// compileFrom compiles one file of a tree with what it imports.
func compileFrom(ctx context.Context, fsys fs.FS, name string) (*Schema, error) {
	sources := map[string]string{}
	var lock sync.Mutex
	s, err := link(ctx, func(file string) (io.ReadCloser, error) {
		f, err := fsys.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxProtoFileBytes+1))
		if err != nil {
			return nil, err
		}
		lock.Lock()
		defer lock.Unlock()
		if len(text) > maxProtoFileBytes || len(sources) == maxProtoFiles {
			return nil, fmt.Errorf("more than %d files, or one larger than %d bytes", maxProtoFiles, maxProtoFileBytes)
		}
		sources[file] = string(text)
		return io.NopCloser(bytes.NewReader(text)), nil
	}, []string{name})
	if err != nil {
		return nil, err
	}
	s.sources = sources
	return s, nil
}

func link(ctx context.Context, open func(string) (io.ReadCloser, error), names []string) (*Schema, error) {
	var errs []error // the compiler calls one Reporter at a time
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: open}),
		Reporter: reporter.NewReporter(func(err reporter.ErrorWithPos) error {
			errs = append(errs, err)
			if len(errs) >= maxProtoErrors {
				return err
			}
			return nil
		}, nil),
	}
	files, err := interrupt.Run(ctx, func() (linker.Files, error) { return compiler.Compile(ctx, names...) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("schema: %w", errors.Join(errs...))
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	list := make([]protoreflect.FileDescriptor, len(files))
	for i, f := range files {
		list[i] = f
	}
	return FromFiles(list...), nil
}

// FromFiles makes a schema of descriptors that are linked already, such as those of
// generated code.
func FromFiles(files ...protoreflect.FileDescriptor) *Schema {
	s := &Schema{
		messages: map[protoreflect.FullName]protoreflect.MessageDescriptor{},
		services: map[protoreflect.FullName]protoreflect.ServiceDescriptor{},
	}
	s.Files = slices.SortedFunc(slices.Values(files), func(a, b protoreflect.FileDescriptor) int {
		return cmp.Compare(a.Path(), b.Path())
	})
	for _, f := range s.Files {
		s.addMessages(f.Messages())
		for i := range f.Services().Len() {
			sd := f.Services().Get(i)
			s.services[sd.FullName()] = sd
		}
	}
	return s
}

func (s *Schema) addMessages(list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		md := list.Get(i)
		s.messages[md.FullName()] = md
		s.addMessages(md.Messages())
	}
}

// SetBase has Message, Service, Method and FrameType look in base for what the schema does
// not declare. What is listed, such as Files and Messages, stays the schema's own.
func (s *Schema) SetBase(base *Schema) { s.base = base }

// Message returns the message of that full name, or nil.
func (s *Schema) Message(fullName string) protoreflect.MessageDescriptor {
	if s == nil {
		return nil
	}
	if md := s.messages[protoreflect.FullName(strings.TrimPrefix(fullName, "."))]; md != nil {
		return md
	}
	return s.base.Message(fullName)
}

// Service returns the service of that full name, or nil.
func (s *Schema) Service(fullName string) protoreflect.ServiceDescriptor {
	if s == nil {
		return nil
	}
	if sd := s.services[protoreflect.FullName(fullName)]; sd != nil {
		return sd
	}
	return s.base.Service(fullName)
}

// Messages yields every message in the order of files and declarations,
// without the entries of maps.
func (s *Schema) Messages() iter.Seq[protoreflect.MessageDescriptor] {
	return func(yield func(protoreflect.MessageDescriptor) bool) {
		for _, f := range s.Files {
			if !EachMessage(f.Messages(), yield) {
				return
			}
		}
	}
}

// EachMessage calls yield for each message of list and for those declared inside it,
// without the entries of maps. It returns false as soon as yield does.
func EachMessage(list protoreflect.MessageDescriptors, yield func(protoreflect.MessageDescriptor) bool) bool {
	for i := range list.Len() {
		md := list.Get(i)
		if md.IsMapEntry() {
			continue
		}
		if !yield(md) || !EachMessage(md.Messages(), yield) {
			return false
		}
	}
	return true
}

// Enums yields every enum in the order of files and declarations, those of a
// message before those of the messages in it.
func (s *Schema) Enums() iter.Seq[protoreflect.EnumDescriptor] {
	return func(yield func(protoreflect.EnumDescriptor) bool) {
		each := func(list protoreflect.EnumDescriptors) bool {
			for i := range list.Len() {
				if !yield(list.Get(i)) {
					return false
				}
			}
			return true
		}
		for _, f := range s.Files {
			if !each(f.Enums()) || !EachMessage(f.Messages(), func(m protoreflect.MessageDescriptor) bool { return each(m.Enums()) }) {
				return
			}
		}
	}
}

// Services yields every service in the order of files and declarations.
func (s *Schema) Services() iter.Seq[protoreflect.ServiceDescriptor] {
	return func(yield func(protoreflect.ServiceDescriptor) bool) {
		for _, f := range s.Files {
			for i := range f.Services().Len() {
				if !yield(f.Services().Get(i)) {
					return
				}
			}
		}
	}
}

// Method returns the method rpc of the named service, or nil.
func (s *Schema) Method(service, rpc string) protoreflect.MethodDescriptor {
	sd := s.Service(service)
	if sd == nil {
		return nil
	}
	return sd.Methods().ByName(protoreflect.Name(rpc))
}

// FrameType returns the type of the messages that a call sends in one
// direction, or nil where the schema does not know the method.
func (s *Schema) FrameType(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	m := s.Method(call.Service, call.RPC)
	if m == nil {
		return nil
	}
	if dir == captures.Up {
		return m.Input()
	}
	return m.Output()
}

// InOneof reports whether a field belongs to a oneof that is written in the source,
// as opposed to that of an optional field.
func InOneof(fd protoreflect.FieldDescriptor) bool {
	o := fd.ContainingOneof()
	return o != nil && !o.IsSynthetic()
}
