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

// DescriptorSet returns the schema's files and their imports as a serialized FileDescriptorSet. Imports of
// google/protobuf are left out, unless the schema has only one file. FromStored reads the result.
func (s *Schema) DescriptorSet() ([]byte, error) {
	set := &descriptorpb.FileDescriptorSet{}

	// An import precedes the file that imports it, as FileDescriptorSet requires.
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

// FromStored loads definitions that were stored inside a capture: texts are .proto files by path, and sets
// serialized descriptor sets by name. If both have a file of the same path, the text is preferred.
//
// Limits: those of Load.
// Errors: sources that do not compile or link, and the context's error.
func FromStored(ctx context.Context, texts map[string]string, sets map[string][]byte) (*Schema, error) {
	size := int64(0)

	// The stored texts come from a file that others may have written, so they have limits too.
	for name, text := range texts {
		if size += int64(len(text)); len(texts) > maxProtoFiles || len(text) > maxProtoFileBytes || size > maxProtoBytes {
			return nil, fmt.Errorf("schema: %s: the definitions are larger than %d bytes per file or %d bytes in total, or have more than %d files", name, maxProtoFileBytes, maxProtoBytes, maxProtoFiles)
		}
	}

	// Compiling cannot be interrupted by itself, so it runs beside the context.
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
		// A set can repeat files that other sets or the texts have.
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
