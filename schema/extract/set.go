package extract

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
	"unwire/schema/interrupt"
)

// A Set is what inputs declare together, as files that link.
type Set struct {
	// ours, each after what it imports
	Files []*descriptorpb.FileDescriptorProto

	// those of protobuf itself, in such an order
	Imports []*descriptorpb.FileDescriptorProto

	// by full name: comments
	Notes map[string]string

	// what the merging itself had to leave open
	Unresolved []bundle.Unresolved
}

// ordered puts each file after what it imports.
func ordered(files map[string]*descriptorpb.FileDescriptorProto) []*descriptorpb.FileDescriptorProto {
	var list []*descriptorpb.FileDescriptorProto
	done := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		f := files[name]
		if f == nil || done[name] {
			return
		}
		done[name] = true
		for _, dep := range f.Dependency {
			visit(dep)
		}
		list = append(list, f)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		visit(name)
	}
	return list
}

// DescriptorSet returns all files, each after what it imports.
func (s *Set) DescriptorSet() *descriptorpb.FileDescriptorSet {
	return &descriptorpb.FileDescriptorSet{File: append(slices.Clone(s.Imports), s.Files...)}
}

// link says whether the set is one that a protobuf runtime takes.
func (s *Set) link(ctx context.Context) error {
	_, err := interrupt.Run(ctx, func() (*protoregistry.Files, error) { return protodesc.NewFiles(s.DescriptorSet()) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("extract: what was found does not link: %w", err)
	}
	return nil
}
