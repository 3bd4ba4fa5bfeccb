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

// Limits of the definitions collected from one server.
const (
	maxFiles   = 20_000
	maxBytes   = 64 << 20 // of all files together
	maxNesting = 64       // levels of messages in messages
)

// ErrLimit is wrapped where a server reports more than is collected.
var ErrLimit = errors.New("the server's reflection reports too much")

// ErrNone means that server reflection returned no definitions.
var ErrNone = errors.New("no definitions by server reflection")

// IsService reports whether a service is that of reflection itself, of either version.
func IsService(name string) bool {
	return name == "grpc.reflection.v1.ServerReflection" || name == "grpc.reflection.v1alpha.ServerReflection"
}

// Files are the files that a server reported. The zero value has none.
type Files struct {
	files  []*descriptorpb.FileDescriptorProto
	byPath map[string]*descriptorpb.FileDescriptorProto
	bytes  int

	// Conflicts are the paths of files that were reported in several versions, of which the
	// first counts.
	Conflicts []string
}

// Add adds a file. One that is there already is added once.
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
		return fmt.Errorf("%w: more than %d files", ErrLimit, maxFiles)
	case f.bytes > maxBytes:
		return fmt.Errorf("%w: more than %d bytes", ErrLimit, maxBytes)
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

// nestsDeeper reports whether a message has more than levels of messages in it.
func nestsDeeper(m *descriptorpb.DescriptorProto, levels int) bool {
	return levels == 0 || slices.ContainsFunc(m.NestedType, func(n *descriptorpb.DescriptorProto) bool { return nestsDeeper(n, levels-1) })
}

// Len returns the number of collected files.
func (f *Files) Len() int { return len(f.files) }

// Declares reports whether a file declares a service of this full name.
func (f *Files) Declares(service string) bool {
	return slices.ContainsFunc(f.files, func(file *descriptorpb.FileDescriptorProto) bool {
		return slices.ContainsFunc(services(file), func(name string) bool { return name == service })
	})
}

// services are the full names of the services of a file.
func services(file *descriptorpb.FileDescriptorProto) []string {
	var list []string
	for _, s := range file.Service {
		list = append(list, strings.TrimPrefix(file.GetPackage()+"."+s.GetName(), "."))
	}
	return list
}

// Missing returns, sorted, the imported files that the server did not return.
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

// Set returns the files sorted by path, without those of the reflection service and those shipped with
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

// Schema links the files of Set.
//
// Errors: ErrNone; files that do not link; the context's.
func (f *Files) Schema(ctx context.Context) (*schema.Schema, error) {
	set := &descriptorpb.FileDescriptorSet{File: f.Set()}
	if len(set.File) == 0 {
		return nil, fmt.Errorf("schema: %w", ErrNone)
	}
	return interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromDescriptorSet(set) })
}
