package schema

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/interrupt"
)

// DescriptorSet returns the files of the schema with what they import, serialized, as
// FromStored reads them.
func (s *Schema) DescriptorSet() ([]byte, error) {
	set := &descriptorpb.FileDescriptorSet{}
	have := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if have[f.Path()] || f.IsPlaceholder() || IsWellKnown(f.Path()) && len(s.Files) != 1 {
			return
		}
		have[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	for _, f := range s.Files {
		add(f)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(set)
}

// FromStored loads definitions that are kept by content: .proto files by their paths, and
// serialized descriptor sets by their names. Of several files of a path, those of texts
// count.
//
// Limits: those of Load. Errors: what does not compile or link; the context's.
func FromStored(ctx context.Context, texts map[string]string, sets map[string][]byte) (*Schema, error) {
	size := int64(0)
	for name, text := range texts {
		if size += int64(len(text)); len(texts) > maxProtoFiles || len(text) > maxProtoFileBytes || size > maxProtoBytes {
			return nil, fmt.Errorf("schema: %s: definitions larger than %d bytes a file or %d in all, or more than %d files", name, maxProtoFileBytes, maxProtoBytes, maxProtoFiles)
		}
	}
	s, err := interrupt.Run(ctx, func() (*Schema, error) { return FromTexts(texts) })
	if err != nil {
		return nil, err
	}
	files := s.Files
	have := map[string]bool{}
	for _, f := range files {
		have[f.Path()] = true
	}
	for name, data := range sets {
		set, err := interrupt.Run(ctx, func() (*descriptorpb.FileDescriptorSet, error) { return parseSet(data) })
		var of *Schema
		if err == nil {
			of, err = linkSet(ctx, set)
		}
		if err != nil {
			return nil, fmt.Errorf("%w (in %s)", err, name)
		}
		for _, f := range of.Files {
			if !have[f.Path()] {
				have[f.Path()] = true
				files = append(files, f)
			}
		}
	}
	return FromFiles(files...), nil
}
