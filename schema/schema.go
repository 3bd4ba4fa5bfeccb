// Package schema loads protobuf definitions and finds declarations in them by name.
//
// A Schema is the result: linked descriptors with the text, position and comments of each declaration.
// LoadSource accepts any source: a folder of .proto files, one .proto file, a descriptor set, or shipped code,
// which package extract searches for definitions.
//
// s, err := schema.LoadSource(ctx, "protos")
// message := s.Message("chat.v1.Send") // a protoreflect.MessageDescriptor
// text, err := s.Text(message)         // its .proto text
//
// Nearly every command that decodes or sends messages uses it. Package infer produces definitions from traffic,
// package check validates traffic against them, and package compare reports what changed between two versions.
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

// Limits of a folder of .proto files. googleapis, the largest public folder that was measured, has 8,000 files
// with 60 MB in total.
const (
	// maxProtoFiles is the maximum number of files.
	maxProtoFiles = 20_000
	// maxProtoFileBytes is the maximum size of one file: 16 MiB.
	maxProtoFileBytes = 16 << 20
	// maxProtoBytes is the maximum total size of all files: 256 MiB.
	maxProtoBytes = 256 << 20
	// maxProtoErrors is the number of errors after which the compiler stops.
	maxProtoErrors = 20
)

// ErrNoFiles is wrapped by the error for a folder without .proto files.
var ErrNoFiles = errors.New("no .proto file was found")

// A Schema is a set of protobuf definitions that are linked with each other. Make one with LoadSource, Load or
// FromFiles. It is safe for concurrent use once SetBase has been called. A nil Schema has no messages and
// services.
type Schema struct {
	// Files are the schema's own files, sorted by path. Imports of google/protobuf are not among them.
	Files []protoreflect.FileDescriptor

	// Omitted lists the files that LoadVersion left out because an earlier file declares the same names, or
	// because they import such a file.
	Omitted []OmittedFile

	// Unread lists the errors of files of shipped code that were not read.
	Unread []error

	// Faults are the errors in Unread that are caused by a defect of unwire rather than by the file.
	Faults []*extract.Fault

	// messages are the schema's own messages, including nested ones, by full name.
	messages map[protoreflect.FullName]protoreflect.MessageDescriptor
	// services are the schema's own services by full name.
	services map[protoreflect.FullName]protoreflect.ServiceDescriptor
	// sources has the text of the files by path; nil if the text was not kept.
	sources map[string]string

	// base, if not nil, is searched for messages and services that the files do not declare.
	base *Schema

	// locating guards the map located.
	locating sync.Mutex
	// located caches the positions and comments of the declarations of each file, by its path.
	located map[string]*locations
}

// LoadDir loads every .proto file in the folder dir and its subfolders. Imports are resolved relative to dir.
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

// loadTree does the work of LoadDir; its errors name the folder.
func loadTree(ctx context.Context, dir string) (*Schema, error) {
	s, err := Load(ctx, os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%w (in the folder %s)", err, dir)
	}
	return s, nil
}

// Load compiles every .proto file in fsys. Imports are resolved relative to its root.
//
// Shape: imports of google/protobuf/* are built in. Schema.Files is in path order.
// Limits: 20,000 files, 16 MiB for each, 256 MiB in total.
// Errors: each compile error names file, line and column. Up to 20 of them are joined.
func Load(ctx context.Context, fsys fs.FS) (*Schema, error) {
	sources, names, err := readSources(ctx, fsys)
	if err != nil {
		return nil, err
	}
	return compileWithText(ctx, sources, names)
}

// readSources reads the .proto files of fsys within the limits, except those in hidden files and folders.
// sources has their text by path, and names are the sorted paths.
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
		// Hidden folders hold the files of tools, such as .git.
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
			return fmt.Errorf("the folder has more than %d .proto files", maxProtoFiles)
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

		// The limits protect from folders that contain more than definitions.
		total += int64(len(text))
		if len(text) > maxProtoFileBytes || total > maxProtoBytes {
			return fmt.Errorf("%s: the definitions are larger than %d bytes per file, or %d bytes in total", name, maxProtoFileBytes, maxProtoBytes)
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

	// Sorted names make the result independent of the file system.
	slices.Sort(names)
	return sources, names, nil
}

// compile compiles the files called names. sources has their text and the text of their imports, by path. The
// schema keeps no text and no comments.
func compile(ctx context.Context, sources map[string]string, names []string) (*Schema, error) {
	return link(ctx, protocompile.SourceAccessorFromMap(sources), names)
}

// compileWithText is compile, except that the schema keeps the text and comments of the files.
func compileWithText(ctx context.Context, sources map[string]string, names []string) (*Schema, error) {
	s, err := compile(ctx, sources, names)
	if err == nil {
		s.sources = sources
	}
	return s, err
}

// compileFrom compiles the file called name and the imports that it needs from fsys.
func compileFrom(ctx context.Context, fsys fs.FS, name string) (*Schema, error) {
	sources := map[string]string{}

	// The compiler opens imports concurrently.
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
			return nil, fmt.Errorf("the definitions have more than %d files, or a file is larger than %d bytes", maxProtoFiles, maxProtoFileBytes)
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

// link compiles the files called names, which open reads, and collects all errors instead of the first one
// only.
func link(ctx context.Context, open func(string) (io.ReadCloser, error), names []string) (*Schema, error) {
	// The compiler does not call a Reporter concurrently.
	var errs []error
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: flat(open)}),
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

// FromFiles returns a schema of file descriptors that are already linked, such as those in generated code.
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

// addMessages adds messages, including nested ones, to the index by full name.
func (s *Schema) addMessages(list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		md := list.Get(i)
		s.messages[md.FullName()] = md
		s.addMessages(md.Messages())
	}
}

// SetBase makes the methods Message, Service, Method and FrameType search base for declarations that the schema
// lacks. Files, Messages and other lists still have the schema's own declarations only.
func (s *Schema) SetBase(base *Schema) { s.base = base }

// Message returns the message with that full name, with or without a leading dot, or nil.
func (s *Schema) Message(fullName string) protoreflect.MessageDescriptor {
	if s == nil {
		return nil
	}
	if md := s.messages[protoreflect.FullName(strings.TrimPrefix(fullName, "."))]; md != nil {
		return md
	}
	return s.base.Message(fullName)
}

// Service returns the service with that full name, or nil.
func (s *Schema) Service(fullName string) protoreflect.ServiceDescriptor {
	if s == nil {
		return nil
	}
	if sd := s.services[protoreflect.FullName(fullName)]; sd != nil {
		return sd
	}
	return s.base.Service(fullName)
}

// Messages yields all messages, nested ones included, in the order of files and declarations. Map entries are
// left out.
func (s *Schema) Messages() iter.Seq[protoreflect.MessageDescriptor] {
	return func(yield func(protoreflect.MessageDescriptor) bool) {
		for _, f := range s.Files {
			if !EachMessage(f.Messages(), yield) {
				return
			}
		}
	}
}

// EachMessage calls yield for each message in list and for the messages nested in it, except map entries. It
// stops and returns false when yield returns false.
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

// Enums yields all enums in the order of files and declarations. The enums of a message come before those of the
// messages nested in it.
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

// Services yields all services in the order of files and declarations.
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

// Method returns the method called rpc of the service with that full name, or nil.
func (s *Schema) Method(service, rpc string) protoreflect.MethodDescriptor {
	sd := s.Service(service)
	if sd == nil {
		return nil
	}
	return sd.Methods().ByName(protoreflect.Name(rpc))
}

// FrameType returns the type of the messages that a call sends in one direction. It returns nil if the schema
// lacks the method.
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

// InOneof reports whether a field belongs to a oneof that is written in the source. The compiler's synthetic
// oneof for an optional field does not count.
func InOneof(fd protoreflect.FieldDescriptor) bool {
	o := fd.ContainingOneof()
	return o != nil && !o.IsSynthetic()
}
