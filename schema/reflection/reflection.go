// Package reflection collects the definitions that servers report by gRPC server reflection
// (grpc.reflection.v1 and v1alpha).
//
// Files has the descriptors of one server, within bounds, since a server may report anything.
// FromCapture finds the reports in recorded traffic; package replay/reflection asks a server
// for them. Schema links what was collected, as far as it links.
//
//	files, err := reflection.FromCapture(ctx, capture, 0)
//	definitions, err := files.Schema(ctx)
//
// Source: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
package reflection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema"
	"unwire/schema/interrupt"
)

// Limits of the definitions collected from one server by gRPC server reflection.
const (
	// maxFiles is the maximum number of file descriptors.
	maxFiles = 20_000
	// maxBytes is the maximum size of all files together, in bytes.
	maxBytes = 64 << 20
	// maxNesting is the maximum nesting of message types.
	maxNesting = 64
)

// ErrLimit is wrapped by the error for a server whose reflection exceeds maxFiles, maxBytes or maxNesting.
var ErrLimit = errors.New("the server's reflection reports more definitions than unwire accepts")

// ErrNone means that server reflection returned no definitions.
var ErrNone = errors.New("server reflection provides no definitions")

// IsService reports whether name is the full name of the reflection service itself, in either version.
func IsService(name string) bool {
	return name == "grpc.reflection.v1.ServerReflection" || name == "grpc.reflection.v1alpha.ServerReflection"
}

// Files are the file descriptors that a server returned by reflection. The zero value is empty.
type Files struct {
	// files are the files in the order in which they were added.
	files []*descriptorpb.FileDescriptorProto
	// byPath are the same files by path.
	byPath map[string]*descriptorpb.FileDescriptorProto
	// bytes is their total size in bytes.
	bytes int

	// Conflicts are the paths of files that were returned in several versions, of which the first is kept.
	Conflicts []string
}

// Add adds a file. A file whose path was added before is ignored.
//
// Errors: ErrLimit; a file without a name.
func (f *Files) Add(file *descriptorpb.FileDescriptorProto) error {
	name := file.GetName()
	if name == "" {
		return errors.New("the server's reflection reports a file without a name")
	}
	if have := f.byPath[name]; have != nil {
		if !proto.Equal(have, file) && !slices.Contains(f.Conflicts, name) {
			f.Conflicts = append(f.Conflicts, name)
		}
		return nil
	}
	f.bytes += proto.Size(file)
	switch {
	case len(f.files) == maxFiles:
		return fmt.Errorf("%w: there are more than %d files", ErrLimit, maxFiles)
	case f.bytes > maxBytes:
		return fmt.Errorf("%w: the files have more than %d bytes", ErrLimit, maxBytes)
	}
	for _, m := range file.MessageType {
		if nestsDeeper(m, maxNesting) {
			return fmt.Errorf("%w: %s nests messages more than %d deep", ErrLimit, name, maxNesting)
		}
	}
	if f.byPath == nil {
		f.byPath = map[string]*descriptorpb.FileDescriptorProto{}
	}
	f.byPath[name] = file
	f.files = append(f.files, file)
	return nil
}

// nestsDeeper reports whether message types are nested in m more than levels deep.
func nestsDeeper(m *descriptorpb.DescriptorProto, levels int) bool {
	return levels == 0 || slices.ContainsFunc(m.NestedType, func(n *descriptorpb.DescriptorProto) bool { return nestsDeeper(n, levels-1) })
}

// Len returns the number of collected files.
func (f *Files) Len() int { return len(f.files) }

// Declares reports whether a collected file declares the service with this full name.
func (f *Files) Declares(service string) bool {
	return slices.ContainsFunc(f.files, func(file *descriptorpb.FileDescriptorProto) bool {
		return slices.ContainsFunc(services(file), func(name string) bool { return name == service })
	})
}

// services returns the full names of the services that a file declares.
func services(file *descriptorpb.FileDescriptorProto) []string {
	var list []string
	for _, s := range file.Service {
		list = append(list, strings.TrimPrefix(file.GetPackage()+"."+s.GetName(), "."))
	}
	return list
}

// Missing returns the paths, sorted, of the imported files that the server did not return.
func (f *Files) Missing() []string {
	var list []string
	for _, file := range f.files {
		for _, name := range file.Dependency {
			if f.byPath[name] == nil {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Set returns the files sorted by path, except those of the reflection service itself and those that ship with
// protobuf.
func (f *Files) Set() []*descriptorpb.FileDescriptorProto {
	var list []*descriptorpb.FileDescriptorProto
	for _, file := range f.files {
		if !slices.ContainsFunc(services(file), IsService) && !schema.IsWellKnown(file.GetName()) {
			list = append(list, file)
		}
	}
	slices.SortFunc(list, func(a, b *descriptorpb.FileDescriptorProto) int {
		return bytes.Compare([]byte(a.GetName()), []byte(b.GetName()))
	})
	return list
}

// Schema links the files that Set returns.
//
// Errors: ErrNone if there are no files; files that do not link; the context's.
func (f *Files) Schema(ctx context.Context) (*schema.Schema, error) {
	set := &descriptorpb.FileDescriptorSet{File: f.Set()}
	if len(set.File) == 0 {
		return nil, fmt.Errorf("schema: %w", ErrNone)
	}
	return interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromDescriptorSet(set) })
}
