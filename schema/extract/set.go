package extract

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/model"
	"unwire/schema/interrupt"
)

// A Set is the result of Merge: .proto files that are consistent, i.e. link without errors.
type Set struct {
	// Files are the merged files. Each comes after its imports.
	Files []*descriptorpb.FileDescriptorProto

	// Imports are the files that ship with protobuf and are imported. Each comes after its imports.
	Imports []*descriptorpb.FileDescriptorProto

	// Notes maps the full names of messages, fields and other elements to their comments.
	Notes map[string]string

	// Unresolved lists the elements that Merge left out, renamed or changed, with the reason.
	Unresolved []model.Unresolved
}

// ordered returns files, given by path, in an order in which each comes after its imports.
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

// DescriptorSet returns all files including imports. Each comes after its imports.
func (s *Set) DescriptorSet() *descriptorpb.FileDescriptorSet {
	return &descriptorpb.FileDescriptorSet{File: append(slices.Clone(s.Imports), s.Files...)}
}

// link returns an error if a protobuf runtime would reject the files of the set.
func (s *Set) link(ctx context.Context) error {
	_, err := interrupt.Run(ctx, func() (*protoregistry.Files, error) { return protodesc.NewFiles(s.DescriptorSet()) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("extract: the definitions that were found do not compile: %w", err)
	}
	return nil
}
